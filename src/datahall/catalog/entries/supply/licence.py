"""An export rule: which chips need a licence to go where, and how an application fares."""

from __future__ import annotations

from math import inf

import msgspec

from datahall.breakdown import Source
from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields


class Licence(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, of chips by name or from a total processing performance on; among rules that apply the last one holds.

    Total processing performance is the dense rate of a format in TFLOP/s times its bits, the largest of all formats.
    """

    name: str
    title: str
    source: Source
    review: str  # how an application is looked at
    chips: tuple[str, ...] = ()
    num_least_performance: float = inf  # from it on, every chip
    num_most_performance: float = inf  # below it
    most_bytes_per_s: float = inf  # of memory, below it
    countries: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    spared_groups: tuple[str, ...] = ()
    spared_vendors: tuple[str, ...] = ()  # whose chips are not exported from where the rule is made
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("review", "review", "how an application is looked at", "text", required=True),
    Field("chips", "chips", "chips it is of", "texts"),
    Field("performance", "num_least_performance", "total processing performance from which on it holds"),
    Field("below_performance", "num_most_performance", "total processing performance below which it holds"),
    Field("below_memory_bandwidth", "most_bytes_per_s", "memory bandwidth below which it holds"),
    Field("countries", "countries", "countries it is of", "texts"),
    Field("groups", "groups", "groups of countries it is of", "texts"),
    Field("spared_groups", "spared_groups", "groups that it spares", "texts"),
    Field("spared_vendors", "spared_vendors", "vendors that it is not for", "texts"),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_licence(entry: Entry, name: str, table: Table) -> Licence | None:
    """Read `[licence.NAME]`; it says which chips, and where."""
    read_fields(entry, table, FIELDS)
    if not {"chips", "performance"} & table.keys():
        entry.problem("of which chips?", hint='chips = ["h20"], or performance = 4800')
    if not {"countries", "groups"} & table.keys():
        entry.problem("for which countries?", hint='groups = ["D:5"], or countries = ["macau"]')
    if entry.source is None:
        entry.problem("a rule needs a source", hint='source = "my-source"')
    if entry.problems or entry.source is None:
        return None
    return msgspec.convert(
        entry.values | {"name": name, "source": entry.source, "facts": entry.facts}, Licence
    )
