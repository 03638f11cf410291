"""One queue under one policy, from its columns to what happened."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError, option
from datahall.events import new_queue, new_trace, stream
from datahall.events.trace import Trace
from datahall.reliability.nodes.availability import at_least
from datahall.scenario.sections.operations.scheduling import USUAL_DEPTH, USUAL_HALF_LIFE_S
from datahall.scenario.words import QueuePolicy
from datahall.scheduling.jobs import Jobs
from datahall.scheduling.loop.advance import advance
from datahall.scheduling.loop.state import (
    ALL_DONE,
    ATTEMPT,
    BY_USAGE,
    CONSERVATIVE,
    COUNTS,
    JOB,
    NEED_LOG,
    OUTAGE,
    POLICY,
    TO_COME,
    Floats,
    Ints,
    Nodes,
    Records,
    State,
)
from datahall.scheduling.machine import Machine
from datahall.scheduling.policies import RULES

FEW_JOBS = 150  # run as they are: to load the compiled loop takes longer
MOST_CELLS = 200_000_000  # of the table of promises
LUCK = 4096  # failures that are drawn at once


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are down from some time on, for a while or for good."""

    nodes: tuple[int, ...]
    start_s: float
    duration_s: float = inf


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every job and policy."""

    depth: int = USUAL_DEPTH  # waiting jobs that are looked at
    half_life_s: float = USUAL_HALF_LIFE_S  # of use, for fair share
    restart_s: float = 0.0  # of a job that begins again, until it works
    mttf_s: float = 0.0  # of one node; 0: none fails by chance
    repair_s: float = 0.0
    outages: tuple[Outage, ...] = ()
    seed: int = 0
    traced: int = 0  # rows of the trace, one for each node of an attempt


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What happened: columns over jobs and over attempts, and chip-seconds by what they were spent on."""

    policy: QueuePolicy
    jobs: Jobs
    machine: Machine
    first_s: Floats  # when each first started; −1: never
    end_s: Floats  # when it was done; −1: never
    promised_s: Floats  # the earliest time that each was ever promised; inf where none was
    restarts: Ints
    attempts: Records
    trace: Trace
    over_s: float  # when the last ended
    num_events: int
    num_failures: int
    useful_s: float
    failed_s: float  # lost since the last checkpoint, to failures
    preempted_s: float  # and to those who come first
    cut_off_s: float  # and to limits that are too short
    placement_s: float  # to lying across more of the network than need be
    restart_s: float  # to beginning again
    idle_s: float  # chips up that nobody had
    blocked_s: float  # of these, while somebody waited who would have fitted in number
    down_s: float

    @property
    def allocated_s(self) -> float:
        """Chip-seconds that jobs held."""
        lost_s = self.failed_s + self.preempted_s + self.cut_off_s + self.placement_s + self.restart_s
        return self.useful_s + lost_s

    @property
    def span_s(self) -> float:
        """From the first submission to the last end."""
        return self.over_s - self.jobs.first_s

    @property
    def is_done(self) -> NDArray[np.bool_]:
        """Which jobs ran to their end."""
        done: NDArray[np.bool_] = (self.end_s >= 0) & ~self.jobs.is_cut_off
        return done


def simulate_queue(jobs: Jobs, machine: Machine, policy: QueuePolicy, asked: Conditions) -> Run:
    """Play a queue of jobs, in the order that they were submitted, under a policy."""
    pieces, whole = in_pieces(jobs, machine)
    state = _state(pieces, machine, policy, asked)
    play = advance.suited_to(_num_events(pieces, machine, asked), FEW_JOBS)
    while (why := play(state)) != ALL_DONE:
        state = _more(state, why, asked)
    return _run(jobs, whole, machine, policy, state)


def _num_events(jobs: Jobs, machine: Machine, asked: Conditions) -> int:
    """How much there is to play, roughly: jobs, and failures while one after the other runs."""
    return jobs.num + int(min(float(num_failures(jobs, machine, asked).sum()), 1e9))


