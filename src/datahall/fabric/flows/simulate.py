"""Flows through a fabric, event by event: who waits for whom, what each gets, when each ends."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError, option
from datahall.events.queue import NO_EVENT
from datahall.fabric.flows.loop import run as flow_loop
from datahall.fabric.flows.loop import state as loop_state
from datahall.fabric.flows.rates import SMALL, columns
from datahall.fabric.topology.graph import Floats, Ints, Paths

Longs = NDArray[np.int64]
Column = TypeVar("Column", Floats, Ints)
NO_FLOWS: Ints = np.empty(0, np.int32)
MOST_MESSAGES = 6_000_000  # that are written down: about 300 MB


class Rounds(msgspec.Struct, frozen=True, kw_only=True):
    """Flows that are sent several times.

    The first round starts as that of any flow; the next ones when every flow that the sender sends or receives has
    ended the round before.
    """

    num_rounds: Ints
    delay_s: Floats  # before each round but the first
    sender: (
        Ints  # a rank of its own for each group of flows that go through their rounds together; -1: one round
    )
    receiver: Ints


class Ways(msgspec.Struct, frozen=True, kw_only=True):
    """What each flow, or each detour, may choose from: paths[offsets[i]:offsets[i + 1]], with shares as flows have."""

    paths: Paths
    offsets: Longs
    share_fraction: Floats | None = None


class Detours(msgspec.Struct, frozen=True, kw_only=True):
    """From at_s[i] on, flow[i] has the ways i; in order of time.  One that is under way keeps what it has moved."""

    at_s: Floats
    flow: Ints
    ways: Ways


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
    rounds: Rounds | None = None
    ways: Ways | None = (
        None  # from which each flow takes the least loaded when it starts; where it has none, its path
    )
    detours: Detours | None = None

    @property
    def num_flows(self) -> int:
        return int(self.num_bytes.size)

    @property
    def num_messages(self) -> int:
        """All rounds of all flows."""
        return self.num_flows if self.rounds is None else int(self.rounds.num_rounds.sum(dtype=np.int64))


class Changes(msgspec.Struct, frozen=True):
    """At at_s[i] the capacity of link[i] becomes bytes_per_s[i]; in order of time."""

    at_s: Floats
    link: Ints
    bytes_per_s: Floats


NO_CHANGES = Changes(np.empty(0), NO_FLOWS, np.empty(0))


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, message by message: each flow has one, or one for each round.

    One that never ended has `end_s` inf; one that never became ready, `ready_s` nan.  A message may stand for several
    that are alike: `num_alike` at once, and these `times`, `every_s` apart.
    """

    flow: Ints
    ready_s: Floats
    delay_s: Floats
    end_s: Floats
    num_alike: Ints
    times: Ints
    every_s: Floats
    left_bytes: Floats  # of each flow
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
        """The message that ended last."""
        return int(self.end_s.argmax())

    @property
    def num_each(self) -> Longs:
        """How many messages each one stands for."""
        return self.num_alike.astype(np.int64) * self.times

    @property
    def num_flows(self) -> int:
        """Flows, each round of one for itself."""
        return int(self.num_each.sum())

    @property
    def num_stuck(self) -> int:
        """Those that did not end."""
        return int(self.num_each[np.isinf(self.end_s)].sum())


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
    _check_changes(changes, state.links.size)
    run_loop = flow_loop.run.interpreted if small(flows) else flow_loop.run
    done = run_loop(
        state,
        changes.at_s,
        changes.link,
        changes.bytes_per_s,
        float(until_s),
        float(grain_fraction),
        bool(head_of_line),
        bool(whole),
    )
    if not done:
        raise ScenarioError(
            f"more than {MOST_MESSAGES:,} messages, and no rounds that repeat themselves",
            hint=option("detail", "symmetric"),
        )
    run = _single(state) if flows.rounds is None else _logged(state)
    waits = np.isnan(run.ready_s)
    if waits.any() and until_s == np.inf and not (np.isinf(run.end_s) & ~waits).any():
        raise ScenarioError(
            f"{int(waits.sum()):,} flows wait for each other, flow {int(run.flow[waits.argmax()])} among them",
            hint="a flow may only wait for flows that do not wait for it",
        )
    return run


