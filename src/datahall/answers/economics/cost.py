"""`show cost`: a chip-hour by every way to have it, or a training run by three accountings, in four scopes."""

from __future__ import annotations

from datahall.answer import Answer
from datahall.answers.economics.chip import chip_cost
from datahall.answers.economics.run import run_cost
from datahall.economics.early import is_chip
from datahall.planner.buying.run import as_trained, check_bought
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.operations.site import Site


def show_cost(scenario: Scenario) -> Answer:
    """What a chip costs for an hour, or what training a model does."""
    return chip_cost(scenario) if is_chip(scenario) else run_cost(scenario)


def prepare(scenario: Scenario) -> None:
    """Look up who owns, the building and the grid; of a run, that its chips and tokens are known."""
    scenario.catalog.owner(scenario.one(Ownership).owner)
    scenario.catalog.facility(scenario.one(Site).facility)
    scenario.catalog.grid(scenario.one(Site).grid)
    if not is_chip(scenario):
        check_bought(as_trained(scenario))
