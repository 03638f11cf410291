"""Reading the tables of a serving scenario: tokens, rates and lengths on top of what every scenario reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import TypeVar

from datahall.catalog.document import Document, Value
from datahall.errors import DatahallError, DocumentError, InfeasibleError, Problem, UnitError
from datahall.fabric.scenario_file import Read, Reader, Rule, number
from datahall.units import SPELLINGS, example, parse

__all__ = [
    "Elsewhere",
    "Place",
    "RateRule",
    "Raw",
    "Read",
    "Rule",
    "ServingReader",
    "TokenRule",
    "number",
    "whole",
]

Place = tuple[str, ...]
Raw = Mapping[str, Value]
Made = TypeVar("Made")
KEYS = {"context": "max_context"}  # flags whose key has another name


class TokenRule(Rule):
    """A whole number of tokens: 8192, "8k", "8k tokens"."""

    __slots__ = ()


class RateRule(Rule):
    """Requests per second: 80, "80/s", or inf for all at once."""

    __slots__ = ()


class Elsewhere(Rule):
    """A known key whose value a function of its own reads."""

    __slots__ = ()


class ServingReader(Reader):
    """The document, the problems found in it so far, and what is right but cannot be."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self.infeasible: list[Problem] = []

    def rows(self, name: str, rules: Mapping[str, Rule]) -> list[tuple[Place, Raw, dict[str, Read]]]:
        """The tables `[[name]]`, or the one table `[name]`: place, what is written, what was read."""
        raw = self.document.content.get(name, [])
        if isinstance(raw, dict):
            return [((name,), raw, self.table((name,), raw, rules))]
        if not isinstance(raw, list):
            self.problem((name,), f"{name} must be a table", f"write [[{name}]]")
            return []
        places = [(name, str(i)) for i in range(len(raw))]
        return [
            (place, item if isinstance(item, dict) else {}, self.table(place, item, rules))
            for place, item in zip(places, raw, strict=True)
        ]

    def attempt(self, place: Place, make: Callable[[], Made]) -> Made | None:
        """What can be made, or None and a problem at that place."""
        try:
            return make()
        except InfeasibleError as error:
            where = self.document.where(*place)
            self.infeasible.append(Problem(where, error.message, as_keys(error.hint)))
        except DocumentError as error:
            self.problems += error.problems
        except DatahallError as error:
            self.problem(place, error.message, as_keys(error.hint))
        return None

    def quantity(self, place: Place, raw: Value, rule: Rule) -> float | None:
        """One number that stands inside a list or an inline table."""
        return self._quantity(place, place[-1], raw, rule)

    def _value(self, path: Place, key: str, raw: Value, rule: Rule) -> Read:
        return None if isinstance(rule, Elsewhere) else super()._value(path, key, raw, rule)

    def _quantity(self, path: Place, key: str, raw: Value, rule: Rule) -> float | None:
        if isinstance(rule, TokenRule) and isinstance(raw, str):
            try:
                raw = parse(raw, "tokens")
            except UnitError as error:
                self.problem(path, f"{key}: {error.message}", 'e.g. 8192, "8k" or "8k tokens"')
                return None
        if isinstance(rule, RateRule):
            if raw == inf or (isinstance(raw, str) and raw.strip() == "inf"):
                return inf
            raw = re.sub(r"\s*(requests)?/s\s*$", "", raw) if isinstance(raw, str) else raw
        bare = isinstance(raw, int | float) and not isinstance(raw, bool) and raw != 0
        if bare and "" not in SPELLINGS[rule.sort]:
            self.problem(path, f"{key} is {raw}, without a unit", f"e.g. {key} = {example(rule.sort)}")
            return None
        return super()._quantity(path, key, raw, rule)


def as_keys(hint: str) -> str:
    """Flags of a hint as the keys of a file.

    >>> as_keys("enough: --context 4096 or less, --precision fp8, or --tp 2")
    'enough: max_context = 4096 or less, precision = "fp8", or tp = 2'
    """

    def key(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2]
        return f"{KEYS.get(name, name)} = " + (value if value.isdecimal() else f'"{value}"')

    return re.sub(r"--([a-z][\w-]*) ([\w.%-]+)", key, hint)


def whole(value: Read) -> int:
    """A count that was read."""
    return int(number(value))
