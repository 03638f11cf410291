"""One side of a comparison: what it is called, what was asked of it, and the results that its answers have."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.answer import Answer, Cell
from datahall.breakdown import Source


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is compared."""

    name: str
    asks: str  # the verb that answers it; the same of every side
    inputs: dict[str, Cell]
    results: dict[str, Cell]
    says: str = ""  # its headline
    command: str = ""  # what shows it alone
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()


def side_of(name: str, answer: Answer, command: str = "") -> Side:
    """An answer as a side."""
    inputs = {key: value for key, value in answer.inputs.items() if key != "scenario"}
    return Side(
        name=name,
        asks=str(answer.question.get("ask", "")),
        inputs=inputs,
        results=answer.results,
        says=answer.headline,
        command=command,
        sources=answer.citations(),
    )


def told_apart(sides: Sequence[Side]) -> tuple[Side, ...]:
    """The sides, each under a name of its own: what is named twice is numbered."""
    found: list[Side] = []
    for one in sides:
        names = {other.name for other in found}
        numbers = (f"{one.name} ({number})" for number in range(2, len(sides) + 2))
        name = next(name for name in (one.name, *numbers) if name not in names)
        found.append(msgspec.structs.replace(one, name=name))
    return tuple(found)