def _single(state: loop_state.State) -> Run:
    """What happened to flows of one round."""
    size, flows = state.flows.size, state.flows
    return _run(
        state, np.arange(size, dtype=np.int32), flows["ready_s"].copy(), flows["delay_s"].copy(), flows["end_s"].copy(),
        np.ones(size, np.int32), np.zeros(size), np.ones(size, np.int32),
    )  # fmt: skip


def _logged(state: loop_state.State) -> Run:
    """What happened as it was written down, in order of the ends; rounds that are under way, and that never came."""
    flows, log = state.flows, state.log[: state.counts[0]["messages"]]
    going = np.flatnonzero(flows["does"] != loop_state.IDLE).astype(np.int32)
    never = flows["num_rounds"] - flows["ended"]
    never[going] -= 1
    lost = np.flatnonzero(never > 0).astype(np.int32)
    again = np.where(flows["ended"] > 0, flows["again_delay_s"], flows["delay_s"])
    begun_s = flows["ready_s"][going] + state.counts[0]["skipped_s"]
    flow = _with(np.asarray(log["flow"], np.int32), going, lost)
    return _run(
        state, flow,
        _with(log["ready_s"], begun_s, np.full(lost.size, np.nan)),
        _with(log["delay_s"], again[going], again[lost]),
        _with(log["end_s"], np.full(going.size + lost.size, np.inf)),
        _with(np.asarray(log["times"], np.int32), np.ones(going.size, np.int32), never[lost]),
        _with(log["every_s"], np.zeros(going.size + lost.size)),
        flows["weight"][flow].astype(np.int32),
    )  # fmt: skip


def _with(known: Column, *more: Column) -> Column:
    """A column and what comes after it, mostly nothing: then the column itself, for there may be millions."""
    return np.concatenate([known, *more]) if any(part.size for part in more) else known


def _run(
    state: loop_state.State, flow: Ints, ready_s: Floats, delay_s: Floats, end_s: Floats, times: Ints, every_s: Floats,
    num_alike: Ints,
) -> Run:  # fmt: skip
    links, count = state.links, state.counts[0]
    return Run(
        flow=flow, ready_s=ready_s, delay_s=delay_s, end_s=end_s, times=times, every_s=every_s, num_alike=num_alike,
        left_bytes=state.flows["left"].copy(), link_bytes=links["carried"].copy(),
        link_peak_bytes_per_s=links["peak"].copy(), num_events=int(count["events"]),
        num_solves=int(count["solves"]), num_solved_flows=int(count["solved"]),
    )  # fmt: skip


def small(flows: Flows) -> bool:
    """Whether the flows are so few that loading compiled code takes longer than simulating them without it."""
    return flows.paths.links.size + flows.num_messages <= SMALL // 8


def _state(flows: Flows, capacity: Floats) -> loop_state.State:
    num_flows, num_links = flows.num_flows, capacity.size
    if flows.paths.num_flows != num_flows:
        raise ScenarioError(f"{flows.paths.num_flows:,} paths for {num_flows:,} flows")
    weight, cap, share = columns(
        flows.paths, capacity, flows.weight, flows.cap_bytes_per_s, flows.share_fraction
    )
    num_bytes = _column("size", flows.num_bytes, num_flows, "B")
    waiting, next_flow, next_offsets = followers(flows)
    table = np.zeros(num_flows, loop_state.FLOW)
    columns_of = {
        "first": flows.paths.offsets[:-1],
        "last": flows.paths.offsets[1:],
        "num_bytes": num_bytes,
        "left": num_bytes,
        "weight": weight,
        "cap": cap,
        "start_s": _column("start", flows.start_s, num_flows, "s"),
        "delay_s": _column("delay", flows.delay_s, num_flows, "s"),
        "waiting": waiting,
        "next_first": next_offsets[:-1],
        "next_last": next_offsets[1:],
        "ready_s": np.nan,
        "end_s": np.inf,
        "bottleneck": -1,
        "token": NO_EVENT,
        "num_rounds": 1,
        "sender": -1,
        "receiver": -1,
    }
    for name, column in columns_of.items():
        table[name] = column
    links = np.zeros(num_links, loop_state.LINK)
    links["capacity"], links["head"], links["slot"] = capacity, -1, -1
    entries, ways, detours = _ways(flows, share, table)
    count = np.zeros(1, loop_state.COUNTS)
    count["pacer"] = count["noted"] = -1
    ranks, touching = _ranks(flows.rounds, table)
    make_queue = flow_loop.make_queue.interpreted if small(flows) else flow_loop.make_queue
    return loop_state.State(
        flows=table,
        links=links,
        entries=entries,
        ways=ways,
        detours=detours,
        ranks=ranks,
        log=np.empty(min(flows.num_messages, MOST_MESSAGES) if flows.rounds else 0, loop_state.MESSAGE),
        counts=count,
        next_flow=next_flow,
        touching=touching,
        several=np.flatnonzero(table["num_rounds"] > 1).astype(np.int32),
        active=np.empty(num_flows, np.int32),
        region=np.empty(num_flows, np.int32),
        seen=np.empty(num_links, np.int32),
        queue=make_queue(num_flows + 1, 0.0),
    )


