"""Plan a training run: on so many chips the best layout, or for a deadline the fewest chips and then the layout.

    duration = tokens / (global batch · sequence) · step

The closed form ranks every layout; the best few are then played event by event, and the fastest of those is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.server import Server
from datahall.cluster.cluster import cluster_of
from datahall.errors import InfeasibleError, ScenarioError
from datahall.planner.no_room import no_room
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Search, search
from datahall.training.layout.space import WIDE, Options, divisors
from datahall.training.memory.bookkeeping import Bookkeeping, bookkeeping_of
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job
from datahall.units import fmt
from datahall.workload.flops import mfu_fraction, training_flop_per_token

MOST_CHIPS = 2**20
NUM_PLAYED = 3


class TrainingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen layout of a run on a cluster, with the whole ranking behind it."""

    search: Search
    num_tokens: float
    place: int = 0  # of the chosen layout in the ranking
    played: dict[int, Execution] = {}  # by place: the best few, event by event

    @property
    def layout(self) -> Layout:
        return self.search.layout(self.place)

    @property
    def num_chips(self) -> int:
        return self.search.cluster.num_chips

    @property
    def step_s(self) -> float:
        """Of the chosen layout: as played, or in closed form where nothing was."""
        return self.played[self.place].step_s if self.place in self.played else self.closed_step_s

    @property
    def closed_step_s(self) -> float:
        return float(self.search.step_s[self.search.order[self.place]])

    @property
    def num_steps(self) -> int:
        job = self.search.job
        return ceil(self.num_tokens / (job.global_batch * job.seq))

    @property
    def duration_s(self) -> float:
        """Time of all steps; failures, restarts and evaluation are not in it."""
        return self.num_steps * self.step_s

    @property
    def chip_hours(self) -> float:
        return self.duration_s / 3600.0 * self.num_chips

    @property
    def tokens_per_s(self) -> float:
        job = self.search.job
        return job.global_batch * job.seq / self.step_s

    @property
    def mfu_fraction(self) -> float:
        return self.mfu_of(self.step_s)

    def mfu_of(self, step_s: float) -> float:
        """Model FLOPs utilisation of a step of that length, causal attention, dense peak of the compute format."""
        job = self.search.job
        peak = self.search.cluster.chip.peak(job.precision.compute)
        per_token = float(training_flop_per_token(job.model, job.seq))
        return float(mfu_fraction(job.global_batch * job.seq / step_s, per_token, self.num_chips, peak))

    @property
    def total_bytes(self) -> float:
        return float(self.search.memory.total_bytes[self.search.order[self.place]])

    @property
    def headroom_bytes(self) -> float:
        return float(self.search.memory.headroom_bytes[self.search.order[self.place]])


def plan_on_chips(
    job: Job,
    chip: Chip,
    num_chips: int,
    num_tokens: float,
    framework: Framework,
    *,
    books: Bookkeeping | None = None,
    options: Options = WIDE,
    servers: Iterable[Server] = (),
    num_played: int = NUM_PLAYED,
) -> TrainingPlan:
    """The fastest layout that fits on so many chips; where none does, an `InfeasibleError` with the way out.

    The best `num_played` cuts of the model are played event by event, and the fastest of them is chosen.
    """
    kept = books or bookkeeping_of(framework)
    cluster = cluster_of(chip, num_chips, servers=servers)
    found = search(job, cluster, framework, options=options, books=kept)
    if not len(found.space):
        raise _no_layout(job, num_chips)
    if not found.num_fitting:
        raise no_room(found)
    played = {
        place: simulate_step(job, cluster, found.layout(place), framework) for place in found.best(num_played)
    }
    chosen = min(played, key=lambda place: played[place].step_s, default=0)
    return TrainingPlan(search=found, num_tokens=num_tokens, place=chosen, played=played)


def chips_against_time(
    plan: TrainingPlan, *, halvings: int = 2, doublings: int = 1
) -> tuple[TrainingPlan, ...]:
    """The same run on fewer and on more chips in closed form, those left out on which nothing fits or divides.

    Fewest chips first, the plan itself among them.
    """
    found, counts = plan.search, []
    for power in range(-halvings, doublings + 1):
        count = plan.num_chips * 2**power
        if count == int(count) and power:
            counts.append(int(count))
    others = []
    for count in counts:
        cluster = cluster_of(found.cluster.chip, count)
        there = search(found.job, cluster, found.framework, books=found.books)
        if there.num_fitting:
            others.append(TrainingPlan(search=there, num_tokens=plan.num_tokens))
    return tuple(sorted((*others, plan), key=lambda one: one.num_chips))


class DeadlinePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest cluster that is done in time, and the smaller and larger ones that were weighed."""

    chosen: TrainingPlan
    weighed: tuple[TrainingPlan, ...]  # by chips
    deadline_s: float


def plan_by_deadline(
    job: Job,
    chip: Chip,
    deadline_s: float,
    num_tokens: float,
    framework: Framework,
    *,
    books: Bookkeeping | None = None,
    options: Options = WIDE,
    servers: Iterable[Server] = (),
) -> DeadlinePlan:
    """The fewest chips, in whole servers and powers of two or three halves of them, that are done by a deadline."""
    kept = books or bookkeeping_of(framework)
    needed = _ideal_chips(job, chip, deadline_s, num_tokens)
    weighed: list[TrainingPlan] = []
    reason: InfeasibleError | ScenarioError | None = None
    for num_chips in _counts(chip):
        if num_chips < needed:
            continue
        try:
            plan = plan_on_chips(
                job, chip, num_chips, num_tokens, framework, books=kept, options=options, servers=servers
            )
        except (InfeasibleError, ScenarioError) as error:
            reason = error
            if weighed and num_chips > job.global_batch * chip.num_scale_up_domain:
                break  # more chips than the batch can feed
            continue
        weighed.append(plan)
        if plan.duration_s <= deadline_s:
            return DeadlinePlan(chosen=plan, weighed=tuple(weighed), deadline_s=deadline_s)
        if len(weighed) > 3 and all(one.duration_s <= plan.duration_s for one in weighed[-4:-1]):
            break  # more chips no longer help
    raise _too_late(weighed, deadline_s, reason, job)


def _ideal_chips(job: Job, chip: Chip, deadline_s: float, num_tokens: float) -> float:
    """Chips that would be enough at the peak: fewer need no look."""
    work_flop = num_tokens * float(training_flop_per_token(job.model, job.seq))
    return work_flop / (deadline_s * chip.peak(job.precision.compute))


def _counts(chip: Chip) -> Iterator[int]:
    """Whole servers: 1, 2, 3, 4, 6, 8, 12, … times what stands in one."""
    server = min(8, max(1, chip.num_scale_up_domain))
    yield from (count for count in (1, 2, 4) if count < server)
    size = server
    while size <= MOST_CHIPS:
        yield size
        if size > server:
            yield size * 3 // 2
        size *= 2


def _no_layout(job: Job, num_chips: int) -> ScenarioError:
    """Nothing divides: say what would."""
    near = [count for count in divisors(job.global_batch * 64) if count <= num_chips]
    power = 2 ** (num_chips.bit_length() - 1)
    options = sorted({power, *near[-1:]})
    return ScenarioError(
        f"no layout of {job.model.name} divides {num_chips:,} chips and a global batch of {job.global_batch:,}",
        hint=f"nearest chips that divide: {', '.join(f'{one:,}' for one in options)}; or another --global-batch",
    )


def _too_late(
    weighed: list[TrainingPlan], deadline_s: float, reason: InfeasibleError | ScenarioError | None, job: Job
) -> InfeasibleError:
    if not weighed:
        assert reason is not None
        return InfeasibleError(reason.message, where=reason.where, hint=reason.hint)
    best = min(weighed, key=lambda one: one.duration_s)
    late = fmt(best.duration_s - deadline_s, "s", 3)
    return InfeasibleError(
        f"no number of chips trains {job.model.name} in {fmt(deadline_s, 's')}: the fastest, {best.num_chips:,} chips, "
        f"takes {fmt(best.duration_s, 's')}, {late} too long",
        where=f"a global batch of {job.global_batch:,} sequences: beyond it more chips have nothing to do",
        hint=f"cheapest change: --global-batch {2 * job.global_batch}, or --deadline {best.duration_s / 86400:.0f}d",
    )
