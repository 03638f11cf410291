"""Inputs of another question: changes to it, and the values that some of them shall have one after the other."""

from __future__ import annotations

import msgspec

from datahall.errors import ScenarioError
from datahall.scenario.kinds.kind import Kind, Plain, Raw, Reading, shown
from datahall.scenario.kinds.lists import inline_table, listed
from datahall.scenario.kinds.ranges import BETWEEN, EXAMPLE, Span, span


class Change(Kind, frozen=True):
    """Values by input: "tp=8,precision=fp8"; said several times, several changes."""

    @property
    def is_repeated(self) -> bool:
        return True

    @property
    def is_gathered(self) -> bool:
        return True

    def read(self, raw: Raw, at: Reading) -> tuple[dict[str, Raw], ...]:
        del at
        return tuple(_table(one) for one in _several(raw))

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return [dict(one) for one in value]

    def annotation(self, *also: str) -> str:
        del also
        return "str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]"

    def schema(self) -> dict[str, object]:
        one: dict[str, object] = {"anyOf": [{"type": "object"}, {"type": "string"}]}
        return {"anyOf": [*one["anyOf"], {"type": "array", "items": one}]}  # type: ignore[misc]


class Axis(msgspec.Struct, frozen=True):
    """An input by name, and the values it shall have: as they are, or in ranges."""

    name: str
    said: Plain
    parts: tuple[Raw | Span, ...]

    @property
    def num(self) -> int:
        """How many values."""
        return sum(part.num if isinstance(part, Span) else 1 for part in self.parts)

    @property
    def grows(self) -> bool:
        """Whether its values grow by a factor."""
        return any(isinstance(part, Span) and part.grows for part in self.parts)

    def at(self, index: int) -> Raw:
        """One of them, in the order in which they were said.

        >>> [axis("tp", "1,2..8:2").at(place) for place in range(5)]
        ['1', '2', '4', '6', '8']
        """
        for part in self.parts:
            num = part.num if isinstance(part, Span) else 1
            if index < num:
                return part.at(index) if isinstance(part, Span) else part
            index -= num
        raise IndexError(index)


def axis(name: str, raw: Raw) -> Axis:
    """The values of an input, from text with commas and ranges, a list, or one value."""
    pieces = [raw] if isinstance(raw, dict) else listed(raw)
    if not pieces:
        raise ScenarioError(f"{name} has no values", hint=EXAMPLE)
    parts = tuple(
        span(piece) if isinstance(piece, str) and BETWEEN in piece and "/" not in piece else piece
        for piece in pieces
    )
    written = list(raw) if isinstance(raw, list | tuple) else raw
    return Axis(name, written, parts)  # type: ignore[arg-type]  # what a border gives is plain


class Axes(Kind, frozen=True):
    """Values one after the other by input: "chips=512,1024,users=1000..10000:1000"."""

    @property
    def is_repeated(self) -> bool:
        return True

    @property
    def is_gathered(self) -> bool:
        return True

    def read(self, raw: Raw, at: Reading) -> tuple[Axis, ...]:
        del at
        tables = [_table(one) for one in _several(raw)]
        names = [name for table in tables for name in table]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise ScenarioError(f"{twice} is said twice", hint=f"{twice}=…,…")
        found = tuple(axis(name, value) for table in tables for name, value in table.items())
        if not found:
            raise ScenarioError("nothing is named", hint=self.hint())
        return found

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return {one.name: one.said for one in value}

    def annotation(self, *also: str) -> str:
        del also
        return "str | Mapping[str, Any] | Sequence[str]"

    def schema(self) -> dict[str, object]:
        return {"anyOf": [{"type": "object"}, {"type": "string"}]}


def _several(raw: Raw) -> list[Raw]:
    return list(raw) if isinstance(raw, list | tuple) else [raw]


def _table(raw: Raw) -> dict[str, Raw]:
    found = inline_table(raw)
    empty = next((name for name in found if not name.strip()), None)
    if empty is not None:
        raise ScenarioError(f"{shown(raw)} names no input", hint="e.g. chips=512")
    return found
