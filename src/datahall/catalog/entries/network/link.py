"""A link between chips, to the host or to the network; one way, as both-ways headlines mislead."""

from __future__ import annotations

from math import nan
from typing import Literal, get_args

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry

LinkKind = Literal["scale-up", "host", "network"]
LinkWiring = Literal["switched", "mesh", "torus", "host"]


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One link or port; a chip with eighteen of them says so in its own scale-up bandwidth."""

    name: str
    title: str
    kind: LinkKind
    technology: str = ""  # whose relatives its constants are; its own name where the entry says none
    wiring: LinkWiring | Literal[""] = (
        ""  # what it joins a chip to: switches, every chip of the domain, its neighbours, the host
    )
    bytes_per_s: float  # one way
    latency_s: float = nan  # one way, without software
    num_torus_axes: int = 0  # of the torus that it joins chips into; 0: nobody says, or it joins none
    year: int = 0
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def both_ways_bytes_per_s(self) -> float:
        """The headline that vendors print: both directions added up."""
        return 2 * self.bytes_per_s

    @property
    def is_direct(self) -> bool:
        """Whether it runs from chip to chip."""
        return self.wiring in {"mesh", "torus"}


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("kind", "kind", "what it joins", "text", required=True, choices=get_args(LinkKind)),
    Field("technology", "technology", "technology", "text"),
    Field("wiring", "wiring", "what it joins a chip to", "text", choices=get_args(LinkWiring)),
    Field("bandwidth", "bytes_per_s", "bandwidth, one way", required=True),
    Field("latency", "latency_s", "latency, one way"),
    Field("torus_axes", "num_torus_axes", "axes of the torus"),
    Field("year", "year", "year", at_least=1970),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)


def read_link(entry: Entry, name: str, table: Table) -> Link | None:
    """Read `[link.NAME]`."""
    found = read_entry(entry, name, table, FIELDS, Link)
    if found is None or found.technology:
        return found
    return msgspec.structs.replace(found, technology=name)
