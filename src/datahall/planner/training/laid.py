"""The step of a run on the layout that somebody asks for, or on the fastest one where nobody says any."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from datahall.errors import DatahallError
from datahall.planner.training.choice import best_of
from datahall.planner.training.early import check_laid_step, chips_of
from datahall.scenario.scenario import Scenario, section_name
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob, TrainingLayout
from datahall.scenario.usual import CHIPS_PER_SEQUENCE, USUAL_BATCH
from datahall.training.early import says_layout
from datahall.training.layout.asked import said_precision
from datahall.training.layout.space import WIDE
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.step_memory import StepMemory, step_memory
from datahall.training.setup import framework_of, job_of, machine_of, setup_of
from datahall.training.used import Used, used_by_job


class Step(NamedTuple):
    """One simulated step of all chips there are."""

    run: Execution
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
        return Step(run, asked.cluster.num_chips, False, asked.used, step_memory(run, asked.books))
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
    changed = {section_name(type(one)): (one,) for one in (design, layout)}
    asked = msgspec.structs.replace(scenario, sections={**scenario.sections, **changed})
    try:
        check_laid_step(asked)
        return laid_step(asked) if num_chips else None
    except DatahallError:
        return None


def _searched(scenario: Scenario) -> Step:
    num_chips, framework = chips_of(scenario), framework_of(scenario)
    assert num_chips is not None
    machine = lru_cache(maxsize=1)(machine_of(scenario))
    job = msgspec.structs.replace(job_of(scenario), global_batch=usual_batch(scenario, num_chips))
    plan = best_of(job, machine, num_chips, 1.0, framework, job.books(framework), WIDE)
    run = plan.chosen.execution
    assert run is not None
    precision = said_precision(scenario)
    used = used_by_job(job, framework, precision)
    return Step(run, num_chips, True, {**used, "chips": num_chips})


def usual_batch(scenario: Scenario, num_chips: int) -> int:
    """The global batch that was said, or a sequence for every 16 chips, at least the usual one."""
    return scenario.one(TrainingJob).global_batch or max(USUAL_BATCH, num_chips // CHIPS_PER_SEQUENCE)
