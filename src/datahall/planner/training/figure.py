"""The time of a training run as a figure that can be opened: steps × step, over the share of the time that moves it."""

from __future__ import annotations

from math import inf

from datahall.breakdown import Breakdown, ceiling, given, product, quotient
from datahall.planner.training.plan import TrainingPlan
from datahall.reliability.figure import closed_figure
from datahall.reliability.sections.goodput import Goodput
from datahall.training.leaf import Degrees
from datahall.training.pipeline.figure import step_figure


def run_figure(plan: TrainingPlan) -> Breakdown:
    """How long the run is expected to take, interrupted as it is; of one that never ends, its steps alone."""
    goodput, steps = plan.part(Goodput), _steps_figure(plan)
    if goodput.elapsed_s == inf:
        return steps
    kept = closed_figure(goodput.run, goodput.expected)
    return quotient("time of the run, with interruptions", steps, kept, "s")


def _steps_figure(plan: TrainingPlan) -> Breakdown:
    """How long all steps take, with the band of a step."""
    job = plan.job
    degrees = Degrees(plan.layout, planned=True)
    once = product(
        "tokens of a step",
        [degrees.batch(job.global_batch), given("tokens of a sequence", job.seq, "count", field="seq")],
        "tokens",
    )
    steps = ceiling(
        "steps",
        quotient("steps, exactly", given("tokens", plan.num_tokens, "tokens", field="tokens"), once, "count"),
    )
    return product("time of the steps", [steps, step_figure(plan.execution, degrees)], "s")
