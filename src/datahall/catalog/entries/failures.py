"""What breaks: components and their repair, failure rates that were published, and how new and bad nodes differ.

A published table of causes names each in its source's own words; `component` beside it is our mapping, so that tables
of different sources can be held against each other.
"""

from __future__ import annotations

from math import nan
from typing import Literal, cast, get_args

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry, read_fields
from datahall.units import DAY_S

# the checkpoint nearest to a chip that is still there after a failure
Tier = Literal["device", "host", "peer", "local", "remote"]
COPY_TIERS: tuple[Tier, ...] = get_args(Tier)
Scaling = Literal["chip", "node"]
SCALINGS: tuple[Scaling, ...] = ("chip", "node")
# what goes with a part: the node it is in, all nodes of a rack or of a scale-up domain, as many nodes as somebody says,
# nobody; what a part of the network takes follows from the fabric
Takes = Literal["node", "rack", "domain", "nodes", "network", "nothing"]
TAKINGS: tuple[Takes, ...] = get_args(Takes)


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A part that fails: how often a repair follows and how long it takes, and which checkpoint is left."""

    name: str
    title: str
    survives: Tier
    per: Scaling = "chip"  # what a node has more of when it has more chips, or has once
    takes: Takes = "node"
    part_of: str = ""  # the component whose failure its own is
    repair_fraction: float = 0.0  # of its failures that take the node away; a restart ends the others
    repair_mean_s: float = nan
    repair_median_s: float = nan
    in_rack: str = ""  # the component in its place where the nodes of a rack share it, and lose it at once
    rate_per_day: float = nan  # of one such part, where somebody counted parts and not interruptions
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


class PublishedCause(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a table of causes."""

    name: str  # in the words of the source
    component: str
    num_interruptions: int = 0
    rate_per_node_day: float = nan  # where rates were published and no counts


class FailurePreset(msgspec.Struct, frozen=True, kw_only=True):
    """Failures as somebody counted them: of so many nodes over so long a time, by cause."""

    name: str
    title: str
    chip: str
    num_node_chips: int
    num_chips: int = 0
    span_s: float = nan
    num_interruptions: int = 0  # unexpected ones
    num_planned: int = 0
    stated_rate_per_node_day: float = nan
    job_rate_per_day: float = 0.0  # of a job whatever its size, beside what its nodes do
    causes_of: str = ""  # whose table of causes stands in for its own
    is_fleet: bool = False  # of nodes of eight GPUs, counted by their owner: others are predicted by it
    causes: tuple[PublishedCause, ...] = ()
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def rate_per_node_day(self) -> float:
        """Interruptions of a job for each node and day: as stated, by its causes, or counted over nodes × days.

        >>> llama = FailurePreset(name="", title="", chip="", num_node_chips=8, num_chips=16384,
        ...                       span_s=54 * 86400.0, num_interruptions=419)
        >>> round(llama.rate_per_node_day, 5)
        0.00379
        """
        if self.stated_rate_per_node_day == self.stated_rate_per_node_day:
            return self.stated_rate_per_node_day
        if self.num_interruptions:
            num_nodes = self.num_chips / self.num_node_chips
            return self.num_interruptions / (num_nodes * self.span_s / DAY_S)
        return sum(cause.rate_per_node_day for cause in self.causes)


class Ageing(msgspec.Struct, frozen=True, kw_only=True):
    """New nodes fail more often, and a few nodes always do."""

    name: str
    title: str
    early_span_s: float  # how long a node is new
    early_fraction: float  # of new nodes that need a repair on top of the usual ones in that time
    lemon_fraction: float  # of all nodes
    lemon_ratio: float  # of their rate over that of the others
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


_NAMED = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)

COMPONENT_FIELDS = (
    *_NAMED,
    Field(
        "survives", "survives", "nearest checkpoint that is left", "text", required=True, choices=COPY_TIERS
    ),
    Field("per", "per", "what its rate grows with", "text", choices=SCALINGS),
    Field("takes", "takes", "what goes with it", "text", choices=TAKINGS),
    Field("part_of", "part_of", "the component whose failure its own is", "text"),
    Field("repair_share", "repair_fraction", "share that needs a repair", at_least=0.0),
    Field("repair_mean", "repair_mean_s", "mean time to repair"),
    Field("repair_median", "repair_median_s", "median time to repair"),
    Field("in_rack", "in_rack", "what is in its place where the nodes of a rack share it", "text"),
    Field("rate", "rate_per_day", "failures of one part per day"),
)

