"""A plan of a training run as it is asked for, refused before anything heavy is loaded."""

from __future__ import annotations

from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import own_chips
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob, TrainingLayout
from datahall.training.early import check_job, check_machine, check_step, says_layout
from datahall.training.layout.asked import laid_out


def chips_of(scenario: Scenario) -> int | None:
    """How many chips to lay a run out on: as was said, or all of a fabric that was built, unless a deadline says."""
    design = scenario.one(FabricDesign)
    if design.chips is not None or scenario.one(TrainingJob).deadline_s is not None:
        return design.chips
    chips = own_chips(design, scenario.catalog)
    if chips is None and scenario.one(TrainingLayout).file:
        laid = laid_out(scenario)
        return None if laid.fewest else laid.num_chips
    return chips


def check_plan(scenario: Scenario) -> None:
    """Refuse a plan that leaves nothing to choose, or everything; and a job or a machine that cannot be."""
    asked, num_chips = scenario.one(TrainingJob), chips_of(scenario)
    if scenario.one(TrainingLayout).file:
        if asked.deadline_s is not None:
            raise ScenarioError(
                f"{option('layout')} is of so many chips, and {option('deadline')} asks how many",
                field="layout",
                hint=f"{option('chips')} in place of {option('deadline')}, or leave {option('layout')} out",
            )
        check_step(scenario)
    if (num_chips is None) == (asked.deadline_s is None):
        raise ScenarioError(
            "say either how many chips there are or when it must be done",
            field="chips",
            hint=f"{option('chips', 2048)}, or {option('deadline', '30d')}",
        )
    check_machine(scenario)
    check_job(scenario)


def check_laid_step(scenario: Scenario) -> None:
    """Refuse a step that cannot be laid out or trained, on the layout that is asked for or, where none is, on any."""
    if says_layout(scenario):
        check_step(scenario)
        return
    if chips_of(scenario) is None:
        raise ScenarioError(
            f"{option('chips')} is missing", field="chips", hint=f"e.g. {option('chips', 1024)}"
        )
    check_machine(scenario)
    check_job(scenario)
