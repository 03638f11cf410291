"""A deployment as it is asked for, and the chip that it stands on where its fabric brings one."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.cluster.wiring import says_chip
from datahall.fabric.design.chips import is_built, usual_chip
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fabric import FabricDesign


def deployment_of(scenario: Scenario, index: int = 0) -> Deployment:
    """One deployment of a scenario; where it names no chip it stands on the one that its fabric is made of."""
    said, wires = scenario.all(Deployment)[index], scenario.one(FabricDesign)
    if scenario.given("chip", index) or not wires.topology:
        return said
    return msgspec.structs.replace(said, chip=usual_chip(wires, scenario.catalog).name)


def implied_chip(scenario: Scenario) -> Chip | None:
    """The chip that a fabric brings where nobody names one; None where the fabric is made for any."""
    wires = scenario.one(FabricDesign)
    if not wires.topology or says_chip(scenario):
        return None
    chip = usual_chip(wires, scenario.catalog)
    return chip if chip.name != Deployment().chip or is_built(wires.topology, scenario.catalog) else None
