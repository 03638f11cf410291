"""A training run that was published: what ran on what, what its hardware cost then, and what others say it cost."""

from __future__ import annotations

from math import nan

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class TrainingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run; NaN where nobody published a figure."""

    name: str
    title: str
    model: str
    chip: str
    num_chips: int
    num_tokens: float
    num_batch: int  # sequences of a step
    num_seq: int  # tokens of a sequence
    num_chip_hours: float  # of the whole run, as published
    precision: str = ""  # the usual one
    nic_bytes_per_s: float = nan  # network of a chip, where its server does not say
    server_usd: float = nan  # a chip's share of a whole server, when it was bought
    rent_usd_per_hour: float = nan
    age_s: float = 0.0  # of the hardware when the run began
    rental_usd: float = nan  # as others have it
    amortised_usd: float = nan
    upfront_usd: float = nan
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("model", "model", "model", "text", required=True),
    Field("chip", "chip", "chip", "text", required=True),
    Field("chips", "num_chips", "chips", required=True),
    Field("tokens", "num_tokens", "tokens", required=True),
    Field("global_batch", "num_batch", "sequences of a step", required=True),
    Field("seq", "num_seq", "tokens of a sequence", required=True),
    Field("chip_hours", "num_chip_hours", "published chip-hours", required=True),
    Field("precision", "precision", "number format", "text"),
    Field("nic", "nic_bytes_per_s", "network of a chip, one way"),
    Field("server", "server_usd", "a chip's share of a server when it was bought"),
    Field("rent", "rent_usd_per_hour", "rent of a chip when it ran"),
    Field("age", "age_s", "age of the hardware when the run began"),
    Field("rental", "rental_usd", "published cost, as rented"),
    Field("amortised", "amortised_usd", "published cost, as owned and written off"),
    Field("upfront", "upfront_usd", "published cost, as bought"),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_training_run(entry: Entry, name: str, table: Table) -> TrainingRun | None:
    """Read `[training_run.NAME]`."""
    return read_entry(entry, name, table, FIELDS, TrainingRun)
