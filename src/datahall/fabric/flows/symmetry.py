"""Flows that are alike, folded into one: a ring over 1,024 chips has a handful of distinct flows.

Two flows are alike when nothing tells them apart: same size, same kind of links, shared with the same kinds
of flows, after the same kinds of flows.  The classes come from colour refinement (1-dimensional
Weisfeiler–Leman) of flows and links; a partition that it leaves unchanged is equitable, so all flows of a
class have one max-min rate and one end (M. Grohe et al., "Dimension reduction via colour refinement", ESA
2014).  A failed link has a colour of its own and splits only the classes that it touches.

The folded problem has one flow of weight n per class of n, and one link of capacity n·B per class of n links.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Kernel, inline
from datahall.fabric.flows.simulate import NO_CHANGES, Changes, Flows, Longs, Run, simulate
from datahall.fabric.topology.graph import Floats, Ints, Paths

Colours = NDArray[np.uint64]
MOST_ROUNDS = 64


class Fold(msgspec.Struct, frozen=True, kw_only=True):
    """The folded problem, and the class of each flow and link of the whole one."""

    flows: Flows
    link_bytes_per_s: Floats
    changes: Changes
    flow_class: Longs
    link_class: Longs
    num_alike_flows: Longs
    num_alike_links: Longs


def simulate_folded(
    flows: Flows,
    link_bytes_per_s: Floats,
    *,
    changes: Changes = NO_CHANGES,
    until_s: float = np.inf,
    grain_fraction: float = 0.0,
) -> Run:
    """The same run as `flows.simulate` gives, from one flow of each kind."""
    fold = folded(flows, link_bytes_per_s, changes)
    capacity = fold.link_bytes_per_s
    run = simulate(fold.flows, capacity, changes=fold.changes, until_s=until_s, grain_fraction=grain_fraction)
    return unfolded(run, fold)


def folded(flows: Flows, link_bytes_per_s: Floats, changes: Changes = NO_CHANGES) -> Fold:
    """Find the classes and build the problem with one flow and one link of each."""
    flow_colour, link_colour = colours(flows, link_bytes_per_s, changes)
    flow_class, flow_one, num_flows = number(flow_colour)
    link_class, link_one, num_links = number(link_colour)
    entries = _rows(flows.paths.offsets, flow_one)
    lengths = np.diff(flows.paths.offsets)[flow_one]
    paths = Paths(
        link_class[flows.paths.links[entries]].astype(np.int32), np.concatenate([[0], np.cumsum(lengths)])
    )
    after, after_offsets = _folded_order(flows, flow_one, flow_class)
    many = num_flows.astype(float)
    chosen = Flows(
        paths=paths,
        num_bytes=flows.num_bytes[flow_one] * many,
        start_s=_of(flows.start_s, flow_one),
        delay_s=_of(flows.delay_s, flow_one),
        weight=many if flows.weight is None else flows.weight[flow_one] * many,
        cap_bytes_per_s=None if flows.cap_bytes_per_s is None else flows.cap_bytes_per_s[flow_one] * many,
        share_fraction=_of(flows.share_fraction, entries),
        after=after,
        after_offsets=after_offsets,
        label=None if flows.label is None else flows.label[flow_one],
    )
    # alike links change alike, so one of each class will do; of two changes at one time the last counts
    backwards = np.stack([changes.at_s, link_class[changes.link]])[:, ::-1]
    _, place_back = np.unique(backwards, axis=1, return_index=True)
    kept = np.sort(changes.at_s.size - 1 - place_back)
    place = link_class[changes.link[kept]]
    return Fold(
        flows=chosen,
        link_bytes_per_s=np.asarray(link_bytes_per_s)[link_one] * num_links,
        changes=Changes(
            changes.at_s[kept], place.astype(np.int32), changes.bytes_per_s[kept] * num_links[place]
        ),
        flow_class=flow_class,
        link_class=link_class,
        num_alike_flows=num_flows,
        num_alike_links=num_links,
    )


def unfolded(run: Run, fold: Fold) -> Run:
    """The run of all flows from that of the classes."""
    flow, link = fold.flow_class, fold.link_class
    return msgspec.structs.replace(
        run,
        flow=np.arange(flow.size, dtype=np.int32),
        ready_s=run.ready_s[flow],
        delay_s=run.delay_s[flow],
        end_s=run.end_s[flow],
        num_alike=run.num_alike[flow],
        times=run.times[flow],
        every_s=run.every_s[flow],
        left_bytes=(run.left_bytes / fold.num_alike_flows)[flow],
        link_bytes=(run.link_bytes / fold.num_alike_links)[link],
        link_peak_bytes_per_s=(run.link_peak_bytes_per_s / fold.num_alike_links)[link],
    )


def colours(flows: Flows, link_bytes_per_s: Floats, changes: Changes = NO_CHANGES) -> tuple[Colours, Colours]:
    """The colour of each flow and link when refinement changes nothing any more."""
    ends = flows.paths.offsets
    flow_colour = _hashed(
        flows.num_bytes, flows.start_s, flows.delay_s, flows.weight, flows.cap_bytes_per_s,
        None if flows.label is None else flows.label.astype(float),
    )  # fmt: skip
    link_colour = _hashed(np.asarray(link_bytes_per_s, float))
    stain(link_colour, changes.link, _hashed(changes.at_s, changes.bytes_per_s))
    share = np.empty(0, np.uint64) if flows.share_fraction is None else _hashed(flows.share_fraction)
    after = flows.after if flows.after is not None else np.empty(0, np.int32)
    after_offsets = flows.after_offsets if flows.after_offsets is not None else np.zeros_like(ends)
    count = -1
    for _ in range(MOST_ROUNDS):
        distinct = number(flow_colour)[1].size + number(link_colour)[1].size
        if distinct == count:
            break
        count = distinct
        flow_colour, link_colour = refine(
            flows.paths.links, ends, share, after, after_offsets, flow_colour, link_colour
        )
    else:  # no symmetry worth the search: every flow and link for itself
        flow_colour = np.arange(flow_colour.size, dtype=np.uint64)
        link_colour = np.arange(link_colour.size, dtype=np.uint64)
    return flow_colour, link_colour


@inline
def mixed(value: np.uint64) -> np.uint64:
    """A well-spread hash of 64 bits (the finaliser of SplitMix64, Steele et al. 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _number(colours: Colours) -> tuple[Longs, Longs, Longs]:
    """The class of each colour, in the order they are met; where each was first met, and how often."""
    room = 16
    while room < 2 * colours.size:
        room *= 2
    table = np.full(room, -1, np.int64)
    classes = np.empty(colours.size, np.int64)
    first, count = np.empty(colours.size, np.int64), np.zeros(colours.size, np.int64)
    size = 0
    for index in range(colours.size):
        place = np.int64(mixed(colours[index]) & np.uint64(room - 1))
        while table[place] >= 0 and colours[first[table[place]]] != colours[index]:
            place = (place + 1) & (room - 1)
        if table[place] < 0:
            table[place] = size
            first[size] = index
            size += 1
        classes[index] = table[place]
        count[table[place]] += 1
    return classes, first[:size].copy(), count[:size].copy()


def _refine(
    links: Ints, offsets: Longs, share: Colours, after: Ints, after_offsets: Longs, flow_colour: Colours,
    link_colour: Colours,
) -> tuple[Colours, Colours]:  # fmt: skip
    """One round: each flow and link takes in the colours around it; sums, so that order does not count."""
    new_flow, new_link = np.empty_like(flow_colour), np.empty_like(link_colour)
    for link in range(link_colour.size):
        new_link[link] = mixed(link_colour[link] + np.uint64(1))
    for flow in range(flow_colour.size):
        own = mixed(flow_colour[flow])
        seen = own + np.uint64(0x9E3779B97F4A7C15)
        for entry in range(offsets[flow], offsets[flow + 1]):
            part = share[entry] if share.size else np.uint64(0)
            seen += mixed(link_colour[links[entry]] ^ part)
            new_link[links[entry]] += mixed(own ^ part)
        for place in range(after_offsets[flow], after_offsets[flow + 1]):
            seen += mixed(flow_colour[after[place]] + np.uint64(7))
        new_flow[flow] = seen
    return new_flow, new_link


def _mixed_columns(seen: Colours, bits: Colours) -> Colours:
    """Take one more column into the colours."""
    result = np.empty_like(seen)
    for index in range(seen.size):
        result[index] = mixed(seen[index] * np.uint64(0x9E3779B97F4A7C15) + mixed(bits[index] + np.uint64(1)))
    return result


def _stain(link_colour: Colours, link: Ints, colour: Colours) -> None:
    """Give each link that changes a colour of what happens to it and when."""
    for index in range(link.size):
        seen = mixed(link_colour[link[index]] + np.uint64(5))
        link_colour[link[index]] = mixed(seen + colour[index])


stain = Kernel(_stain, compile_s=1.0)
mixed_columns = Kernel(_mixed_columns, compile_s=1.0)
number = Kernel(_number, compile_s=1.0)
refine = Kernel(_refine, compile_s=2.0)


def _hashed(*columns: Floats | None) -> Colours:
    """One colour for each distinct row of the columns."""
    known = [column for column in columns if column is not None]
    seen = np.zeros(known[0].size, np.uint64)
    for column in known:
        bits = np.ascontiguousarray(column, float).view(np.uint64)
        seen = mixed_columns(seen, bits)
    return seen


def _of(column: Floats | None, rows: Longs) -> Floats | None:
    return None if column is None else column[rows]


def _rows(offsets: Longs, rows: Longs) -> Longs:
    """The entries of some rows of a CSR table, one after the other."""
    lengths = np.diff(offsets)[rows]
    total = int(lengths.sum())
    starts = np.repeat(offsets[rows] - (np.cumsum(lengths) - lengths), lengths)
    return starts + np.arange(total)


def _folded_order(flows: Flows, chosen: Longs, flow_class: Longs) -> tuple[Ints | None, Longs | None]:
    """The classes that each class waits for."""
    if flows.after is None or flows.after_offsets is None:
        return None, None
    entries = _rows(flows.after_offsets, chosen)
    row = np.repeat(np.arange(chosen.size), np.diff(flows.after_offsets)[chosen])
    pairs = np.unique(row * np.int64(chosen.size) + flow_class[flows.after[entries]])
    counts = np.bincount(pairs // chosen.size, minlength=chosen.size)
    return (pairs % chosen.size).astype(np.int32), np.concatenate([[0], np.cumsum(counts)])