def num_failures(jobs: Jobs, machine: Machine, asked: Conditions) -> Floats:
    """Failures of all nodes that are expected while each job runs, until it is done.

    A stretch of s seconds between two checkpoints, restart included, on n nodes of which each fails at a rate λ takes
    (e^(n λ s) − 1) / (n λ) on average, because one failure loses all of it (A. Duda, Inf. Process. Lett. 16, 1983);
    and it runs only while so many of the nodes are not in repair.
    """
    if not asked.mttf_s:
        return np.zeros(jobs.num)
    rate_per_s = 1.0 / asked.mttf_s
    nodes = nodes_of(jobs, machine)
    stretch_s = np.where(jobs.serving, 0.0, np.minimum(jobs.run_s, jobs.checkpoint_s))
    most = np.minimum(700.0, nodes * rate_per_s * (stretch_s + asked.restart_s))
    slower = np.where(most > 0.0, np.expm1(most) / np.maximum(most, 1e-300), 1.0)
    with np.errstate(over="ignore"):  # more than a float holds are infinitely many
        found: Floats = (
            machine.num_nodes * rate_per_s * jobs.run_s * slower / _enough_up(nodes, machine, asked)
        )
    return found


def _enough_up(nodes: Ints, machine: Machine, asked: Conditions) -> Floats:
    """The share of the time in which so many nodes of a cluster are not in repair, never quite zero."""
    up = asked.mttf_s / (asked.mttf_s + asked.repair_s)
    total = machine.num_nodes
    usual = total * up - 8.0 * (total * up * (1.0 - up)) ** 0.5  # so many are up but for one time in 10^15
    numbers, place = np.unique(nodes, return_inverse=True)
    each = [1.0 if num < usual or num > total else at_least(int(num), total, up) for num in numbers.tolist()]
    found: Floats = np.maximum(np.array(each), 1e-300)[place]
    return found


