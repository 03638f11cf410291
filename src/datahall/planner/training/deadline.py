"""The fewest chips that are done by a deadline, and the layout of the run on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import ceil, inf

import msgspec

from datahall.cluster.cluster import Cluster
from datahall.counted import counted
from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.planner.plan import Objective, Refusal
from datahall.planner.training.choice import best_of, with_reasons
from datahall.planner.training.plan import TrainingPlan, Tried, Weighed, num_steps
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.training.layout.space import WIDE, Options
from datahall.training.setup import Machine, of_any_size
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job
from datahall.units import DAY_S, fmt
from datahall.workload.flops import training_flop_per_token

CHIPS = Objective("chips", "count")
MOST_HALVINGS = 4  # of what lies between a number of chips that is too late and one that is in time


def plan_by_deadline(
    job: Job,
    machine: Machine,
    deadline_s: float,
    num_tokens: float,
    framework: Framework,
    *,
    options: Options = WIDE,
    most_chips: int = MOST_CHIPS,
    operated: Callable[[TrainingPlan], TrainingPlan] = lambda plan: plan,
) -> TrainingPlan:
    """The fewest chips, in whole servers, that are done by a deadline; at most so many.

    Powers of two of them and three halves are tried until one is in time, then numbers between it and the one before.
    `operated` adds to a plan what failures leave of it, so that a run is in time with them.
    """
    kept = job.books(framework)
    one_of_it = of_any_size(machine)
    needed = _ideal_chips(job, one_of_it, deadline_s, num_tokens)
    tries = _Tries(deadline_s)

    def on(num_chips: int, above: int) -> TrainingPlan:
        step_s = deadline_s / num_steps(job, num_tokens)

        def within(limit_s: float) -> TrainingPlan:
            plan = best_of(
                job, machine, num_chips, num_tokens, framework, kept, options, within_s=limit_s, above=above
            )
            return operated(plan)

        plan = within(step_s)
        late = plan.elapsed_s / deadline_s
        in_time_s = step_s * plan.duration_s / plan.elapsed_s
        if late > 1.0 and plan.fastest_s <= in_time_s:
            return within(in_time_s)  # a faster layout than the simplest is in time with its failures
        return plan

    below = 0
    for num_chips in _counts(one_of_it, most_chips):
        if num_chips < needed and (num_chips < most_chips or most_chips == MOST_CHIPS):
            below = num_chips
            continue
        plan = tries.add(num_chips, partial(on, num_chips, below))
        if plan is None:
            if tries.weighed and num_chips > job.global_batch * one_of_it.num_domain:
                break  # more chips than the batch can feed
        elif plan.elapsed_s <= deadline_s:
            server = _server(one_of_it)
            return _in_time(_fewest(plan, below, server, tries, on), server, tries)
        elif tries.no_longer_help:
            break
        below = num_chips
    raise _too_late(tries, needed, job, most_chips)


class _Tries:
    """Numbers of chips that were tried for a deadline: the plan on each, or why there is none."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.counts: list[Tried] = []
        self.weighed: list[TrainingPlan] = []
        self.refused: list[Refusal] = []

    def add(self, num_chips: int, planned: Callable[[], TrainingPlan]) -> TrainingPlan | None:
        """The plan on so many chips; none where it is refused."""
        try:
            plan = planned()
        except (InfeasibleError, ScenarioError) as error:
            self.counts.append(Tried(num_chips, 0))
            self.refused.append(Refusal(what=counted(num_chips, "chip"), why=error.message, hint=error.hint))
            return None
        plan = msgspec.structs.replace(plan, num_asked=plan.num_chips)  # what would stay idle is not taken
        self.counts.append(Tried(num_chips, plan.num_chips))
        self.weighed.append(plan)
        return plan

    @property
    def no_longer_help(self) -> bool:
        """Whether none of the last three plans is faster than the best before them."""
        times_s = [plan.elapsed_s for plan in self.weighed]
        return len(times_s) > 3 and min(times_s[:-3]) <= min(times_s[-3:])

    @property
    def fewest_first(self) -> tuple[Weighed, ...]:
        """The best on each number of chips that was used."""
        used = {plan.num_chips: Weighed(plan.chosen, plan.elapsed_s) for plan in self.weighed}
        return tuple(used[count] for count in sorted(used))


