"""The fewest chips that are done by a deadline, and the layout of the run on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

import msgspec

from datahall.cluster.cluster import Cluster
from datahall.counted import counted
from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.planner.plan import Objective, Refusal
from datahall.planner.training.choice import best_of, with_reasons
from datahall.planner.training.plan import TrainingPlan
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.training.layout.space import WIDE, Options
from datahall.training.memory.bookkeeping import Bookkeeping, bookkeeping_of
from datahall.training.setup import Machine, of_any_size
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job
from datahall.units import DAY_S, fmt
from datahall.workload.flops import training_flop_per_token

CHIPS = Objective("chips", "count")


def plan_by_deadline(
    job: Job,
    machine: Machine,
    deadline_s: float,
    num_tokens: float,
    framework: Framework,
    *,
    books: Bookkeeping | None = None,
    options: Options = WIDE,
) -> TrainingPlan:
    """The fewest chips, in whole servers and powers of two or three halves of them, that are done by a deadline."""
    kept = books or bookkeeping_of(framework)
    one_of_it = of_any_size(machine)
    needed = _ideal_chips(job, one_of_it, deadline_s, num_tokens)
    weighed: list[TrainingPlan] = []
    refused: list[Refusal] = []
    for num_chips in _counts(one_of_it):
        if num_chips < needed:
            continue
        try:
            plan = best_of(job, machine, num_chips, num_tokens, framework, kept, options)
        except (InfeasibleError, ScenarioError) as error:
            refused.append(
                Refusal(
                    what=counted(num_chips, "chip"),
                    why=error.message,
                    hint=error.hint,
                )
            )
            if weighed and num_chips > job.global_batch * one_of_it.num_domain:
                break  # more chips than the batch can feed
            continue
        weighed.append(plan)
        if plan.duration_s <= deadline_s:
            return _in_time(plan, weighed, refused, deadline_s)
        if len(weighed) > 3 and all(one.duration_s <= plan.duration_s for one in weighed[-4:-1]):
            break  # more chips no longer help
    raise _too_late(weighed, refused, deadline_s, needed, job)


def _in_time(
    plan: TrainingPlan, weighed: Sequence[TrainingPlan], refused: Sequence[Refusal], deadline_s: float
) -> TrainingPlan:
    return msgspec.structs.replace(
        with_reasons(plan),
        objective=CHIPS,
        refusals=tuple(refused),
        deadline_s=deadline_s,
        weighed=tuple(one.chosen for one in weighed),
    )


def _ideal_chips(job: Job, cluster: Cluster, deadline_s: float, num_tokens: float) -> float:
    """Chips that would be enough at the peak: fewer need no look."""
    work_flop = num_tokens * float(training_flop_per_token(job.model, job.seq))
    return work_flop / (deadline_s * cluster.chip.peak(job.precision.compute))


def _counts(cluster: Cluster) -> Iterator[int]:
    """Whole servers: 1, 2, 3, 4, 6, 8, 12, … times what stands in one."""
    server = min(8, max(1, cluster.num_domain))
    yield from (count for count in (1, 2, 4) if count < server)
    size = server
    while size <= MOST_CHIPS:
        yield size
        if size > server:
            yield size * 3 // 2
        size *= 2


def _too_late(
    weighed: Sequence[TrainingPlan], refused: Sequence[Refusal], deadline_s: float, needed: float, job: Job
) -> InfeasibleError:
    if not weighed and refused:
        last = refused[-1]
        return InfeasibleError(last.why, field="deadline", hint=last.hint)
    if not weighed:
        return InfeasibleError(
            f"no number of chips trains {job.model.name} in {fmt(deadline_s, 's')}: at their peak it would take "
            f"{needed:,.0f}, and {MOST_CHIPS:,} are the most that are weighed",
            field="deadline",
            hint="a longer deadline, or fewer tokens",
        )
    best = min(weighed, key=lambda one: one.duration_s)
    late = fmt(best.duration_s - deadline_s, "s", 3)
    enough = option("deadline", f"{ceil(best.duration_s / DAY_S)}d")
    return InfeasibleError(
        f"no number of chips trains {job.model.name} in {fmt(deadline_s, 's')}: the fastest, "
        f"{counted(best.num_chips, 'chip')}, takes {fmt(best.duration_s, 's')}, {late} too long; beyond a "
        f"global batch of {counted(job.global_batch, 'sequence')} more chips have nothing to do",
        field="deadline",
        hint=f"cheapest change: {option('global_batch', 2 * job.global_batch)}, or {enough}",
    )
