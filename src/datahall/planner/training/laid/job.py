"""The job that runs for weeks on the layout that is asked for, or on the fastest."""

from __future__ import annotations

from datahall.errors import InfeasibleError
from datahall.planner.training.laid.step import laid_step
from datahall.reliability.job import RunningJob, job_on
from datahall.scenario.scenario import Scenario
from datahall.units import fmt


def laid_job(scenario: Scenario) -> RunningJob:
    """The job that runs for weeks on that layout; one that does not fit is refused."""
    step = laid_step(scenario)
    if step.memory is not None and not step.fits:
        model = step.execution.job.model
        most, limit = fmt(step.memory.most_bytes, "bytes", 3), fmt(step.memory.limit_bytes, "bytes", 3)
        raise InfeasibleError(
            f"{model.title or model.name} as {step.execution.layout.words} does not fit: the fullest stage takes "
            f"{most} of {limit}",
            field="chips",
            hint="a layout that takes less memory, or none: then the fastest that fits is looked for",
        )
    return job_on(
        step.setup,
        scenario.catalog,
        step_s=step.execution.step_s,
        searched=step.is_searched,
        num_idle=step.num_chips - step.execution.cluster.num_chips,
    )
