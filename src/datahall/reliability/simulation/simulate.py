"""Many runs of one job, each with luck of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, sqrt

import numpy as np

from datahall.catalog.entries.failures import COPY_TIERS
from datahall.events.progress import reported
from datahall.events.streams import new_dice
from datahall.reliability.checkpoint.tier import Cadence
from datahall.reliability.nodes.spares import nodes_away
from datahall.reliability.process import Cause, FailureProcess, mttf_s, over
from datahall.reliability.recovery import PREEMPTED, SILENT, Recovery, interrupted
from datahall.reliability.simulation.loop import advance
from datahall.reliability.simulation.outcome import Runs
from datahall.reliability.simulation.state import CAUSE, COPY, RULES, RUN, TIER, Floats, Records, State
from datahall.units import DAY_S

LONG = 10_000_000  # failures that take seconds: meanwhile it is said how far the runs are
SMALL = 500  # failures that the interpreter plays sooner than machine code is loaded
ROOM = 64  # nodes that are away beside the most that are expected
MOST_POINTS = 20_000  # of a curve


def simulate_runs(
    process: FailureProcess,
    plan: Sequence[Cadence],
    recovery: Recovery,
    *,
    until_s: float,
    goal_s: float,
    num_runs: int,
    seed: int,
) -> Runs:
    """Play runs until a time, or until so much work is done, whatever comes first."""
    process = interrupted(process, recovery)
    state = new_state(process, plan, recovery, num_runs, seed)
    state.rules["until_s"], state.rules["goal_s"] = until_s, goal_s
    mean_s = float(state.rules["mttf_s"][0])
    num_failures = num_runs * min(until_s, goal_s) / mean_s
    if num_failures < SMALL:
        advance.interpreted(state, 0, num_runs)
    elif num_failures < LONG:
        advance(state, 0, num_runs)
    else:
        for _ in reported(_played(state, num_runs), num_runs, what="runs simulated"):
            pass
    return Runs(
        causes=process.causes,
        mttf_s=mean_s,
        runs=state.runs,
        counts=state.counts,
        plan=tuple(plan),
        state=state,
    )


def _played(state: State, num_runs: int) -> Iterator[int]:
    """Run after run."""
    for run in range(num_runs):
        advance(state, run, run + 1)
        yield run


def new_state(
    process: FailureProcess,
    plan: Sequence[Cadence],
    recovery: Recovery,
    num_runs: int,
    seed: int,
) -> State:
    """Records of runs that have not begun."""
    most = nodes_away(over(process, DAY_S))  # were all days like the first
    taken = process.num_nodes * recovery.back_s / recovery.preempted_every_s
    dice = new_dice(seed, "run", num_lanes=num_runs)
    return State(
        rules=_rules(process, recovery),
        tiers=_tiers(plan),
        causes=_causes(process.causes, recovery),
        copies=np.zeros(len(plan), COPY),
        runs=np.zeros(num_runs, RUN),
        counts=np.zeros((num_runs, len(process.causes)), np.int64),
        away_s=np.zeros(_room(most)),
        taken_s=np.zeros(_room(taken)),
        out_s=np.zeros(len(recovery.speeds)),
        speeds=np.array(recovery.speeds),
        points=np.zeros((0, 2)),
        keys=np.array([dice.key], np.uint64),
        drawn=dice.num_drawn,
    )


def _room(mean: float) -> int:
    """For so many nodes in the mean, as many as there will ever be at once."""
    return ceil(2.0 * mean + 20.0 * sqrt(mean)) + ROOM


def _rules(process: FailureProcess, recovery: Recovery) -> Records:
    rules = np.zeros(1, RULES)
    one = rules[0]
    one["spares"], one["hot"] = recovery.num_spares, recovery.hot_spares
    one["nodes"], one["elastic"] = process.num_nodes, recovery.elastic_rank
    one["mttf_s"], one["ageing_fraction"] = mttf_s(process), _ageing_fraction(process.causes)
    one["age_s"] = -1.0 if process.age_s is None or not one["ageing_fraction"] else process.age_s
    one["early_s"], one["early_shape"] = process.early_span_s, process.early_shape
    for name in (
        "detect_s",
        "reschedule_s",
        "warmup_s",
        "planned_every_s",
        "planned_s",
        "stall_s",
        "silent_s",
        "bisect_s",
    ):
        one[name] = getattr(recovery, name)
    return rules


def _ageing_fraction(causes: Sequence[Cause]) -> float:
    """Of the failures past early life, those that new nodes have more often."""
    whole = sum(one.rate_per_node_day for one in causes)
    return sum(one.rate_per_node_day for one in causes if one.ages) / whole


def _tiers(plan: Sequence[Cadence]) -> Records:
    tiers = np.zeros(len(plan), TIER)
    for row, one in zip(tiers, plan, strict=True):
        row["outlives"] = sum(1 << COPY_TIERS.index(name) for name in one.tier.outlives)
        row["interval_s"] = one.interval_s
        row["blocking_s"], row["drain_s"] = one.tier.blocking_s, one.tier.drain_s
        row["load_s"] = one.tier.load_s
    return tiers


def _causes(causes: Sequence[Cause], recovery: Recovery) -> Records:
    records = np.zeros(len(causes), CAUSE)
    rates = np.array([cause.rate_per_node_day for cause in causes])
    records["upto"] = np.cumsum(rates) / rates.sum()
    for row, one in zip(records, causes, strict=True):
        row["survives"], row["silent"] = COPY_TIERS.index(one.survives), one.component == SILENT
        row["nodes"], row["repair_fraction"] = one.num_nodes_lost, one.repair_fraction
        row["repair_median_s"], row["repair_sigma"] = max(1.0, one.repair_median_s), one.repair_sigma
        if one.name == PREEMPTED:
            row["back_s"], row["notice_s"] = recovery.back_s, recovery.notice_s
    return records


def played_again(found: Runs, run: int) -> Floats:
    """Time and work of one run, point by point [s, s]: it draws the same luck again."""
    state = found.state._replace(points=np.zeros((MOST_POINTS, 2)))
    state.runs[run] = np.zeros(1, RUN)[0]
    state.counts[run] = 0
    state.drawn[run] = 0
    few = found.num_failures.sum() < SMALL
    (advance.interpreted if few else advance)(state, run, run + 1)
    return state.points[: int(state.runs[run]["num_points"])]
