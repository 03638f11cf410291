"""How the chips of a scenario are wired and what has failed: the same for collectives, training and serving."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.errors import ScenarioError
from datahall.scenario.field import grouped
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import WIRING, FabricDesign
from datahall.scenario.sections.failure import FABRIC_PARTS, Failure

# why an input of the wiring that some chips cross changes nothing
SAME, BINDS = "the machine has the same without it", "something else binds"


class Wiring(NamedTuple):
    """The fabric that somebody asks for, and the parts of it that are out or slow."""

    design: FabricDesign = FabricDesign()
    failures: tuple[Failure, ...] = ()


def each_left_out(wiring: Wiring) -> dict[str, Wiring]:
    """By name, the wiring without each input that was given, to see what it changes."""
    design, plain = wiring.design, FabricDesign()
    found = {
        field.name: wiring._replace(
            design=msgspec.structs.replace(design, **{field.attribute: getattr(plain, field.attribute)})
        )
        for field in grouped("fabric", WIRING)
        if getattr(design, field.attribute) != getattr(plain, field.attribute)
    }
    return {**found, **({"failure": wiring._replace(failures=())} if wiring.failures else {})}


def wiring_of(scenario: Scenario) -> Wiring:
    """The fabric of a scenario; failures of replicas and regions are none of it."""
    failures = []
    for index, failure in enumerate(scenario.all(Failure)):
        if failure.of_service:
            continue
        with scenario.at(index, section="failure"):
            _check(failure)
        failures.append(failure)
    return Wiring(scenario.one(FabricDesign), tuple(failures))


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
