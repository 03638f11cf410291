"""Flows through a fabric, event by event: who waits for whom, what each gets, when each ends."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.events.queue import NO_EVENT
from datahall.fabric.flows import loop as flow_loop
from datahall.fabric.flows.rates import SMALL, columns
from datahall.fabric.topology.graph import Floats, Ints, Paths

Longs = NDArray[np.int64]
NO_FLOWS: Ints = np.empty(0, np.int32)


class Flows(msgspec.Struct, frozen=True, kw_only=True):
    """Many flows as columns.

    Flow f may start at `start_s[f]` and when the flows `after[after_offsets[f]:after_offsets[f + 1]]` have
    ended; its first byte leaves `delay_s[f]` later.  `weight` is also how many alike flows one row stands
    for.
    """

    paths: Paths
    num_bytes: Floats
    start_s: Floats | None = None
    delay_s: Floats | None = None
    weight: Floats | None = None
    cap_bytes_per_s: Floats | None = None
    share_fraction: Floats | None = None
    after: Ints | None = None
    after_offsets: Longs | None = None
    label: Ints | None = None  # what the caller knows each flow by, e.g. the number of its job

    @property
    def num_flows(self) -> int:
        return int(self.num_bytes.size)


class Changes(msgspec.Struct, frozen=True):
    """At at_s[i] the capacity of link[i] becomes bytes_per_s[i]; in order of time."""

    at_s: Floats
    link: Ints
    bytes_per_s: Floats


NO_CHANGES = Changes(np.empty(0), NO_FLOWS, np.empty(0))


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What happened.  A flow that never ended has `end_s` inf; one that never became ready, `ready_s` nan."""

    ready_s: Floats
    end_s: Floats
    left_bytes: Floats
    link_bytes: Floats
    link_peak_bytes_per_s: Floats
    num_events: int
    num_solves: int
    num_solved_flows: int  # over all solves; with whole solves it is what a naive loop would do

    @property
    def makespan_s(self) -> float:
        """When the last flow ended; inf where one never does."""
        return float(self.end_s.max(initial=0.0))

    @property
    def slowest(self) -> int:
        """The flow that ended last."""
        return int(self.end_s.argmax())

    @property
    def num_flows(self) -> int:
        return int(self.end_s.size)

    @property
    def num_stuck(self) -> int:
        """Flows that did not end."""
        return int(np.isinf(self.end_s).sum())


def simulate(
    flows: Flows,
    link_bytes_per_s: Floats,
    *,
    changes: Changes = NO_CHANGES,
    until_s: float = np.inf,
    grain_fraction: float = 0.0,
    head_of_line: bool = False,
    whole: bool = False,
) -> Run:
    """Run the flows until all have ended, nothing can happen any more, or `until_s`.

    With `grain_fraction` above 0, ends that lie closer than this part of a flow's own time are taken together; where
    many flows end one by one that saves most of the work, and times are off by about as much.  `head_of_line` lets a
    blocked flow hold back everything behind it, as one virtual lane of a lossless network does.  `whole` solves all
    rates after each event instead of only those it can change; the result is the same.

    >>> both = Flows(paths=Paths(np.zeros(2, np.int32), np.arange(3)), num_bytes=np.array([10.0, 30.0]))
    >>> simulate(both, np.array([10.0])).end_s.tolist()  # they share until the small one ends
    [2.0, 4.0]
    """
    state = _state(flows, np.asarray(link_bytes_per_s, float))
    _check_changes(changes, state.capacity.size)
    run_loop = flow_loop.run.interpreted if small(flows) else flow_loop.run
    run_loop(
        state,
        changes.at_s,
        changes.link,
        changes.bytes_per_s,
        float(until_s),
        float(grain_fraction),
        bool(head_of_line),
        bool(whole),
    )
    run = Run(
        ready_s=state.ready_s, end_s=state.end_s, left_bytes=state.left, link_bytes=state.carried,
        link_peak_bytes_per_s=state.peak, num_events=int(state.num[flow_loop.EVENTS]),
        num_solves=int(state.num[flow_loop.SOLVES]), num_solved_flows=int(state.num[flow_loop.SOLVED]),
    )  # fmt: skip
    waits = np.isnan(run.ready_s)
    if waits.any() and until_s == np.inf and not (np.isinf(run.end_s) & ~waits).any():
        raise ScenarioError(
            f"{int(waits.sum()):,} flows wait for each other, flow {int(waits.argmax())} among them",
            hint="a flow may only wait for flows that do not wait for it",
        )
    return run


def small(flows: Flows) -> bool:
    """Whether the flows are so few that loading compiled code takes longer than simulating them without it."""
    return flows.paths.links.size + flows.num_flows <= SMALL // 8