def in_pieces(jobs: Jobs, machine: Machine) -> tuple[Jobs, Ints]:
    """Jobs of which each starts as one, and whose each is: what is no gang starts node by node, as it can."""
    size = machine.node_chips
    on_one = np.where(jobs.nodes > 0, -(-jobs.chips // np.maximum(1, jobs.nodes)), size)
    several = ~jobs.gang & (jobs.chips > on_one)
    if not several.any():
        return jobs, np.arange(jobs.num)
    nodes = np.where(several, np.maximum(jobs.nodes, -(-jobs.chips // size)), 1)
    whole = np.repeat(np.arange(jobs.num), nodes)
    place = np.arange(whole.size) - np.repeat(np.cumsum(nodes) - nodes, nodes)
    made = jobs.taken(whole)
    each, more = jobs.chips // nodes, jobs.chips % nodes
    chips = np.where(several[whole], each[whole] + (place < more[whole]), jobs.chips[whole])
    asked = np.where(several[whole], 1, jobs.nodes[whole])
    return msgspec.structs.replace(made, chips=chips, nodes=asked), whole


def nodes_of(jobs: Jobs, machine: Machine) -> Ints:
    """Nodes that each job takes: as it asks, or as few as hold it."""
    fewest = -(-jobs.chips // machine.node_chips)
    return np.maximum(np.where(jobs.nodes > 0, np.minimum(jobs.nodes, jobs.chips), fewest), fewest)


def too_large(jobs: Jobs, machine: Machine) -> NDArray[np.bool_]:
    """Which jobs the cluster can never hold."""
    nodes = nodes_of(jobs, machine)
    base, extra = jobs.chips // nodes, jobs.chips % nodes
    at_least = np.array([(machine.chips >= one).sum() for one in range(machine.node_chips + 2)])
    most = machine.node_chips + 1
    wide, tall = at_least[np.minimum(base, most)] < nodes, at_least[np.minimum(base + 1, most)] < extra
    found: NDArray[np.bool_] = wide | tall
    return found


def _state(jobs: Jobs, machine: Machine, policy: QueuePolicy, asked: Conditions) -> State:
    rules, total, num = RULES[policy], machine.num_chips, jobs.num
    table, first = _job_table(jobs, machine)
    most_running = min(num, total)
    row = np.zeros(1, POLICY)
    for name in ("order", "passing", "placement", "preempts", "defragments"):
        row[name] = getattr(rules, name)
    row["depth"] = asked.depth
    plans = rules.passing == CONSERVATIVE
    rows = most_running + 4 * min(asked.depth, num) + 8 if plans else 1
    if rows * machine.num_nodes > MOST_CELLS:
        raise ScenarioError(
            f"promises to {min(asked.depth, num):,} jobs on {machine.num_nodes:,} nodes are too many to keep",
            field="depth",
            hint=f"a smaller {option('depth')}, or {option('policy', 'backfill')}, which promises one",
        )
    return State(
        jobs=table,
        policy=row,
        counts=_counts(machine, asked, jobs.first_s),
        nodes=_nodes(machine),
        places=np.zeros(first, np.int64),
        waiting=np.zeros(num + 1, np.int64),
        running=np.zeros(most_running + 1, np.int64),
        evicted=np.zeros(most_running + 1, np.int64),
        moves=np.zeros(2 * most_running + 2, np.int64),
        victims=np.zeros(most_running + 1, np.int64),
        usage=np.zeros(len(jobs.users)),
        held=np.zeros(len(jobs.users)),
        by_usage=np.arange(len(jobs.users)),
        ranks=np.zeros(len(jobs.users), np.int64),
        merged=np.zeros(num + 1 if rules.order == BY_USAGE else 1, np.int64),
        by_chips=np.zeros(total + 2, np.int64),
        outages=_outages(asked.outages, jobs.first_s),
        gaps=np.zeros(0),
        picks=np.zeros(0, np.int64),
        row_s=np.zeros(rows),
        row_free=np.zeros(rows, np.int64),
        table=np.zeros((rows, machine.num_nodes if plans else 1), np.int64),
        log=np.zeros(num + most_running + 64, ATTEMPT),
        trace=new_trace(asked.traced),
        queue=new_queue(most_running + machine.num_nodes + 4),
    )


def _job_table(jobs: Jobs, machine: Machine) -> tuple[Records, int]:
    table = np.zeros(jobs.num, JOB)
    nodes = nodes_of(jobs, machine)
    limit_s = np.maximum(jobs.limit_s, 0.0)
    columns = {
        "nodes": nodes, "base": jobs.chips // nodes, "extra": jobs.chips % nodes, "chips": jobs.chips,
        "first": np.cumsum(nodes) - nodes, "user": jobs.user, "serving": jobs.serving,
        "preemptible": jobs.preemptible, "cut_off": jobs.is_cut_off, "status": TO_COME, "submit_s": jobs.submit_s,
        "left_s": np.minimum(jobs.run_s, limit_s), "limit_s": limit_s, "checkpoint_s": jobs.checkpoint_s,
        "network_fraction": jobs.network_fraction, "priority": jobs.priority, "queued_s": jobs.submit_s,
        "first_s": -1.0, "end_s": -1.0, "planned_s": inf, "promised_s": inf, "stretch_ratio": 1.0,
    }  # fmt: skip
    for name, column in columns.items():
        table[name] = column
    table["needed"] = _needed(nodes, machine)
    ratios = machine.ratios
    table["worst_ratio"] = 1.0 + jobs.network_fraction * (ratios[-1] / ratios[table["needed"]] - 1.0)
    return table, int(nodes.sum())


def _needed(nodes: Ints, machine: Machine) -> Ints:
    """The tier that so many nodes cross wherever they lie."""
    in_leaf = np.bincount(machine.leaf).max()
    in_pod = np.bincount(machine.pod).max()
    return np.where(nodes <= in_leaf, 0, np.where(nodes <= in_pod, 1, 2))


def _nodes(machine: Machine) -> Nodes:
    sizes = np.arange(machine.node_chips + 2)
    at_least = (machine.chips[None, :] >= sizes[:, None]).sum(axis=1).astype(np.int64)
    groups = int(machine.leaf.max()) + 1
    return Nodes(
        free=machine.chips.astype(np.int64).copy(),
        size=machine.chips.astype(np.int64).copy(),
        down=np.zeros(machine.num_nodes, np.int64),
        leaf=machine.leaf.astype(np.int64),
        pod=machine.pod.astype(np.int64),
        after=np.zeros(machine.num_nodes, np.int64),
        stuck=np.zeros(machine.num_nodes, np.int64),
        at_least=at_least,
        later=at_least.copy(),
        in_leaf=np.zeros(groups, np.int64),
        in_pod=np.zeros(int(machine.pod.max()) + 1, np.int64),
        marked=np.zeros(groups, np.int64),
        ratios=machine.ratios.astype(np.float64),
    )


def _counts(machine: Machine, asked: Conditions, first_s: float) -> Records:
    counts = np.zeros(1, COUNTS)
    counts["now_s"] = first_s
    counts["free"] = counts["up"] = machine.num_chips
    counts["smallest"] = machine.num_chips + 1
    counts["half_life_s"], counts["again_s"] = asked.half_life_s, asked.restart_s
    counts["mttf_s"], counts["repair_s"] = asked.mttf_s, asked.repair_s
    counts["failure_s"] = inf
    return counts


def _outages(outages: Sequence[Outage], first_s: float) -> Records:
    """Nodes that go and come back; what is out before the first job is there is so from then on, if it still is."""
    changes = [
        (node, change, at_s)
        for one in outages
        if one.start_s + one.duration_s > first_s
        for node in one.nodes
        for change, at_s in ((1, max(first_s, one.start_s)), (-1, one.start_s + one.duration_s))
        if at_s < inf
    ]
    changes.sort(key=lambda row: row[2])
    return np.array(changes, OUTAGE)


def _more(s: State, why: int, asked: Conditions) -> State:
    """Room for more attempts, or more failures drawn."""
    if why == NEED_LOG:
        return s._replace(log=np.concatenate([s.log, np.zeros(s.log.size, ATTEMPT)]))
    counts, drawn = s.counts[0], s.gaps.size
    luck = stream(asked.seed, "node failures", drawn)
    gaps = luck.standard_exponential(LUCK)
    picks = luck.integers(0, s.nodes.free.size, LUCK)
    if not drawn:
        first_s = counts["now_s"] + gaps[0] * counts["mttf_s"] / s.nodes.free.size
        counts["failure_s"], counts["luck"] = first_s, 1
    return s._replace(gaps=np.concatenate([s.gaps, gaps]), picks=np.concatenate([s.picks, picks]))


def _run(jobs: Jobs, whole: Ints, machine: Machine, policy: QueuePolicy, s: State) -> Run:
    counts = s.counts[0]
    attempts = s.log[: counts["logged"]].copy()
    attempts["job"] = whole[attempts["job"]]
    s.trace.kept["kind"] = whole[s.trace.kept["kind"]]
    first_s, end_s = np.full(jobs.num, inf), np.full(jobs.num, -1.0)
    started = np.where(s.jobs["first_s"] < 0, inf, s.jobs["first_s"])
    np.minimum.at(first_s, whole, started)
    never = np.zeros(jobs.num, np.bool_)
    np.logical_or.at(never, whole, s.jobs["end_s"] < 0)
    np.maximum.at(end_s, whole, s.jobs["end_s"])
    promised_s = np.full(jobs.num, -inf)
    np.maximum.at(promised_s, whole, s.jobs["promised_s"])
    restarts = np.zeros(jobs.num, np.int64)
    np.add.at(restarts, whole, s.jobs["restarts"])
    sums = {
        name: float(counts[name])
        for name in (
            "useful_s", "failed_s", "preempted_s", "cut_off_s", "placement_s", "restart_s", "idle_s", "blocked_s",
            "down_s",
        )
    }  # fmt: skip
    return Run(
        policy=policy, jobs=jobs, machine=machine, first_s=np.where(first_s == inf, -1.0, first_s),
        end_s=np.where(never, -1.0, end_s), promised_s=promised_s, restarts=restarts, attempts=attempts, trace=s.trace,
        over_s=float(counts["now_s"]), num_events=int(counts["events"]), num_failures=int(counts["failures"]),
        **sums,
    )  # fmt: skip
