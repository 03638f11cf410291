"""The step of a run on the layout that somebody asks for, or on the fastest one where nobody says any.

Whatever is asked of a job, its power or its weeks, it is this step of this layout with this global batch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from datahall.fabric.design.chips import own_chips
from datahall.planner.training.choice import best_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob
from datahall.training.early import says_layout
from datahall.training.layout.asked import said_precision
from datahall.training.layout.space import WIDE
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.step_memory import StepMemory, step_memory
from datahall.training.setup import Setup, framework_of, job_of, machine_of, setup_of
from datahall.training.used import Used, used_by_job


class Step(NamedTuple):
    """One simulated step of all chips there are."""

    execution: Execution
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


def _searched(scenario: Scenario) -> Step:
    design, asked, framework = scenario.one(FabricDesign), scenario.one(TrainingJob), framework_of(scenario)
    num_chips = design.chips or own_chips(design, scenario.catalog)
    assert num_chips is not None
    machine = lru_cache(maxsize=1)(machine_of(scenario))
    job = job_of(scenario, num_chips=num_chips)
    options = msgspec.structs.replace(WIDE, margin_fraction=asked.margin_fraction)
    plan = best_of(job, machine, num_chips, 1.0, framework, job.books(framework), options)
    precision = said_precision(scenario)
    used = used_by_job(job, framework, precision)
    return Step(plan.execution, plan.setup(precision), num_chips, True, {**used, "chips": num_chips})
