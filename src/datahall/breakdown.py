"""Figures that can explain themselves.

A headline figure is a `Breakdown`: what it is called, its value and unit, the formula, the parts it was
computed from, a P10–P90 band and the facts it rests on.  Closed forms run on arrays; a breakdown is built
for the one row that is shown, so it costs nothing in a search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from datahall.units import fmt

Kind = Literal["datasheet", "measured", "derived", "estimate"]
Basis = Literal["", "datasheet only", "family-calibrated", "measured"]


class Source(msgspec.Struct, frozen=True):
    """Where a fact is from, when it was read and what kind of fact it is."""

    title: str
    date: str
    kind: Kind = "datasheet"

    def __str__(self) -> str:
        return f"{self.title} ({self.date}, {self.kind})"


class Band(msgspec.Struct, frozen=True):
    """The range in which eight of ten measurements are expected, and what that rests on."""

    low: float
    high: float
    basis: str = ""


class Breakdown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure and the chain behind it.

    >>> weights = Breakdown(name="weights", value=16.06e9, unit="bytes", formula="parameters × 2 B")
    >>> bandwidth = Breakdown(name="bandwidth", value=4.8e12, unit="bytes_per_s")
    >>> step = Breakdown(name="time to read the weights", value=16.06e9 / 4.8e12, unit="s",
    ...                  formula="weights / bandwidth", parts=(weights, bandwidth))
    >>> print(step)
    time to read the weights = 3.346 ms
    >>> step.at("weights").value
    16060000000.0
    """

    name: str
    value: float
    unit: str
    formula: str = ""
    parts: tuple[Breakdown, ...] = ()
    band: Band | None = None
    sources: tuple[Source, ...] = ()
    basis: Basis = ""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.shown}"

    @property
    def shown(self) -> str:
        """The value for a person, with its band where it has one."""
        text = fmt(self.value, self.unit)
        if self.band is None:
            return text
        return f"{text} [{fmt(self.band.low, self.unit, 3)} – {fmt(self.band.high, self.unit, 3)}]"

    def at(self, *path: str) -> Breakdown:
        """Return the part at `path`, e.g. `figure.at("layer 0", "attention")`."""
        found = self
        for name in path:
            match = next((part for part in found.parts if part.name == name), None)
            if match is None:
                names = ", ".join(part.name for part in found.parts) or "none"
                raise KeyError(f"{found.name!r} has no part {name!r}; its parts: {names}")
            found = match
        return found

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Breakdown]]:
        """Yield this figure and every one below it with its depth, top down."""
        yield depth, self
        for part in self.parts:
            yield from part.walk(depth + 1)

    def citations(self) -> tuple[Source, ...]:
        """Every source this figure rests on, once each, in the order they are met."""
        return tuple(dict.fromkeys(source for _, figure in self.walk() for source in figure.sources))