PRESET_FIELDS = (
    *_NAMED,
    Field("chip", "chip", "chip", "text", required=True),
    Field("node_chips", "num_node_chips", "chips of a node", required=True),
    Field("chips", "num_chips", "chips"),
    Field("span", "span_s", "time it was counted over"),
    Field("interruptions", "num_interruptions", "unexpected interruptions"),
    Field("planned", "num_planned", "planned interruptions"),
    Field("rate", "stated_rate_per_node_day", "failures per node and day"),
    Field("job_rate", "job_rate_per_day", "failures of a job per day, beside those of its nodes"),
    Field("causes_of", "causes_of", "whose table of causes stands in", "text"),
    Field("fleet", "is_fleet", "whether other fleets of nodes of eight GPUs are predicted by it", "flag"),
)

CAUSE_FIELDS = (
    Field("component", "component", "component", "text", required=True),
    Field("count", "num_interruptions", "interruptions"),
    Field("rate", "rate_per_node_day", "failures per node and day"),
    Field("note", "note", "note", "text"),
)

AGEING_FIELDS = (
    *_NAMED,
    Field("early_span", "early_span_s", "how long a node is new", required=True),
    Field("early_share", "early_fraction", "new nodes that need a repair", required=True),
    Field("lemon_share", "lemon_fraction", "nodes that fail over and over", required=True),
    Field("lemon_ratio", "lemon_ratio", "their rate over that of others", required=True),
)


def read_component(entry: Entry, name: str, table: Table) -> Component | None:
    """Read `[component.NAME]`."""
    return read_entry(entry, name, table, COMPONENT_FIELDS, Component)


def read_ageing(entry: Entry, name: str, table: Table) -> Ageing | None:
    """Read `[ageing.NAME]`."""
    return read_entry(entry, name, table, AGEING_FIELDS, Ageing)


def read_failures(entry: Entry, name: str, table: Table) -> FailurePreset | None:
    """Read `[failures.NAME]` and its table of causes."""
    read_fields(entry, table, PRESET_FIELDS, also=("causes",))
    causes = _read_causes(entry, table)
    _check_rate(entry, causes)
    if entry.problems:
        return None
    counts = {key: int(cast(float, value)) for key, value in entry.values.items() if key.startswith("num_")}
    values = entry.values | counts | {"name": name, "causes": causes, "facts": entry.facts}
    return msgspec.convert(values, FailurePreset)


def _read_causes(entry: Entry, table: Table) -> tuple[PublishedCause, ...]:
    rows = table.get("causes", {})
    if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
        hint = '"Faulty GPU" = { count = 148, component = "chip" }'
        entry.problem('"causes" must be a table of causes', "causes", hint=hint)
        return ()
    found = []
    for cause, row in rows.items():
        below = entry.below("causes", cause)
        read_fields(below, cast(Table, row), CAUSE_FIELDS)
        for attribute, fact in below.facts.items():
            entry.facts[f"causes.{cause}.{attribute}"] = fact
        if "component" in below.values:
            values = {key: value for key, value in below.values.items() if key != "note"}
            num = int(cast(float, values.pop("num_interruptions", 0)))
            found.append(msgspec.convert(values | {"name": cause, "num_interruptions": num}, PublishedCause))
    return tuple(found)


def _check_rate(entry: Entry, causes: tuple[PublishedCause, ...]) -> None:
    """A rate is stated, or counted over nodes and days, or the sum of those of its causes."""
    counted = {"num_interruptions", "num_chips", "span_s"} <= entry.values.keys()
    summed = bool(causes) and all(cause.rate_per_node_day > 0 for cause in causes)
    if not (counted or summed or "stated_rate_per_node_day" in entry.values):
        hint = "rate, or interruptions with chips and span, or a rate of every cause"
        entry.problem("nothing says how often a node fails", hint=hint)
    total = sum(cause.num_interruptions for cause in causes)
    if causes and counted and total != entry.values["num_interruptions"]:
        entry.problem(
            f"its causes add up to {total}", "interruptions", hint="what nobody explained is a cause too"
        )
    if not (causes or entry.values.get("causes_of")):
        entry.problem("no causes", hint='a table of causes, or causes_of = "llama-3"')
