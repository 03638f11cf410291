"""Everything the loop of the flow simulation reads and writes: tables of flows, links, entries, ranks and messages.

A table is one array of records, for each array that a compiled function is given has its references counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline
from datahall.events.queue import Queue
from datahall.fabric.topology.graph import Ints

START, END = 0, 1  # what an event of a flow is
IDLE, WAITS, MOVES = 0, 1, 2  # what a flow does: nothing, its latency passes, its bytes move
SLACK = 1e-9  # relative difference below which two levels, or two states, are one

Table = NDArray[np.void]

FLOW = np.dtype([
    ("first", "<i8"), ("last", "<i8"),  # its way: these entries
    ("ways_first", "<i8"), ("ways_last", "<i8"),  # the ways it may take, where there is a choice
    ("counted", "<f8"),  # bytes that it moved before it took another way
    ("num_bytes", "<f8"), ("weight", "<f8"), ("cap", "<f8"), ("start_s", "<f8"), ("delay_s", "<f8"),
    ("next_first", "<i8"), ("next_last", "<i8"),  # who waits for it
    ("waiting", "<i4"),  # how many it waits for
    ("does", "<i4"), ("ready_s", "<f8"), ("end_s", "<f8"), ("left", "<f8"), ("since", "<f8"), ("rate", "<f8"),
    ("bottleneck", "<i4"), ("place", "<i4"),  # among the active ones
    ("token", "<i8"),  # of its event in the queue
    ("inside", "?"),  # in the region that is being solved
    ("num_rounds", "<i4"), ("ended", "<i4"), ("sender", "<i4"), ("receiver", "<i4"), ("again_delay_s", "<f8"),
    ("noted_does", "<i4"), ("noted_ended", "<i4"), ("noted_to_come", "<f8"), ("noted_first", "<i8"),
], align=True)  # fmt: skip
LINK = np.dtype([
    ("load", "<f8"),  # weight of all that is on it
    ("capacity", "<f8"), ("free", "<f8"), ("peak", "<f8"),  # highest rate seen
    ("carried", "<f8"), ("noted_carried", "<f8"),  # bytes
    ("head", "<i4"),  # first of the active entries on this link
    ("slot", "<i4"), ("marked", "?"),
], align=True)  # fmt: skip
# one step of a way, and the steps after and ahead of it on the same link
ENTRY = np.dtype([
    ("link", "<i4"), ("owner", "<i4"), ("after", "<i4"), ("ahead", "<i4"), ("share", "<f8"),
], align=True)  # fmt: skip
WAY = np.dtype([("first", "<i8"), ("last", "<i8")])  # these entries
# from `at_s` on a flow has these ways
DETOUR = np.dtype([("at_s", "<f8"), ("flow", "<i8"), ("first", "<i8"), ("last", "<i8")])
# A rank is at turn t when every flow that it sends or receives has ended t times; then those that it sends start again.
RANK = np.dtype([
    ("turn", "<i4"), ("missing", "<i4"),  # flows that have not ended this turn
    ("first", "<i8"), ("sends", "<i8"), ("last", "<i8"),  # of the list of its flows, up to `sends` those that it sends
    ("noted_turn", "<i4"),
], align=True)  # fmt: skip
# a message that is over; how often it came so, and how far apart
MESSAGE = np.dtype([
    ("flow", "<i4"), ("times", "<i4"), ("ready_s", "<f8"), ("delay_s", "<f8"), ("end_s", "<f8"), ("every_s", "<f8"),
], align=True)  # fmt: skip
COUNTS = np.dtype([
    ("active", "<i8"), ("region", "<i8"), ("seen", "<i8"),
    ("events", "<i8"), ("solves", "<i8"), ("solved", "<i8"), ("messages", "<i8"),
    ("single", "<i8"),  # flows under way that are sent once
    ("pacer", "<i8"),  # the flow whose rounds are counted, or -1
    ("due", "?"),  # whether one of them has just ended
    ("rounds", "<i8"), ("next_note", "<i8"),  # how many have, and when the state is noted next
    ("noted", "<i8"),  # messages that were over when it was, or -1
    ("noted_s", "<f8"),
    ("skipped_s", "<f8"),  # what is added to times that are written down
], align=True)  # fmt: skip


class State(NamedTuple):
    """The tables, and lists of flows and links."""

    flows: Table
    links: Table
    entries: Table
    ways: Table
    detours: Table  # in order of time
    ranks: Table
    log: Table
    counts: Table  # of one row
    next_flow: Ints
    touching: Ints  # flows of each rank
    several: Ints  # flows of several rounds
    active: Ints
    region: Ints
    seen: Ints  # links to look at after this event
    queue: Queue


@inline
def delay_of(s: State, flow: int) -> float:
    """The latency of a flow's present round."""
    f = s.flows[flow]
    return float(f["again_delay_s"] if f["ended"] > 0 else f["delay_s"])


@inline
def take_flow(s: State, flow: int) -> None:
    """Add a flow to the region that is solved, once."""
    if not s.flows[flow]["inside"]:
        s.flows[flow]["inside"] = True
        s.region[s.counts[0]["region"]] = flow
        s.counts[0]["region"] += 1


@inline
def take_link(s: State, link: int) -> None:
    """Add a link to those that are looked at, once."""
    if not s.links[link]["marked"]:
        s.links[link]["marked"] = True
        s.seen[s.counts[0]["seen"]] = link
        s.counts[0]["seen"] += 1
