"""Reading a table of a scenario by rules, so that every problem is found at once and names its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from datahall.catalog.document import Document, Value
from datahall.errors import Problem, UnitError, nearest
from datahall.fabric.topology.graph import Ints
from datahall.units import example, parse

Read: TypeAlias = "str | float | bool | list[int] | None"
Sort = Literal["text", "flag", "count", "bytes", "bytes_per_s", "s", "fraction", "ratio", "ranks"]
LARGEST_COUNT = 10_000_000


class Rule(NamedTuple):
    """What a key may hold."""

    sort: Sort
    default: Read = None
    choices: tuple[str, ...] = ()
    least: float = 0.0
    above: bool = False  # least itself is not allowed
    required: bool = False


class Reader:
    """The document and the problems found in it so far."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def problem(self, path: tuple[str, ...], message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.document.where(*path), message, hint))

    def table(self, path: tuple[str, ...], table: Value | None, rules: Mapping[str, Rule]) -> dict[str, Read]:
        """The values of a table, defaults filled in; what is wrong is recorded and left at its default."""
        values: dict[str, Read] = {key: rule.default for key, rule in rules.items()}
        if not isinstance(table, dict):
            if table is not None:
                self.problem(path, f"{'.'.join(path)} must be a table", f"write [{'.'.join(path)}]")
            table = {}
        for key, raw in table.items():
            if key not in rules:
                close = nearest(key, rules, 1)
                hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(rules)}"
                self.problem((*path, key), f'unknown key "{key}"', hint)
                continue
            read = self._value((*path, key), key, raw, rules[key])
            values[key] = rules[key].default if read is None else read
        for key, rule in rules.items():
            if rule.required and key not in table:
                self.problem(path, f'"{key}" is missing', _how(key, rule))
        return values

    def tables(self, name: str, rules: Mapping[str, Rule]) -> list[tuple[tuple[str, ...], dict[str, Read]]]:
        """The tables of an array `[[name]]`, each with its place."""
        raw = self.document.content.get(name, [])
        if not isinstance(raw, list):
            self.problem((name,), f"{name} must be an array of tables", f"write [[{name}]]")
            return []
        return [((name, str(i)), self.table((name, str(i)), item, rules)) for i, item in enumerate(raw)]

    def _value(self, path: tuple[str, ...], key: str, raw: Value, rule: Rule) -> Read:
        if rule.sort == "text":
            return self._text(path, key, raw, rule)
        if rule.sort == "flag":
            if not isinstance(raw, bool):
                self.problem(path, f"{key} is {raw!r}", "true or false")
            return raw if isinstance(raw, bool) else None
        if rule.sort == "ranks":
            return self._numbers(path, key, raw)
        return self._quantity(path, key, raw, rule)

    def _text(self, path: tuple[str, ...], key: str, raw: Value, rule: Rule) -> str | None:
        if not isinstance(raw, str):
            self.problem(path, f"{key} is {raw!r}", _how(key, rule))
            return None
        if rule.choices and raw not in rule.choices:
            close = nearest(raw, rule.choices, 1)
            guess = f"; did you mean {close[0]}?" if close else ""
            self.problem(path, f'{key} is "{raw}"', f"one of {', '.join(rule.choices)}{guess}")
            return None
        return raw

    def _quantity(self, path: tuple[str, ...], key: str, raw: Value, rule: Rule) -> float | None:
        if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
            self.problem(path, f"{key} is {raw!r}", _how(key, rule))
            return None
        try:
            value = parse(raw, rule.sort)
        except UnitError as error:
            self.problem(path, f"{key}: {error.message}", error.hint)
            return None
        bound = f"above {rule.least:g}" if rule.above else f"{rule.least:g} or more"
        if value < rule.least or (rule.above and value == rule.least):
            self.problem(path, f"{key} is {raw}", f"it must be {bound}")
            return None
        if rule.sort == "count" and (value != int(value) or value > LARGEST_COUNT):
            self.problem(path, f"{key} is {raw}", f"a whole number up to {LARGEST_COUNT:,}")
            return None
        if rule.sort == "fraction" and value > 1:
            self.problem(path, f"{key} is {raw}", 'at most 1, or "100 %"')
            return None
        return value

    def _numbers(self, path: tuple[str, ...], key: str, raw: Value) -> list[int] | None:
        try:
            return numbers(raw)
        except ValueError as error:
            self.problem(path, f"{key}: {error}", 'e.g. 64, "0-63", "0-1023:8" (every eighth) or [0, 3, 5]')
            return None


def numbers(raw: Value) -> list[int]:
    """Endpoints as a person writes them: a count, a range, a range with a stride, or a list.

    >>> numbers(3), numbers("8-11"), numbers("0-31:8"), numbers([5, "7-8"])
    ([0, 1, 2], [8, 9, 10, 11], [0, 8, 16, 24], [5, 7, 8])
    """
    if isinstance(raw, list):
        return [one for item in raw for one in ([item] if isinstance(item, int) else numbers(item))]
    if isinstance(raw, int):
        if raw < 0 or raw > LARGEST_COUNT:
            raise ValueError(f"{raw} is not a number of endpoints")
        return list(range(raw))
    if not isinstance(raw, str):
        raise ValueError(f"{raw!r} is not a list of endpoints")
    total: list[int] = []
    for piece in raw.split(","):
        span, _, stride = piece.strip().partition(":")
        first, dash, last = span.partition("-")
        words = [first, *([last] if dash else []), *([stride] if stride else [])]
        if not all(word.strip().isdecimal() for word in words) or (stride and int(stride) < 1):
            raise ValueError(f'"{piece}" is not a range of endpoints')
        end = int(last) if dash else int(first)
        if end < int(first) or end > LARGEST_COUNT:
            raise ValueError(f'"{piece}" is not a rising range within {LARGEST_COUNT:,}')
        total += range(int(first), end + 1, int(stride) if stride else 1)
    return total


def endpoints(values: list[int], num_hosts: int) -> tuple[Ints, str]:
    """The endpoints as a column, and what is wrong with them, if anything."""
    column = np.array(values, np.int64)
    outside = column[(column < 0) | (column >= num_hosts)]
    if outside.size:
        return np.empty(
            0, np.int32
        ), f"endpoint {outside[0]} is not there; the fabric has 0 to {num_hosts - 1:,}"
    if np.unique(column).size != column.size:
        return np.empty(0, np.int32), "an endpoint is named twice"
    return column.astype(np.int32), ""


def _how(key: str, rule: Rule) -> str:
    if rule.choices:
        return f"one of {', '.join(rule.choices)}"
    sample = {"text": '"a name"', "flag": "true", "ranks": '"0-63"'}
    return f"write {key} = {sample.get(rule.sort) or example(rule.sort).split(' or ')[0]}"


def number(value: Read) -> float:
    assert isinstance(value, (int, float))
    return float(value)
