"""The time of a training run as a figure that can be opened: steps × step, over the share of the time that moves it."""

from __future__ import annotations

from math import inf

from datahall.breakdown import Breakdown, quotient
from datahall.planner.training.plan import TrainingPlan
from datahall.reliability.kept import closed_figure
from datahall.reliability.sections.goodput import Goodput
from datahall.training.leaf import Degrees
from datahall.training.pipeline.figure import steps_figure


def run_figure(plan: TrainingPlan) -> Breakdown:
    """How long the run is expected to take, interrupted as it is; of one that never ends, its steps alone."""
    goodput = plan.part(Goodput)
    steps = steps_figure(plan.execution, plan.num_tokens, Degrees(plan.layout, planned=True))
    if goodput.elapsed_s == inf:
        return steps
    kept = closed_figure(goodput.run, goodput.expected)
    return quotient("time of the run, with interruptions", steps, kept, "s")
