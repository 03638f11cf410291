"""The step of a run on the layout that somebody asks for, or on the fastest one where nobody says any."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from datahall.planner.training.choice import best_of
from datahall.planner.training.early import chips_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.training import USUAL_BATCH, TrainingJob
from datahall.training.early import says_layout
from datahall.training.layout.asked import said_precision
from datahall.training.layout.space import WIDE
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.step_memory import StepMemory, step_memory
from datahall.training.setup import framework_of, job_of, machine_of, setup_of
from datahall.training.used import Used, used_by_job

CHIPS_PER_SEQUENCE = (
    16  # of the global batch, where nobody says it and there are more than the usual one feeds
)


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
