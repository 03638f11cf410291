"""What cannot be asked of a fabric, refused from the question alone, before anything is laid."""

from __future__ import annotations

import msgspec

from datahall.fabric.design.chips import check_built, is_built, num_chips
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import CollectiveCall, FabricDesign


def check_fabrics(scenario: Scenario) -> None:
    """Refuse topologies without chips, and of one that was built what is not to be chosen."""
    asked, names = scenario.one(FabricDesign), scenario.one(FabricDesign).topologies
    for name in names:
        _check(msgspec.structs.replace(asked, topology=name), scenario, alone=len(names) == 1)


def check_collective(scenario: Scenario) -> None:
    """Refuse a collective among nobody knows how many chips."""
    _check(scenario.one(FabricDesign), scenario, usual=scenario.one(CollectiveCall).experts or 0)


def _check(asked: FabricDesign, scenario: Scenario, *, usual: int = 0, alone: bool = False) -> None:
    if not is_built(asked.topology, scenario.catalog):
        num_chips(asked, scenario.catalog, usual)
    elif alone or not asked.topologies:
        check_built(asked, scenario.catalog, whole=alone)