def _fewest(
    plan: TrainingPlan, below: int, server: int, tries: _Tries, on: Callable[[int, int], TrainingPlan]
) -> TrainingPlan:
    """The plan on the fewest chips in time between a number that is not and one that is, in a few halvings."""
    for _ in range(MOST_HALVINGS):
        middle = (below + plan.num_chips) // 2 // server * server
        if middle <= below:
            break
        other = tries.add(middle, partial(on, middle, below))
        if other is not None and other.elapsed_s <= tries.deadline_s:
            plan = other
        else:
            below = middle
    return plan


def _in_time(plan: TrainingPlan, server: int, tries: _Tries) -> TrainingPlan:
    return msgspec.structs.replace(
        with_reasons(plan),
        objective=CHIPS,
        refusals=tuple(tries.refused),
        deadline_s=tries.deadline_s,
        weighed=tries.fewest_first,
        tried=tuple(sorted(tries.counts)),
        in_servers=server > 1 and not any(one.num_chips % server for one in tries.counts),
    )


def _ideal_chips(job: Job, cluster: Cluster, deadline_s: float, num_tokens: float) -> float:
    """Chips that would be enough at the peak: fewer need no look."""
    work_flop = num_tokens * float(training_flop_per_token(job.model, job.seq))
    return work_flop / (deadline_s * cluster.chip.peak(job.precision.compute))


def _server(cluster: Cluster) -> int:
    """Chips of a server."""
    return min(8, max(1, cluster.num_domain))


def _counts(cluster: Cluster, most: int = MOST_CHIPS) -> Iterator[int]:
    """Whole servers: 1, 2, 3, 4, 6, 8, 12, … times what stands in one, and the most there are."""
    server = _server(cluster)
    yield from (count for count in (1, 2, 4) if count < min(server, most))
    size = server
    while size < most:
        yield size
        if size > server and size * 3 // 2 < most:
            yield size * 3 // 2
        size *= 2
    yield most


def _too_late(tries: _Tries, needed: float, job: Job, most_chips: int) -> InfeasibleError:
    late = f"no number of chips trains {job.model.name} in {fmt(tries.deadline_s, 's')}"
    if not tries.weighed and tries.refused:
        last = tries.refused[-1]
        return InfeasibleError(last.why, field="deadline", hint=last.hint)
    if not tries.weighed:
        return InfeasibleError(
            f"{late}: at their peak it would take {needed:,.0f}, and {MOST_CHIPS:,} are the most that are weighed",
            field="deadline",
            hint="a longer deadline, or fewer tokens",
        )
    best = min(tries.weighed, key=lambda one: one.elapsed_s)
    if best.elapsed_s == inf:
        return InfeasibleError(
            f"{late}: interrupted as often as {counted(best.num_chips, 'chip')} are, a run comes to nothing",
            field="deadline",
            hint="a longer deadline, for which fewer chips are enough",
        )
    over = fmt(best.elapsed_s - tries.deadline_s, "s", 3)
    takes = f"takes {fmt(best.elapsed_s, 's')} with interruptions, {over} too long"
    enough = option("deadline", f"{ceil(best.elapsed_s / DAY_S)}d")
    if tries.counts[-1].num_chips == most_chips < MOST_CHIPS:
        return InfeasibleError(
            f"{late}: on the {most_chips:,} chips that there are it {takes}",
            field="deadline",
            hint=f"{enough}, or a larger fabric",
        )
    return InfeasibleError(
        f"{late}: the fastest, {counted(best.num_chips, 'chip')}, {takes}; beyond a global batch of "
        f"{counted(job.global_batch, 'sequence')} more chips have nothing to do",
        field="deadline",
        hint=f"cheapest change: {option('global_batch', 2 * job.global_batch)}, or {enough}",
    )
