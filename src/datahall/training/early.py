"""What is asked of a training run, looked at before anything heavy is loaded: what cannot be is refused at once.

What only the wires know is found when the machine is built.
"""

from __future__ import annotations

from datahall.errors import ScenarioError
from datahall.scenario.idle import does_nothing
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import USUAL_CHIP
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob
from datahall.training.layout.asked import laid_out
from datahall.training.step.framework import framework
from datahall.workload.precision import Precision


def check_layout(scenario: Scenario) -> None:
    """Refuse a layout that cannot run, a job that cannot be trained, and a machine that cannot be wired."""
    laid_out(scenario)
    check_job(scenario)
    check_machine(scenario)


def check_machine(scenario: Scenario) -> None:
    """Refuse parts that cannot make the topology that is asked for, before the rooms that compute are loaded."""
    design = scenario.one(FabricDesign)
    if design.topology:
        from datahall.fabric.design.asked import check_design

        check_design(design, scenario.catalog)


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
            does_nothing("imbalance", f"{model.name} has no experts"), field="imbalance",
            hint="leave it out",
        )  # fmt: skip
