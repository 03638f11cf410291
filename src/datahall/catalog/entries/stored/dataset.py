"""What a training job reads: samples of some size, in files, and how long a chip works on a batch of them."""

from __future__ import annotations

from math import nan
from typing import Literal, get_args

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields

Loader = Literal["whole batches", "one batch"]


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """A data set with the step that reads it."""

    name: str
    title: str
    sample_bytes: float
    spread_bytes: float = 0.0  # standard deviation of a sample's size
    num_samples: int
    num_samples_per_file: int = 1
    batch: int = 1  # samples of one chip and step
    num_readers: int = 1  # that load for one chip
    loader: Loader = (
        "one batch"  # what readers load at once: a whole batch each, or parts of one batch together
    )
    prepare_bytes_per_s: float = nan  # what one core decodes or tokenises
    step_s: dict[str, float] = {}  # by chip, how long one works on a batch
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def size_bytes(self) -> float:
        """All samples once [B]."""
        return self.sample_bytes * self.num_samples


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("sample", "sample_bytes", "bytes of a sample", required=True),
    Field("spread", "spread_bytes", "standard deviation of a sample's bytes", at_least=0.0),
    Field("samples", "num_samples", "samples", required=True),
    Field("samples_per_file", "num_samples_per_file", "samples of a file"),
    Field("batch", "batch", "samples of a chip and step", "count"),
    Field("readers", "num_readers", "readers of a chip"),
    Field("loader", "loader", "what readers load at once", "text", choices=get_args(Loader)),
    Field("prepare", "prepare_bytes_per_s", "what one core prepares"),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_dataset(entry: Entry, name: str, table: Table) -> Dataset | None:
    """Read `[dataset.NAME]` and, under it, `[dataset.NAME.step]` with a time for each chip."""
    read_fields(entry, table, FIELDS, also=("step",))
    steps = _read_steps(entry, table)
    if entry.problems:
        return None
    counts = {
        key: round(value)
        for key, value in entry.values.items()
        if key.startswith("num_") and isinstance(value, float)
    }
    return msgspec.convert(
        entry.values | counts | {"name": name, "step_s": steps, "facts": entry.facts}, Dataset
    )


def _read_steps(entry: Entry, table: Table) -> dict[str, float]:
    steps = table.get("step", {})
    if not isinstance(steps, dict):
        entry.problem(
            '"step" must be a table of chips', "step", hint='[dataset.NAME.step] h100-sxm = "224 ms"'
        )
        return {}
    below = entry.below("step")
    chips = [chip for chip in steps if chip not in {"source", "kind", "date"}]
    read_fields(below, steps, [Field(chip, f"{chip}_s", f"step on {chip}") for chip in chips])
    entry.facts.update(
        {f"step.{chip}": below.facts[f"{chip}_s"] for chip in chips if f"{chip}_s" in below.facts}
    )
    return {chip: below.facts[f"{chip}_s"].value for chip in chips if f"{chip}_s" in below.facts}
