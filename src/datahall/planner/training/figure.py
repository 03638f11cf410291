"""The time of a training run as a figure that can be opened: steps × step."""

from __future__ import annotations

from datahall.breakdown import Breakdown, ceiling, given, product, quotient
from datahall.planner.training.plan import TrainingPlan
from datahall.training.leaf import Degrees
from datahall.training.pipeline.figure import step_figure


def run_figure(plan: TrainingPlan) -> Breakdown:
    """How long all steps take, with the band of a step."""
    assert plan.chosen.execution is not None
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
    return product("time of the run", [steps, step_figure(plan.chosen.execution, degrees)], "s")
