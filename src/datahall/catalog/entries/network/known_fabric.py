"""A fabric that somebody built or published the plan of: what to build to have its like."""

from __future__ import annotations

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry


class KnownFabric(msgspec.Struct, frozen=True, kw_only=True):
    """Topology, chips, the machine they sit in and the switch; 0 and "" where nobody said."""

    name: str
    title: str
    topology: str
    num_chips: int
    server: str = ""
    switch: str = ""
    num_radix: int = 0  # ports of the switches, where no box of the catalogue is named
    num_tiers: int = 0
    num_pod_chips: int = 0
    oversubscription: str = ""
    sides: str = ""  # of a torus, e.g. "16x16x16"
    year: int = 0
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("topology", "topology", "topology", "text", required=True),
    Field("chips", "num_chips", "chips", required=True),
    Field("server", "server", "server, rack or pod", "text"),
    Field("switch", "switch", "switch", "text"),
    Field("radix", "num_radix", "ports of a switch"),
    Field("tiers", "num_tiers", "tiers"),
    Field("pod_chips", "num_pod_chips", "chips of a pod"),
    Field("oversubscription", "oversubscription", "oversubscription by tier", "text"),
    Field("sides", "sides", "sides of the torus", "text"),
    Field("year", "year", "year", at_least=1970),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_fabric(entry: Entry, name: str, table: Table) -> KnownFabric | None:
    """Read `[fabric.NAME]`."""
    return read_entry(entry, name, table, FIELDS, KnownFabric)
