"""What was said of the network and changes nothing, for every answer about chips that exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from datahall.cluster.idle import idle_inputs_of_groups
from datahall.cluster.joined import Joined
from datahall.cluster.wiring import wiring_of
from datahall.fabric.design.chips import own_chips
from datahall.scenario.field import grouped
from datahall.scenario.idle import idle_notes, is_changed
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import WIRING, FabricDesign


def idle_network(
    scenario: Scenario,
    groups: Sequence[Joined],
    idle_inputs: Callable[[], Mapping[str, str]] = dict,
    *,
    searched: bool = False,
    felt: Sequence[str] = (),
) -> tuple[str, ...]:
    """That what was said of the network does nothing: no group of chips crosses what it is about.

    `idle_inputs` finds what does nothing for those that cross it, and is asked only where one does.  `felt` did
    something beside the network.
    """
    said = [name for name in said_of_network(scenario) if name not in felt]
    idle = idle_inputs_of_groups(wiring_of(scenario), groups, scenario.catalog, searched=searched)
    if any(name not in idle for name in said):
        idle |= {name: why for name, why in idle_inputs().items() if name not in idle}
    return idle_notes(scenario, {name: why for name, why in idle.items() if name in said})


def said_of_network(scenario: Scenario) -> tuple[str, ...]:
    """Inputs of the network that were given; a fabric that says how many chips there are does something by that."""
    names = [field.name for field in grouped("fabric", WIRING) if is_changed(scenario, field.name)]
    if wiring_of(scenario).failures:
        names.append("failure")
    return tuple(name for name in names if name != "on" or not _gives_chips(scenario))


def _gives_chips(scenario: Scenario) -> bool:
    """Whether a fabric says how many chips there are, where nothing else does."""
    field, others = scenario.form.fields.get("chips"), ("chips", "dp", "deadline")
    if field is None or field.section != "fabric" or any(scenario.given(name) for name in others):
        return False
    return own_chips(scenario.one(FabricDesign), scenario.catalog) is not None
