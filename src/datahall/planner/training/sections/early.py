"""Chips that join a run, refused before anything is laid out."""

from __future__ import annotations

from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import usual_chip
from datahall.scenario.idle import does_nothing
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob
from datahall.scenario.sections.wanted.candidates import Candidates


def check_beside(scenario: Scenario) -> None:
    """Refuse chips beside a number that is not said, and more of the same kind."""
    asked, design = scenario.one(Candidates).available, scenario.one(FabricDesign)
    if not asked:
        return
    if scenario.one(TrainingJob).deadline_s is not None or design.chips is None:
        raise ScenarioError(
            does_nothing("available", "it is beside a number of chips, which is not said"),
            field="available",
            hint=option("chips", "512"),
        )
    usual = usual_chip(design, scenario.catalog).name
    if usual in dict(asked):
        raise ScenarioError(
            f"{usual} is what the run is planned on",
            field="available",
            hint=f"{option('chips', design.chips + dict(asked)[usual])}, or another kind",
        )
