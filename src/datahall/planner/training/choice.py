"""The layout of a run on so many chips.

The closed form ranks every layout; the best are then simulated event by event, and the fastest of those is chosen.
What the choice hangs on, and what is traded for what, is searched here too; `answers/` only words it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import msgspec

from datahall.cluster.cluster import Cluster
from datahall.counted import counted
from datahall.errors import DatahallError, InfeasibleError, ScenarioError, option
from datahall.fabric.collectives.crossing import narrowest
from datahall.planner.plan import objective_of
from datahall.planner.training.candidate import (
    NUM_SIMULATED,
    Candidate,
    chosen_at,
    closed_form,
    front_of,
    leaves_domain,
    simplest,
)
from datahall.planner.training.fewer import faster_on, promised_s
from datahall.planner.training.nearest import nearest_batch, nearest_chips
from datahall.planner.training.plan import Lost, TrainingPlan
from datahall.planner.training.shortage import fits_nowhere
from datahall.planner.training.trade import chips_against_time
from datahall.training.layout.legality import MOST_MICRO
from datahall.training.layout.search import Loss, Search, loss, machine_sensitivity, search, sensitivity
from datahall.training.layout.space import WIDE, Options
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.memory.remedy import layout_offload
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES, Execution, simulate_step
from datahall.training.setup import Machine
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job

MOST_SIMULATED = 24
MOST_COUNTS = 2  # numbers of chips below the one asked for whose layouts are searched whole
NUM_SHOWN = 6  # cuts of the model, and layouts of the front, that a plan lists
TIME = objective_of("time")  # of the run, and so of its steps
StepValue = Callable[[Execution], float]  # what a layout takes of an objective on the same chips


def plan_on_chips(
    job: Job,
    machine: Machine,
    num_chips: int,
    num_tokens: float,
    framework: Framework,
    *,
    options: Options = WIDE,
    num_simulated: int = NUM_SIMULATED,
    step_value: StepValue | None = None,
) -> TrainingPlan:
    """The fastest layout that fits on so many chips; where none does, an `InfeasibleError` with the way out."""
    kept = job.books(framework)
    plan = best_of(
        job, machine, num_chips, num_tokens, framework, kept, options, num_simulated, step_value=step_value
    )
    fronts = chips_against_time(plan.search, machine, plan.chosen, plan.num_steps)
    near = 0 if plan.batch_divides else nearest_batch(plan.search, plan.chosen, machine(num_chips))
    return msgspec.structs.replace(
        with_reasons(plan, machine(num_chips)), chips_front=fronts, near_batch=near
    )


def best_of(
    job: Job,
    machine: Machine,
    num_chips: int,
    num_tokens: float,
    framework: Framework,
    books: Bookkeeping,
    options: Options,
    num_simulated: int = NUM_SIMULATED,
    *,
    within_s: float = inf,
    above: int = 0,
    step_value: StepValue | None = None,
) -> TrainingPlan:
    """The fastest plan on at most so many chips: on all of them, or where that is faster with some left idle.

    On all of them a simpler layout is taken only where it is no slower than the run on fewer, and where some layout
    takes no more than `within_s` for a step, one that does.  Numbers of chips up to `above` need no look.
    With a `step_value` it is that of the simulated layouts which has the least of it, of those within the time.
    """
    refusal: DatahallError | None = None
    on_all: Simulated | None = None
    try:
        on_all = simulated(ranked(job, machine, num_chips, framework, books, options), num_simulated)
    except (InfeasibleError, ScenarioError) as error:
        refusal = error
    than_s = max(on_all.chosen_s(within_s), promised_s(on_all.found)) if on_all is not None else inf
    fewer = [
        simulated(found, num_simulated)
        for found in faster_on(
            job, machine, num_chips, framework, books, options, than_s=than_s, above=above
        )[:MOST_COUNTS]
    ]
    best = min(fewer, key=lambda one: one.chosen_s(within_s), default=None)
    on_fewer_s = inf if best is None else best.chosen_s(within_s)
    if on_all is not None and on_all.fastest_s <= on_fewer_s:
        best = on_all
    if best is None:
        assert refusal is not None
        raise refusal
    limit_s = min(within_s, on_fewer_s) if best.fastest_s <= within_s else on_fewer_s
    least = None if step_value is None else best.least(step_value, within_s)
    plan = chosen_of(best, num_tokens, limit_s, least)
    return msgspec.structs.replace(
        plan,
        hurried=best.simplest(inf) != best.simplest(within_s),
        num_asked=num_chips,
        on_all_s=None if on_all is None else plan.num_steps * on_all.chosen_s(limit_s),
        batch_divides=isinstance(refusal, InfeasibleError) or refusal is None,
    )


def ranked(
    job: Job, machine: Machine, num_chips: int, framework: Framework, books: Bookkeeping, options: Options
) -> Search:
    """Every layout on so many chips, of which at least one fits."""
    found = search(job, machine(num_chips), framework, options=options, books=books)
    if not len(found.space):
        raise _no_layout(job, num_chips)
    if not found.num_fitting:
        raise fits_nowhere(found, machine)
    return found


class Simulated(NamedTuple):
    """The best cuts of a search by their place in its ranking, simulated."""

    found: Search
    runs: dict[int, Execution]

    @property
    def fastest_s(self) -> float:
        """The shortest step."""
        return min(run.step_s for run in self.runs.values())

    def chosen_s(self, within_s: float) -> float:
        """The step of the layout that is chosen."""
        return self.runs[self.simplest(within_s)].step_s

    def simplest(self, within_s: float) -> int:
        """The layout that is chosen, by its place."""
        return simplest(self.found, {place: run.step_s for place, run in self.runs.items()}, within_s)

    def least(self, step_value: StepValue, within_s: float) -> int:
        """The layout with the least of something, by its place; of those within a time, if one is."""
        in_time = [place for place, run in self.runs.items() if run.step_s <= within_s]
        return min(in_time or self.runs, key=lambda place: step_value(self.runs[place]))


def chosen_of(
    simulated: Simulated, num_tokens: float, within_s: float = inf, place: int | None = None
) -> TrainingPlan:
    """The plan that takes a layout by its place, or the simplest of the layouts that are as fast as can be told."""
    found, runs = simulated
    first = simulated.simplest(within_s) if place is None else place
    others = sorted((place for place in runs if place != first), key=lambda place: runs[place].step_s)
    others += [place for place in found.best(NUM_SHOWN) if place not in runs]
    return TrainingPlan(
        objective=TIME,
        chosen=chosen_at(found, first, runs[first]),
        alternatives=tuple(
            Lost(
                closed_form(found, place, runs.get(place)),
                loss=_loss(found, place, runs, first),
                leaves_domain=leaves_domain(found, place) and not leaves_domain(found, first),
            )
            for place in others[: NUM_SHOWN - 1]
        ),
        search=found,
        num_tokens=num_tokens,
        num_simulated=len(runs),
        fastest_s=simulated.fastest_s,
    )


def simulated(found: Search, at_least: int = NUM_SIMULATED) -> Simulated:
    """The best cuts simulated: some at least, and on while the closed form promises a faster one.

    Where the network is narrow the closed form hides more of the exchange than a schedule can, so its first few are
    not the fastest of what it ranks.
    """
    runs: dict[int, Execution] = {}
    for place in found.best(MOST_SIMULATED):
        promised_s = float(found.step_s[found.order[place]])
        if len(runs) >= at_least and promised_s >= min(run.step_s for run in runs.values()):
            break
        runs[place] = simulate_step(found.job, found.cluster, found.layout(place), found.framework)
    return Simulated(found, runs)


def _loss(found: Search, place: int, runs: dict[int, Execution], first: int) -> Loss:
    """How a layout compares with the chosen one: by what was simulated where it was, else by the closed form."""
    if place not in runs:
        return loss(found, int(found.order[place]), first)
    return loss_beside(runs[place], runs[first])


def loss_beside(mine: Execution, best: Execution) -> Loss:
    """How a simulated layout that fits compares with another."""
    own = [name for name in PART_NAMES if name not in OF_WHICH]
    more = {name: getattr(mine.parts, name) - getattr(best.parts, name) for name in own}
    most = max(more, key=lambda name: more[name])
    return Loss(mine.layout, True, 0.0, mine.step_s / best.step_s - 1.0, most.removesuffix("_s"), more[most])


def with_reasons(plan: TrainingPlan, on_all: Cluster | None = None) -> TrainingPlan:
    """A plan with what its choice hangs on; `on_all`: the machine with the chips that stay idle."""
    found, place = plan.search, plan.chosen.place
    return msgspec.structs.replace(
        plan,
        changes=tuple(sensitivity(found, place)),
        machines=tuple(machine_sensitivity(found, place)),
        memory_front=front_of(found, NUM_SHOWN),
        full_bisection=_with_full_bisection(found, plan.step_s, on_all or found.cluster),
        offload=layout_offload(found.job, found.cluster, plan.layout, found.framework, found.books),
    )


def _with_full_bisection(found: Search, here_s: float, on_all: Cluster) -> Candidate | None:
    """The fastest where nothing is narrower than the chips' ports, simulated; None where nothing is.

    Of layouts that cannot be told apart one is taken that is no slower than the step here.
    """
    if narrowest(found.cluster.system, found.cluster.num_chips) is None:
        return None
    steps: list[Candidate] = []
    for cluster in {one.num_chips: one for one in (found.cluster, on_all)}.values():
        wide = msgspec.structs.replace(cluster, system=msgspec.structs.replace(cluster.system, cuts=()))
        there = search(found.job, wide, found.framework, options=found.options, books=found.books)
        if there.num_fitting:
            steps.append(chosen_of(simulated(there), 1.0, here_s).chosen)
    return min(steps, key=lambda one: one.step_s)


def _no_layout(job: Job, num_chips: int) -> ScenarioError:
    """Nothing divides: say what would."""
    most = MOST_MICRO * num_chips * max(WIDE.micro_batch)
    if job.global_batch > most:
        return ScenarioError(
            f"a global batch of {job.global_batch:,} is more than {MOST_MICRO:,} micro-batches on each of "
            f"{counted(num_chips, 'chip')}",
            field="global_batch",
            hint=f"at most {option('global_batch', most)}",
        )
    near = [option("chips", count) for count in nearest_chips(job, num_chips) if count]
    said = f"nearest that divide: {' or '.join(near)}; or another" if near else "another"
    return ScenarioError(
        f"no layout of {job.model.name} divides {counted(num_chips, 'chip')} and a global batch of "
        f"{job.global_batch:,}",
        field="chips",
        hint=f"{said} {option('global_batch')}",
    )
