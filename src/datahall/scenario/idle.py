"""Inputs that were given and change nothing, said in one way: as a note of the answer, or as why they are refused.

What the declaration knows (`needs`, `against`) is refused by `rules`; this is for what only the answer shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from datahall.errors import option
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.failure import Failure


def does_nothing(name: str, why: str) -> str:
    """What is said of an input that changes nothing.

    >>> from datahall.errors import spelled
    >>> spelled(does_nothing("nic", "all 8 chips are in one scale-up domain"))
    'nic does nothing here: all 8 chips are in one scale-up domain'
    """
    return do_nothing([option(name)], why)


def do_nothing(words: Sequence[str], why: str) -> str:
    """The same of several at once, each as it is spelled."""
    *others, last = words
    return (
        f"{', '.join(others)} and {last} do nothing here: {why}"
        if others
        else f"{last} does nothing here: {why}"
    )


def is_idle_note(note: str) -> bool:
    """Whether a note says that an input does nothing."""
    return "does nothing" in note or "do nothing" in note


def idle_notes(scenario: Scenario, why: Mapping[str, str]) -> tuple[str, ...]:
    """Notes on those of some inputs, each with its reason, that a person gave another value than the usual."""
    named: dict[str, list[str]] = {}
    for name, reason in why.items():
        if is_changed(scenario, name):
            named.setdefault(reason, []).append(_word(scenario, name))
    return tuple(do_nothing(words, reason) for reason, words in named.items())


def idle_together(scenario: Scenario, names: Iterable[str], why: str) -> tuple[str, ...]:
    """The note on those of some inputs that were given, for one reason."""
    return idle_notes(scenario, dict.fromkeys(names, why))


def is_changed(scenario: Scenario, name: str) -> bool:
    """Whether a table was given, or an input another value than its usual one, in any section of its kind."""
    if name not in scenario.form.fields:
        return any(scenario.said.get(name, ()))
    return bool(_changed(scenario, name))


def _changed(scenario: Scenario, name: str) -> list[object]:
    """The values of an input that were given and are not its usual one, section by section."""
    field = scenario.form.fields[name]
    said, sections = scenario.said.get(field.section, ()), scenario.sections.get(field.section, ())
    return [
        value
        for table, section in zip(said, sections, strict=False)
        if field.key in table
        and (value := getattr(section, field.attribute))
        != section.usual().get(field.attribute, field.default)
    ]


def _word(scenario: Scenario, name: str) -> str:
    """An input, a flag as it was set, or the part of several failures that is meant."""
    if name == "failure" and any(one.of_service for one in scenario.all(Failure)):
        return "what fails of the fabric"
    denied = name in scenario.form.fields and all(value is False for value in _changed(scenario, name))
    return option(name, False) if denied else option(name)