def _state(flows: Flows, capacity: Floats) -> flow_loop.State:
    num_flows, num_links, num_entries = flows.num_flows, capacity.size, flows.paths.links.size
    if flows.paths.num_flows != num_flows:
        raise ScenarioError(f"{flows.paths.num_flows:,} paths for {num_flows:,} flows")
    weight, cap, share = columns(
        flows.paths, capacity, flows.weight, flows.cap_bytes_per_s, flows.share_fraction
    )
    num_bytes = _column("size", flows.num_bytes, num_flows, "B")
    waiting, next_flow, next_offsets = followers(flows)
    make_queue = flow_loop.make_queue.interpreted if small(flows) else flow_loop.make_queue
    return flow_loop.State(
        links=flows.paths.links,
        offsets=flows.paths.offsets,
        share=share,
        num_bytes=num_bytes,
        weight=weight,
        cap=cap,
        start_s=_column("start", flows.start_s, num_flows, "s"),
        delay_s=_column("delay", flows.delay_s, num_flows, "s"),
        waiting=waiting,
        next_flow=next_flow,
        next_offsets=next_offsets,
        capacity=capacity.copy(),
        free=np.zeros(num_links),
        peak=np.zeros(num_links),
        carried=np.zeros(num_links),
        head=np.full(num_links, -1, np.int32),
        slot=np.full(num_links, -1, np.int32),
        marked=np.zeros(num_links, np.bool_),
        seen=np.empty(num_links, np.int32),
        owner=np.empty(num_entries, np.int32),
        after=np.empty(num_entries, np.int32),
        ahead=np.empty(num_entries, np.int32),
        ready_s=np.full(num_flows, np.nan),
        end_s=np.full(num_flows, np.inf),
        left=num_bytes.copy(),
        since=np.zeros(num_flows),
        rate=np.zeros(num_flows),
        bottleneck=np.full(num_flows, -1, np.int32),
        token=np.full(num_flows, NO_EVENT),
        active=np.empty(num_flows, np.int32),
        place=np.empty(num_flows, np.int32),
        inside=np.zeros(num_flows, np.bool_),
        region=np.empty(num_flows, np.int32),
        queue=make_queue(num_flows + 1, 0.0),
        num=np.zeros(6, np.int64),
    )


def _column(name: str, values: Floats | None, num_flows: int, unit: str) -> Floats:
    column = np.zeros(num_flows) if values is None else np.ascontiguousarray(values, dtype=np.float64)
    if column.shape != (num_flows,):
        raise ScenarioError(f"{column.size:,} values of {name} for {num_flows:,} flows")
    legal = (column >= 0) & np.isfinite(column)
    if not legal.all():
        place = int(np.argmin(legal))
        raise ScenarioError(f"the {name} of flow {place} is {column[place]:g} {unit}; it must be 0 or more")
    return column


def followers(flows: Flows) -> tuple[Ints, Ints, Longs]:
    """How many flows each one waits for, and who waits for it, as CSR."""
    if flows.after is None or flows.after_offsets is None:
        return np.zeros(flows.num_flows, np.int32), NO_FLOWS, np.zeros(flows.num_flows + 1, np.int64)
    waiting = np.diff(flows.after_offsets)
    if waiting.size != flows.num_flows or np.any(waiting < 0) or flows.after_offsets[-1] != flows.after.size:
        raise ScenarioError("the list of what flows wait for does not have one row per flow")
    if flows.after.size and not (0 <= int(flows.after.min()) <= int(flows.after.max()) < flows.num_flows):
        raise ScenarioError(f"a flow waits for flow {int(flows.after.max())}; there are {flows.num_flows:,}")
    order = np.argsort(flows.after, kind="stable")
    waits = np.repeat(np.arange(flows.num_flows, dtype=np.int32), waiting)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(flows.after, minlength=flows.num_flows))])
    return waiting.astype(np.int32), waits[order], offsets.astype(np.int64)


def _check_changes(changes: Changes, num_links: int) -> None:
    if np.any(np.diff(changes.at_s) < 0) or np.any(changes.at_s < 0):
        raise ScenarioError("changes of capacity must be in order of time, from 0 on")
    if not np.all(changes.bytes_per_s >= 0):
        raise ScenarioError("a link cannot change to a bandwidth below 0")
    if changes.link.size and not (0 <= int(changes.link.min()) <= int(changes.link.max()) < num_links):
        raise ScenarioError(f"link {int(changes.link.max())} changes; the fabric has {num_links:,}")


def merged(*changes: Changes) -> Changes:
    """Several lists of changes as one, in order of time."""
    at = np.concatenate([one.at_s for one in changes])
    order = np.argsort(at, kind="stable")
    link = np.concatenate([one.link for one in changes]).astype(np.int32)
    return Changes(at[order], link[order], np.concatenate([one.bytes_per_s for one in changes])[order])
