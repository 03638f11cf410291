"""Inputs that were said and change nothing: one sentence for all answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from datahall.cluster.unused import Joined, unused_wiring
from datahall.cluster.wiring import wiring_of
from datahall.errors import option
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.failure import Failure

WIRING = ("on", "domain", "nic", "oversubscription", "failure")


def is_said(scenario: Scenario, name: str) -> bool:
    """Whether an input or a table was given, in any section of its kind."""
    field = scenario.form.fields.get(name)
    if field is None:
        return any(scenario.said.get(name, ()))
    return any(field.key in table for table in scenario.said.get(field.section, ()))


def unused(scenario: Scenario, names: Iterable[str], why: str) -> tuple[str, ...]:
    """That those of some inputs which were said change nothing, and why; nothing where none of them was."""
    said = [_word(scenario, name) for name in names if is_said(scenario, name)]
    if not said:
        return ()
    *others, last = said
    words = f"{', '.join(others)} and {last}" if others else last
    return (f"{words} {'change' if others else 'changes'} nothing here: {why}",)


def _word(scenario: Scenario, name: str) -> str:
    """An input, or the part of several failures that is meant."""
    apart = name == "failure" and any(one.of_service for one in scenario.all(Failure))
    return "what fails of the fabric" if apart else option(name)


def unused_network(scenario: Scenario, chips: Sequence[Joined], *, searched: bool = False) -> tuple[str, ...]:
    """That what was said of the network changes nothing, where no group of chips crosses what it is about."""
    wiring = wiring_of(scenario)
    idle = [unused_wiring(wiring, joined, scenario.catalog, searched=searched) for joined in chips]
    names = [name for name in WIRING if all(name in one for one in idle)]
    if not wiring.failures and "failure" in names:
        names.remove("failure")
    return unused(scenario, names, _why(chips))


def _why(chips: Sequence[Joined]) -> str:
    if all(joined.span <= 1 for joined in chips):
        return "no chip exchanges anything with another"
    inside = [joined.system is None or joined.span <= joined.system.num_domain for joined in chips]
    if all(inside):
        return "no group of chips leaves its scale-up domain"
    return "no group of chips crosses a place that it would make narrower"
