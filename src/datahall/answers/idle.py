"""What was said of the network and changes nothing, for every answer about chips that exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from datahall.cluster.idle_wiring import Joined, idle_wiring
from datahall.cluster.wiring import wiring_of
from datahall.fabric.design.chips import own_chips
from datahall.scenario.field import grouped
from datahall.scenario.idle import idle_notes, idle_together, is_changed
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import WIRING, FabricDesign


def idle_network(
    scenario: Scenario,
    chips: Sequence[Joined],
    *,
    searched: bool = False,
    felt: Sequence[str] = (),
    why: str = "",
    unfelt: Callable[[], Mapping[str, str]] = dict,
) -> tuple[str, ...]:
    """That what was said of the network does nothing: no group of chips crosses what it is about.

    `felt` did something beside the network.  `unfelt` finds what they cross and do not feel, with why; it is asked
    where something else was said of the network.
    """
    wiring = wiring_of(scenario)
    idle = [idle_wiring(wiring, joined, scenario.catalog, searched=searched) for joined in chips]
    said = (*(field.name for field in grouped("fabric", WIRING)), *(("failure",) if wiring.failures else ()))
    said = tuple(name for name in said if name not in felt and (name != "on" or not _gives_chips(scenario)))
    names = [name for name in said if all(name in one for one in idle)]
    others = [name for name in said if name not in names and is_changed(scenario, name)]
    found = unfelt() if others else {}
    return (
        *idle_together(scenario, names, why or _why(chips)),
        *idle_notes(scenario, {name: found[name] for name in others if name in found}),
    )


def _gives_chips(scenario: Scenario) -> bool:
    """Whether a fabric says how many chips there are, where nothing else does."""
    field, others = scenario.form.fields.get("chips"), ("chips", "dp", "deadline")
    if field is None or field.section != "fabric" or any(scenario.given(name) for name in others):
        return False
    return own_chips(scenario.one(FabricDesign), scenario.catalog) is not None


def _why(chips: Sequence[Joined]) -> str:
    if all(joined.span <= 1 for joined in chips):
        return "no chip exchanges anything with another"
    inside = [joined.system is None or joined.span <= joined.system.num_domain for joined in chips]
    if all(inside):
        return "no group of chips leaves its scale-up domain"
    return "no group of chips crosses a place that it would make narrower"
