"""What is asked of a training run, looked at before anything heavy is loaded: what cannot be is refused at once.

What only the machine knows is found when that is built.
"""

from __future__ import annotations

from datahall.errors import ScenarioError, option
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import USUAL_CHIP
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob
from datahall.training.layout.asked import laid_out
from datahall.training.step.framework import framework
from datahall.workload.precision import Precision


def check_layout(scenario: Scenario) -> None:
    """Refuse a layout that cannot run, and a job that cannot be trained."""
    laid_out(scenario)
    check_job(scenario)


def check_job(scenario: Scenario) -> None:
    """Refuse a job whose words nobody knows, or that says something of what its model does not have."""
    asked, design, model = scenario.one(TrainingJob), scenario.one(FabricDesign), scenario.model()
    framework(asked.framework)
    if asked.precision and (design.chip or not design.topology):
        with scenario.at(field="precision"):
            chip = scenario.catalog.chip(design.chip or USUAL_CHIP)
            chip.peak(Precision.named(asked.precision).compute)
    if asked.imbalance_ratio is not None and model.moe is None:
        raise ScenarioError(
            f"{option('imbalance')} says nothing of {model.name}, which has no experts", field="imbalance",
            hint="leave it out",
        )  # fmt: skip
