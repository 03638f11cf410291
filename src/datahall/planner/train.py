"""Plan a training run: on so many chips the best layout, or for a deadline the fewest chips and then the layout.

    duration = ⌈tokens / (global batch · sequence)⌉ · step

The closed form ranks every layout; the best few are then simulated event by event, and the fastest of those is chosen.
What the choice hangs on, and what is traded for what, is searched here too; `answers/` only words it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

import msgspec

from datahall.cluster.cluster import Cluster
from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.planner.plan import Alternative, Objective, Plan, Refusal
from datahall.planner.shortage import fits_nowhere
from datahall.planner.trade import MachineChange, OnChips, chips_against_time, machine_changes
from datahall.planner.training_candidate import Candidate, closed_form, front_of
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Loss, Search, loss, search, sensitivity
from datahall.training.layout.space import WIDE, Options, layout_space
from datahall.training.memory.bookkeeping import Bookkeeping, bookkeeping_of
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES, Execution, simulate_step
from datahall.training.setup import Machine, of_any_size
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job, step_band
from datahall.units import DAY_S, fmt
from datahall.workload.flops import mfu_fraction, training_flop_per_token

NUM_SIMULATED = 3
NUM_SHOWN = 6  # cuts of the model, and layouts of the front, that a plan lists
STEP_TIME = Objective("step time", "s")
CHIPS = Objective("chips", "count")


class TrainingPlan(Plan[Candidate], frozen=True, kw_only=True):
    """The chosen layout of a run on a cluster, the ranking behind it, and what it hangs on."""

    search: Search
    num_tokens: float
    deadline_s: float | None = None
    weighed: tuple[Candidate, ...] = ()  # for a deadline: the best on each number of chips, fewest first
    changes: tuple[tuple[str, Loss], ...] = ()  # one choice of the layout changed
    machines: tuple[MachineChange, ...] = ()  # the machine changed
    memory_front: tuple[Candidate, ...] = ()  # layouts that no other beats in both time and memory
    chips_front: tuple[OnChips, ...] = ()  # the same run on fewer and on more chips

    @property
    def job(self) -> Job:
        return self.search.job

    @property
    def cluster(self) -> Cluster:
        return self.search.cluster

    @property
    def layout(self) -> Layout:
        return self.chosen.layout

    @property
    def num_chips(self) -> int:
        return self.chosen.num_chips

    @property
    def step_s(self) -> float:
        """Of the chosen layout, as simulated."""
        return self.chosen.step_s

    @property
    def closed_step_s(self) -> float:
        return self.chosen.closed_step_s

    @property
    def num_steps(self) -> int:
        return num_steps(self.job, self.num_tokens)

    @property
    def duration_s(self) -> float:
        """Time of all steps; failures, restarts and evaluation are not in it."""
        return self.num_steps * self.step_s

    @property
    def band(self) -> tuple[float, float]:
        """Between which shares of the predicted step eight of ten measured ones are expected."""
        return step_band(self.job, self.cluster, self.search.framework)

    @property
    def tokens_per_s(self) -> float:
        return self.job.global_batch * self.job.seq / self.step_s

    @property
    def mfu_fraction(self) -> float:
        return self.mfu_of(self.chosen)

    def mfu_of(self, candidate: Candidate) -> float:
        """Model FLOPs utilisation of a candidate, causal attention, dense peak of the compute format."""
        job = self.job
        peak = self.cluster.chip.peak(job.precision.compute)
        per_token = float(training_flop_per_token(job.model, job.seq))
        rate = job.global_batch * job.seq / candidate.step_s
        return float(mfu_fraction(rate, per_token, candidate.num_chips, peak))


def num_steps(job: Job, num_tokens: float) -> int:
    """Steps of a run: whole global batches until the tokens are used up."""
    return max(1, ceil(num_tokens / (job.global_batch * job.seq) - 1e-9))


def plan_on_chips(
    job: Job,
    machine: Machine,
    num_chips: int,
    num_tokens: float,
    framework: Framework,
    *,
    books: Bookkeeping | None = None,
    options: Options = WIDE,
    num_simulated: int = NUM_SIMULATED,
) -> TrainingPlan:
    """The fastest layout that fits on so many chips; where none does, an `InfeasibleError` with the way out."""
    ranked = _ranked(job, machine, num_chips, framework, books or bookkeeping_of(framework), options)
    plan = _plan(ranked, num_tokens, num_simulated)
    fronts = chips_against_time(ranked, machine, plan.chosen, plan.num_steps)
    return msgspec.structs.replace(_with_reasons(plan), chips_front=fronts)


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
            plan = _plan(_ranked(job, machine, num_chips, framework, kept, options), num_tokens)
        except (InfeasibleError, ScenarioError) as error:
            refused.append(
                Refusal(
                    what=f"{num_chips:,} chip{'s' if num_chips != 1 else ''}",
                    why=error.message,
                    hint=error.hint,
                )
            )
            if weighed and num_chips > job.global_batch * one_of_it.chip.num_scale_up_domain:
                break  # more chips than the batch can feed
            continue
        weighed.append(plan)
        if plan.duration_s <= deadline_s:
            return _in_time(plan, weighed, refused, deadline_s)
        if len(weighed) > 3 and all(one.duration_s <= plan.duration_s for one in weighed[-4:-1]):
            break  # more chips no longer help
    raise _too_late(weighed, refused, deadline_s, needed, job)


def _ranked(
    job: Job, machine: Machine, num_chips: int, framework: Framework, books: Bookkeeping, options: Options
) -> Search:
    """Every layout on so many chips, of which at least one fits."""
    found = search(job, machine(num_chips), framework, options=options, books=books)
    if not len(found.space):
        raise _no_layout(job, num_chips)
    if not found.num_fitting:
        raise fits_nowhere(found, machine)
    return found


def _plan(found: Search, num_tokens: float, num_simulated: int = NUM_SIMULATED) -> TrainingPlan:
    """The best cuts of the model simulated, and the fastest of them chosen."""
    runs = {
        place: simulate_step(found.job, found.cluster, found.layout(place), found.framework)
        for place in found.best(num_simulated)
    }
    first = min(runs, key=lambda place: runs[place].step_s)
    chosen = closed_form(found, first, runs[first])
    others = sorted((place for place in runs if place != first), key=lambda place: runs[place].step_s)
    others += [place for place in found.best(NUM_SHOWN) if place not in runs]
    return TrainingPlan(
        objective=STEP_TIME,
        chosen=chosen,
        alternatives=tuple(
            Alternative(closed_form(found, place, runs.get(place)), _why(found, place, runs, first))
            for place in others
        ),
        refusals=_refusals(found),
        search=found,
        num_tokens=num_tokens,
    )


def _why(found: Search, place: int, runs: dict[int, Execution], first: int) -> str:
    """Why a layout is not the chosen one: by what was simulated where it was, else by the closed form."""
    if place not in runs:
        return loss(found, int(found.order[place])).reason
    mine, best = runs[place], runs[first]
    more = {
        name: getattr(mine.parts, name) - getattr(best.parts, name)
        for name in PART_NAMES
        if name not in OF_WHICH
    }
    part = max(more, key=lambda name: more[name])
    slower = fmt(mine.step_s / best.step_s - 1.0, "fraction")
    return f"{slower} slower: {fmt(more[part], 's', 3)} more {PART_NAMES[part]}"


def _refusals(found: Search) -> tuple[Refusal, ...]:
    lost = len(found.space) - found.num_fitting
    if not lost:
        return ()
    what = f"{lost:,} of {len(found.space):,} legal layouts"
    return (Refusal(what=what, why="take more memory than a chip, or its host, has"),)


def _with_reasons(plan: TrainingPlan) -> TrainingPlan:
    """A plan with what its choice hangs on."""
    found, place = plan.search, plan.chosen.place
    return msgspec.structs.replace(
        plan,
        changes=tuple(sensitivity(found, place)),
        machines=machine_changes(found, place),
        memory_front=front_of(found, NUM_SHOWN),
    )


def _in_time(
    plan: TrainingPlan, weighed: Sequence[TrainingPlan], refused: Sequence[Refusal], deadline_s: float
) -> TrainingPlan:
    return msgspec.structs.replace(
        _with_reasons(plan),
        objective=CHIPS,
        refusals=(*refused, *plan.refusals),
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


class Nearest(NamedTuple):
    """Numbers of chips that some layout divides, next below and next above; 0 where there is none near."""

    below: int
    above: int


PLAIN = Options(zero=(1,), micro_batch=(1,), recompute=("none",))
MOST_TRIED = 512


def nearest_chips(job: Job, num_chips: int) -> Nearest:
    """Chips nearest to a number on which the job has a legal layout at all."""

    def first(counts: range) -> int:
        return next((count for count in counts if len(layout_space(job, count, PLAIN))), 0)

    below = first(range(num_chips - 1, max(0, num_chips - MOST_TRIED), -1))
    return Nearest(below, first(range(num_chips + 1, num_chips + MOST_TRIED)))


def _no_layout(job: Job, num_chips: int) -> ScenarioError:
    """Nothing divides: say what would."""
    near = [option("chips", count) for count in nearest_chips(job, num_chips) if count]
    said = f"nearest that divide: {' or '.join(near)}; or another" if near else "another"
    return ScenarioError(
        f"no layout of {job.model.name} divides {num_chips:,} chips and a global batch of {job.global_batch:,}",
        field="chips",
        hint=f"{said} {option('global_batch')}",
    )


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
        f"no number of chips trains {job.model.name} in {fmt(deadline_s, 's')}: the fastest, {best.num_chips:,} chips, "
        f"takes {fmt(best.duration_s, 's')}, {late} too long; beyond a global batch of {job.global_batch:,} sequences "
        "more chips have nothing to do",
        field="deadline",
        hint=f"cheapest change: {option('global_batch', 2 * job.global_batch)}, or {enough}",
    )