def _ways(flows: Flows, share: Floats, table: loop_state.Table) -> tuple[loop_state.Table, ...]:
    """The steps of every path, of every way to choose from and of every detour; the latter two as tables."""
    choices = [one for one in (flows.ways, flows.detours.ways if flows.detours else None) if one is not None]
    every = [flows.paths, *(one.paths for one in choices)]
    shares = [share if share.size else None, *(one.share_fraction for one in choices)]
    entries = np.zeros(sum(paths.links.size for paths in every), loop_state.ENTRY)
    entries["link"] = np.concatenate([paths.links for paths in every])
    parts = [np.ones(p.links.size) if part is None else part for p, part in zip(every, shares, strict=True)]
    entries["share"] = np.concatenate(parts)
    begins = np.cumsum([0, *(paths.links.size for paths in every)])[1:]
    ends = [one.paths.offsets + begin for one, begin in zip(choices, begins, strict=False)]
    ways = np.zeros(sum(one.paths.num_flows for one in choices), loop_state.WAY)
    ways["first"] = np.concatenate([NO_FLOWS, *(offsets[:-1] for offsets in ends)])
    ways["last"] = np.concatenate([NO_FLOWS, *(offsets[1:] for offsets in ends)])
    if flows.ways is not None:
        table["ways_first"], table["ways_last"] = flows.ways.offsets[:-1], flows.ways.offsets[1:]
    if flows.detours is None:
        return entries, ways, np.zeros(0, loop_state.DETOUR)
    detours = np.zeros(flows.detours.at_s.size, loop_state.DETOUR)
    before = 0 if flows.ways is None else flows.ways.paths.num_flows
    detours["at_s"], detours["flow"] = flows.detours.at_s, flows.detours.flow
    offsets = flows.detours.ways.offsets + before
    detours["first"], detours["last"] = offsets[:-1], offsets[1:]
    return entries, ways, detours


def _ranks(rounds: Rounds | None, table: loop_state.Table) -> tuple[loop_state.Table, Ints]:
    """Who is sent again when: fills in the rounds of the flows, and lists the flows of each rank."""
    if rounds is None:
        return np.zeros(0, loop_state.RANK), NO_FLOWS
    several = np.flatnonzero(rounds.num_rounds > 1).astype(np.int32)
    num_ranks = int(max(rounds.sender.max(initial=-1), rounds.receiver.max(initial=-1))) + 1
    sends = np.bincount(rounds.sender[several], minlength=num_ranks)
    # who only receives is waited for by nobody
    receiver = np.where(np.append(sends, 0)[rounds.receiver] > 0, rounds.receiver, -1)
    hears = several[(receiver[several] >= 0) & (receiver[several] != rounds.sender[several])]
    rank = np.concatenate([rounds.sender[several], receiver[hears]])
    order = np.argsort(rank, kind="stable")  # those that it sends first
    ranks = np.zeros(num_ranks, loop_state.RANK)
    ranks["missing"] = np.bincount(rank, minlength=num_ranks)
    ranks["last"] = np.cumsum(ranks["missing"])
    ranks["first"] = ranks["last"] - ranks["missing"]
    ranks["sends"] = ranks["first"] + sends
    table["num_rounds"], table["again_delay_s"] = rounds.num_rounds, rounds.delay_s
    table["sender"], table["receiver"] = rounds.sender, receiver
    return ranks, np.concatenate([several, hears])[order]


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
