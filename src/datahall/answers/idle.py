"""What was said of the network and changes nothing, for every answer about chips that exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from datahall.cluster.idle_wiring import Joined, idle_wiring
from datahall.cluster.wiring import wiring_of
from datahall.scenario.idle import idle_notes
from datahall.scenario.scenario import Scenario

WIRING = ("on", "domain", "nic", "oversubscription", "failure")


SAME = "the machine has the same without it"
AS_LONG = "the step takes as long otherwise"


def idle_network(
    scenario: Scenario,
    chips: Sequence[Joined],
    *,
    searched: bool = False,
    why: str = "",
    unfelt: Mapping[str, bool] = MappingProxyType({}),
) -> tuple[str, ...]:
    """That what was said of the network does nothing, where no group of chips crosses what it is about.

    `unfelt` are inputs that change nothing though some group does, and whether the machine is the same without each.
    """
    wiring = wiring_of(scenario)
    idle = [idle_wiring(wiring, joined, scenario.catalog, searched=searched) for joined in chips]
    names = [name for name in WIRING if all(name in one for one in idle)]
    if not wiring.failures and "failure" in names:
        names.remove("failure")
    timed = {name: SAME if same else AS_LONG for name, same in unfelt.items()}
    return idle_notes(scenario, timed | dict.fromkeys(names, why or _why(chips)))


def _why(chips: Sequence[Joined]) -> str:
    if all(joined.span <= 1 for joined in chips):
        return "no chip exchanges anything with another"
    inside = [joined.system is None or joined.span <= joined.system.num_domain for joined in chips]
    if all(inside):
        return "no group of chips leaves its scale-up domain"
    return "no group of chips crosses a place that it would make narrower"
