"""How the chips of a scenario are wired and what has failed: the same for collectives, training and serving."""

from __future__ import annotations

from typing import NamedTuple

from datahall.errors import ScenarioError
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import FABRIC_PARTS, Failure, check_once


class Wiring(NamedTuple):
    """The fabric that somebody asks for, and the parts of it that are out or slow."""

    design: FabricDesign = FabricDesign()
    failures: tuple[Failure, ...] = ()
    chip_said: bool = False  # by whoever stands on it, be it not in the design
    if_there: bool = False  # what has failed may be a part that a smaller machine has not


def wiring_of(scenario: Scenario) -> Wiring:
    """The fabric of a scenario; failures of replicas and regions are none of it."""
    failures = []
    for index, failure in enumerate(scenario.all(Failure)):
        if failure.of_service:
            continue
        with scenario.at(index, section="failure"):
            _check(failure)
            check_once(scenario.all(Failure), index)
        failures.append(failure)
    return Wiring(scenario.one(FabricDesign), tuple(failures), says_chip(scenario))


def says_chip(scenario: Scenario) -> bool:
    """Whether a person names the chips that stand on the fabric: of the design, of every deployment, or to weigh."""
    every = all(scenario.given("chip", index) for index, _ in enumerate(scenario.all(Deployment) or (None,)))
    listed = scenario.form.fields.get("chips")
    weighed = listed is not None and listed.section == "candidates" and scenario.given("chips")
    return every or weighed


def _check(failure: Failure) -> None:
    if not failure.of_fabric:
        raise ScenarioError(
            "a failure names what is out",
            hint=f"{', '.join(FABRIC_PARTS)}; of a service, replicas or a region",
        )
    if not failure.is_lasting:
        raise ScenarioError(
            "a part of the fabric is out all the time here",
            hint="leave start and duration out; simulate fabric follows failures and repairs",
        )
