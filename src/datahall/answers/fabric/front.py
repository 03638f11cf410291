"""Questions about fabrics: what cannot be asked is refused before anything is laid."""

from __future__ import annotations

import msgspec

from datahall.answer import Answer
from datahall.errors import ScenarioError, option
from datahall.scenario.chips import check_built, is_built, num_chips
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import CollectiveCall, FabricDesign


def show_fabric(scenario: Scenario) -> Answer:
    """One fabric in full, or several side by side, for the same number of chips."""
    asked, names = scenario.one(FabricDesign), scenario.one(FabricDesign).topologies
    for name in names:
        _check(msgspec.structs.replace(asked, topology=name), scenario, alone=len(names) == 1)
    from datahall.answers.fabric import fabric

    return fabric.show_fabric(scenario)


def show_collective(scenario: Scenario) -> Answer:
    """Time, bandwidths and algorithm of a collective on a machine."""
    _check(scenario.one(FabricDesign), scenario, usual=scenario.one(CollectiveCall).experts or 0)
    from datahall.answers.fabric import collective

    return collective.show_collective(scenario)


def _check(asked: FabricDesign, scenario: Scenario, *, usual: int = 0, alone: bool = False) -> None:
    if not is_built(asked.topology, scenario.catalog):
        num_chips(asked, scenario.catalog, usual)
        return
    if alone or not asked.topologies:
        check_built(asked, asked.topology)
    built = scenario.catalog.known_fabric(asked.topology).num_chips
    if alone and asked.chips not in (None, built):
        raise ScenarioError(
            f"{asked.topology} has {built:,} chips, not {asked.chips:,}",
            field="chips",
            hint=f"leave {option('chips')} out",
        )
