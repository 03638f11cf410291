"""A run that must be done by a date: the plan of it on so many chips, and whether that is in time."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from datahall.planner.training.choice import best_of
from datahall.planner.training.money.aim import FEWEST, Aim
from datahall.planner.training.plan import Mended, TrainingPlan
from datahall.training.layout.asked import usual_batch
from datahall.training.layout.space import WIDE, Options
from datahall.training.setup import Machine
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A run that must be done by a date, on any number of chips, and what a plan of it comes to over weeks."""

    job: Job
    states_batch: bool = True  # somebody does; else the batch is the usual one of the chips
    machine: Machine
    num_tokens: float
    framework: Framework
    options: Options = WIDE
    operated: Callable[[TrainingPlan], TrainingPlan]  # adds what failures leave
    done_by: Callable[[TrainingPlan], float]  # when nine of ten runs are done [s]
    mended: Callable[[TrainingPlan, float], Mended | None]  # what ends a run of such a plan by then
    aim: Aim = FEWEST

    def job_on(self, num_chips: int) -> Job:
        """The job on so many chips."""
        if self.states_batch:
            return self.job
        return msgspec.structs.replace(
            self.job, global_batch=usual_batch(num_chips, tunes=self.job.adapters is not None)
        )

    def on(self, num_chips: int, deadline_s: float, above: int = 0) -> TrainingPlan:
        """The plan on at most so many chips; the simplest layout that is in time, if one is."""
        step_s = deadline_s / self.job_on(num_chips).num_steps(self.num_tokens)
        plan = self._within(step_s, num_chips, deadline_s, above)
        if plan.in_time:
            return plan
        in_time_s = step_s * plan.duration_s / (plan.done_s or plan.elapsed_s)
        if plan.fastest_s <= in_time_s:
            return self._within(
                in_time_s, num_chips, deadline_s, above
            )  # a faster one has room for its failures
        return plan

    def _within(self, step_s: float, num_chips: int, deadline_s: float, above: int) -> TrainingPlan:
        job = self.job_on(num_chips)
        found = best_of(
            job, self.machine, num_chips, self.num_tokens, self.framework, job.books(self.framework), self.options,
            within_s=step_s, above=above, step_value=self.aim.step_value,
        )  # fmt: skip
        plan = msgspec.structs.replace(self.operated(found), deadline_s=deadline_s)
        if plan.surely_late(deadline_s):
            return plan
        return msgspec.structs.replace(plan, done_s=self.done_by(plan))
