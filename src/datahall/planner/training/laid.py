"""The step of a run on the layout that somebody asks for, or on the fastest one where nobody says any.

Whatever is asked of a job, its power or its weeks, it is this step of this layout with this global batch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from datahall.errors import DatahallError, InfeasibleError, ScenarioError
from datahall.fabric.design.chips import own_chips
from datahall.planner.training.choice import best_of
from datahall.planner.training.early import check_laid_step
from datahall.reliability.closed_form import expected
from datahall.reliability.job import RunningJob, job_on
from datahall.reliability.run import length_of, run_of
from datahall.reliability.simulation.story import ENOUGH, Story, story_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob, TrainingLayout
from datahall.scenario.usual import CHIPS_PER_SEQUENCE, USUAL_BATCH
from datahall.training.early import says_layout
from datahall.training.layout.asked import said_precision
from datahall.training.layout.space import WIDE
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.step_memory import StepMemory, step_memory
from datahall.training.pipeline.table import usual_order
from datahall.training.setup import Setup, framework_of, job_of, machine_of, setup_of
from datahall.training.used import Used, used_by_job
from datahall.units import fmt

MULTIPLES = tuple(half * 2.0**power for power in range(10) for half in (1.0, 1.5))  # of the chips there are
MOST_COUNTS = 4  # of them that are laid out to end a run in time


class Step(NamedTuple):
    """One simulated step of all chips there are."""

    run: Execution
    setup: Setup
    num_chips: int  # those of them without work included
    is_searched: bool  # nobody said how to lay it out
    used: Used  # what it was computed with, by the attributes of inputs
    memory: StepMemory | None = None  # of a layout that was said; one that was found fits

    @property
    def fits(self) -> bool:
        """Whether it can run."""
        return self.memory is None or self.memory.fits


def laid_step(scenario: Scenario) -> Step:
    """Simulate a step of the layout that is asked for; of all there are, the fastest, where none is."""
    if says_layout(scenario):
        asked = setup_of(scenario)
        run = simulate_step(
            asked.job,
            asked.cluster,
            asked.layout,
            asked.framework,
            order=asked.schedule,
            seed=scenario.root.seed,
        )
        return Step(run, asked, asked.cluster.num_chips, False, asked.used, step_memory(run, asked.books))
    return _searched(scenario)


def laid_within(scenario: Scenario, step: Step, most: int) -> Step | None:
    """The same step on at most so many chips, as many as its layout and a batch that was said divide.

    None where none fits.  Where nobody said a layout, whole scale-up domains, and the fastest layout on them.
    """
    layout, domain = step.run.layout, step.run.cluster.num_domain
    if step.is_searched:
        sizes = iter([most // domain * domain or most])
    else:
        batch, replica = scenario.one(TrainingJob).global_batch or 0, layout.num_chips // layout.dp
        sizes = (
            replica * dp for dp in range(most // replica, 0, -1) if batch % (dp * layout.micro_batch) == 0
        )
    laid = (_laid_on(scenario, size) for size in sizes)
    return next((found for found in laid if found is not None and found.fits), None)


def _laid_on(scenario: Scenario, num_chips: int) -> Step | None:
    """The step on so many chips, or None where what was said does not go with their number."""
    design = msgspec.structs.replace(scenario.one(FabricDesign), chips=num_chips)
    layout = msgspec.structs.replace(scenario.one(TrainingLayout), dp=None)  # the chips left over
    asked = scenario.having(design, layout)
    try:
        check_laid_step(asked)
        return laid_step(asked) if num_chips else None
    except DatahallError:
        return None


def laid_job(scenario: Scenario) -> RunningJob:
    """The job that runs for weeks on that layout; one that does not fit is refused."""
    step = laid_step(scenario)
    if step.memory is not None and not step.fits:
        model = step.run.job.model
        most, limit = fmt(step.memory.most_bytes, "bytes", 3), fmt(step.memory.limit_bytes, "bytes", 3)
        raise InfeasibleError(
            f"{model.title or model.name} as {step.run.layout.words} does not fit: the fullest stage takes {most} of "
            f"{limit}",
            field="chips",
            hint="a layout that takes less memory, or none: then the fastest that fits is looked for",
        )
    return job_on(
        step.setup,
        scenario.catalog,
        step_s=step.run.step_s,
        searched=step.is_searched,
        num_idle=step.num_chips - step.run.cluster.num_chips,
    )


def _searched(scenario: Scenario) -> Step:
    design, asked, framework = scenario.one(FabricDesign), scenario.one(TrainingJob), framework_of(scenario)
    num_chips = design.chips or own_chips(design, scenario.catalog)
    assert num_chips is not None
    machine = lru_cache(maxsize=1)(machine_of(scenario))
    job = msgspec.structs.replace(job_of(scenario), global_batch=usual_batch(scenario, num_chips))
    options = msgspec.structs.replace(WIDE, margin_fraction=asked.margin_fraction)
    plan = best_of(job, machine, num_chips, 1.0, framework, job.books(framework), options)
    run = plan.chosen.execution
    assert run is not None
    precision = said_precision(scenario)
    setup = Setup(
        job=job,
        precision=precision,
        cluster=run.cluster,
        layout=run.layout,
        framework=framework,
        schedule=usual_order(run.layout.vpp),
    )
    used = used_by_job(job, framework, precision)
    return Step(run, setup, num_chips, True, {**used, "chips": num_chips})


def usual_batch(scenario: Scenario, num_chips: int) -> int:
    """The global batch that was said, or a sequence for every 16 chips, at least the usual one."""
    return scenario.one(TrainingJob).global_batch or max(USUAL_BATCH, num_chips // CHIPS_PER_SEQUENCE)


def chips_in_time(scenario: Scenario, story: Story, deadline_s: float) -> int | None:
    """More chips, a multiple of those there are, with which nine of ten runs are done by a deadline, simulated.

    On twice the chips a run is at best twice as fast, so fewer need no look; None where the first few are not enough.
    """
    num_chips, late = story.run.job.num_chips + story.run.job.num_idle, story.elapsed_s.high / deadline_s
    design = scenario.one(FabricDesign)
    counts = [round(times * num_chips) for times in MULTIPLES if times >= late]
    for count in [one for one in counts if one <= MOST_CHIPS][:MOST_COUNTS]:
        more = scenario.having(msgspec.structs.replace(design, chips=count))
        try:
            run = run_of(more, laid_job(more))
            until_s, goal_s = length_of(more, run)
            if goal_s / expected(run).ettr > deadline_s:
                continue
            found = story_of(
                run, until_s=until_s, goal_s=goal_s, num_runs=story.found.runs.size, seed=story.seed,
                enough_fraction=story.enough_fraction,
            )  # fmt: skip
        except (InfeasibleError, ScenarioError):
            continue
        if found.ending_by(deadline_s) >= ENOUGH:
            return count
    return None
