"""The chips that are done by a deadline with the least of what is wanted, and the layout of the run on them.

Done is a run when nine of ten of its kind are, with their interruptions, as `simulate run` has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, isfinite

import msgspec

from datahall.cluster.cluster import Cluster
from datahall.counted import counted
from datahall.errors import InfeasibleError, ScenarioError
from datahall.planner.plan import FEWEST_CHIPS, Refusal
from datahall.planner.training.choice import with_reasons
from datahall.planner.training.dated import Question
from datahall.planner.training.late import too_late
from datahall.planner.training.money.cost import chip_hours, cost_usd
from datahall.planner.training.plan import TrainingPlan, Tried, Weighed
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.training.setup import of_any_size
from datahall.training.step.step import Job

FEW_SERVERS = 8  # of which all numbers above the fewest are tried
MOST_WORSE = (
    2  # numbers of chips above the fewest that are tried and have no less of the objective, by any way
)
MOST_HALVINGS = 4  # of what lies between a number of chips that is too late and one that is in time


def plan_by_deadline(asked: Question, deadline_s: float, most_chips: int = MOST_CHIPS) -> TrainingPlan:
    """The chips, in whole servers, with which nine of ten runs keep a deadline at the least cost; at most so many.

    Powers of two of them and three halves are tried until one is in time, then numbers between it and the one before:
    the fewest.  Where these are not what is wanted, or cost too much, more are tried while that gives less of it.
    """
    one_of_it = of_any_size(asked.machine)
    needed = _ideal_chips(asked.job, one_of_it, deadline_s, asked.num_tokens)
    tries = _Tries(asked, deadline_s)
    below = 0
    counts = _counts(one_of_it, most_chips)
    for num_chips in counts:
        if num_chips < needed and (num_chips < most_chips or most_chips == MOST_CHIPS):
            below = num_chips
            continue
        plan = tries.add(num_chips, below)
        if plan is None:
            if tries.weighed and num_chips > asked.job_on(num_chips).global_batch * one_of_it.num_domain:
                break  # more chips than the batch can feed
        elif plan.in_time:
            server = _server(one_of_it)
            fewest = _fewest(plan, below, server, tries)
            too_few = tuple(tries.refused)
            few = most_chips <= FEW_SERVERS * server
            more = range(fewest.num_chips + server, most_chips + 1, server) if few else counts
            least = _least(fewest, more, tries, worse=FEW_SERVERS if few else MOST_WORSE)
            return _in_time(least, server, tries, too_few)
        elif tries.no_longer_help:
            break
        below = num_chips
    raise too_late(asked, deadline_s, tries.weighed, tries.refused, needed, _last(tries, most_chips))


def _last(tries: _Tries, most_chips: int) -> int:
    """The chips that there are, where all of them were tried; 0 where there are more."""
    return most_chips if tries.counts and tries.counts[-1].num_chips == most_chips < MOST_CHIPS else 0


class _Tries:
    """Numbers of chips that were tried for a deadline: the plan on each, or why there is none."""

    def __init__(self, asked: Question, deadline_s: float) -> None:
        self.asked = asked
        self.deadline_s = deadline_s
        self.counts: list[Tried] = []
        self.weighed: list[TrainingPlan] = []
        self.refused: list[Refusal] = []

    def add(self, num_chips: int, above: int) -> TrainingPlan | None:
        """The plan on so many chips; none where it is refused."""
        try:
            plan = self.asked.on(num_chips, self.deadline_s, above)
        except (InfeasibleError, ScenarioError) as error:
            self.counts.append(Tried(num_chips, 0))
            self.refused.append(Refusal(what=counted(num_chips, "chip"), why=error.message, hint=error.hint))
            return None
        plan = msgspec.structs.replace(plan, num_asked=plan.num_chips)  # what would stay idle is not taken
        plan = self.asked.aim.priced(plan)
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
        used = {
            plan.num_chips: Weighed(
                plan.chosen,
                plan.elapsed_s,
                plan.done_s,
                plan.in_time,
                plan.duration_s,
                _known(cost_usd(plan)),
                _known(chip_hours(plan)),
            )
            for plan in self.weighed
        }
        return tuple(used[count] for count in sorted(used))


def _fewest(plan: TrainingPlan, below: int, server: int, tries: _Tries) -> TrainingPlan:
    """The plan on the fewest chips in time between a number that is not and one that is, in a few halvings."""
    for _ in range(MOST_HALVINGS):
        middle = (below + plan.num_chips) // 2 // server * server
        if middle <= below:
            break
        other = tries.add(middle, below)
        if other is not None and other.in_time:
            plan = other
        else:
            below = middle
    return plan


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def _least(fewest: TrainingPlan, counts: Iterable[int], tries: _Tries, *, worse: int) -> TrainingPlan:
    """Of the plans in time the one with the least of the objective, within the budget if one is.

    More chips are tried until so many numbers of them one after the other give no less of it, by no way to have them:
    one more way that is allowed never ends the walk of another.
    """
    aim = tries.asked.aim
    if aim.objective == FEWEST_CHIPS and not aim.over(fewest):
        return fewest
    left = worse
    best: dict[str, float] = {}
    for plan in tries.weighed:
        _lowered(best, aim.pays(plan) if plan.in_time else {})
    above = fewest.num_chips
    for num_chips in counts:
        if not left:
            break
        if all(one.num_chips != num_chips for one in tries.counts):
            found = tries.add(num_chips, above)
            pays = {} if found is None or not found.in_time else aim.pays(found)
            left = worse if _lowered(best, pays) else left - 1
        above = num_chips
    return min((plan for plan in tries.weighed if plan.in_time), key=aim.key)


def _lowered(best: dict[str, float], pays: dict[str, float]) -> bool:
    """Whether some way is paid less than its least so far, which it becomes."""
    less = {way: value for way, value in pays.items() if value < best.get(way, inf)}
    best.update(less)
    return bool(less)


def _in_time(plan: TrainingPlan, server: int, tries: _Tries, too_few: tuple[Refusal, ...]) -> TrainingPlan:
    return msgspec.structs.replace(
        with_reasons(plan),
        objective=tries.asked.aim.objective,
        refusals=too_few,
        weighed=tries.fewest_first,
        tried=tuple(sorted(tries.counts)),
        in_servers=server > 1 and not any(one.num_chips % server for one in tries.counts),
    )


def _ideal_chips(job: Job, cluster: Cluster, deadline_s: float, num_tokens: float) -> float:
    """Chips that would be enough at the peak: fewer need no look."""
    work_flop = num_tokens * job.flop_per_token
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
