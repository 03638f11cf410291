"""A transport between two hosts: how it holds senders back, what it does about loss, what it asks of a host."""

from __future__ import annotations

from math import inf
from typing import Literal

import msgspec

from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_entry

# how a receiver that is full holds its senders back: by credits, by pause frames, or not at all
FlowControl = Literal["credits", "pause", "none"]
# what is sent again after a loss: all since, only what was lost, or that at half the rate
Repeat = Literal["go-back-n", "selective", "halving"]
FLOW_CONTROLS: tuple[FlowControl, ...] = ("credits", "pause", "none")
REPEATS: tuple[Repeat, ...] = ("go-back-n", "selective", "halving")
Spreading = Literal["ecmp", "spray"]
SPREADINGS: tuple[Spreading, ...] = ("ecmp", "spray")


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """One transport with the settings it usually has."""

    name: str
    title: str
    flow_control: FlowControl
    repeat: Repeat
    routing: Spreading  # one path for each flow by its hash, or another for each packet
    mtu_bytes: float  # payload of a packet
    header_bytes: float  # on the wire beside that, gaps between frames included
    host_s: float  # software and adapters of both ends, for one message
    timeout_s: float  # after which something unanswered is sent again
    stuck_s: float = (
        inf  # after which a port that is held back drops what it holds; nobody is held back: never
    )
    core_bytes_per_s: float = inf  # what one core of a host receives; the adapter alone does it: no bound
    num_copies: int = 0  # of each byte in the memory of the receiving host
    steady_fraction: float = 1.0  # of the payload rate that is kept while it finds its rate over and over
    settles: bool = False  # a long message begins before its rate is found
    aliases: tuple[str, ...] = ()
    note: str = ""
    facts: dict[str, Fact] = {}

    @property
    def holds_back(self) -> bool:
        """Whether a receiver that is full holds its senders back, so that nothing is dropped."""
        return self.flow_control != "none"


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("flow_control", "flow_control", "what holds senders back", "text", required=True, choices=FLOW_CONTROLS),
    Field("repeat", "repeat", "what is sent again after a loss", "text", required=True, choices=REPEATS),
    Field("routing", "routing", "how its packets choose among equal paths", "text", required=True, choices=SPREADINGS),
    Field("mtu", "mtu_bytes", "payload of a packet", required=True),
    Field("header", "header_bytes", "what a packet has beside its payload", required=True),
    Field("host_latency", "host_s", "software and adapters of both ends", required=True),
    Field("timeout", "timeout_s", "time until something unanswered is sent again", required=True),
    Field("stuck", "stuck_s", "time until a port that is held back drops what it holds"),
    Field("core_rate", "core_bytes_per_s", "what one core of a host receives"),
    Field("copies", "num_copies", "copies of each byte in the receiving host"),
    Field("steady", "steady_fraction", "share of the payload rate that is kept in steady state"),
    Field("settles", "settles", "a long message begins before its rate is found", "flag"),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
)  # fmt: skip


def read_transport(entry: Entry, name: str, table: Table) -> Transport | None:
    """Read `[transport.NAME]`."""
    return read_entry(entry, name, table, FIELDS, Transport)
