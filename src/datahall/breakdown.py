"""Figures that can explain themselves, and whose chain cannot be false.

A headline figure is a `Breakdown`.  Its value is computed from its parts by the constructor that makes it (`total`,
`product`, `quotient`, `ceiling`, …), down to leaves that say what they are: a `fact` of the catalogue, something
`given` by the person who asks, a `fitted` constant, something `assumed`, or what a simulation found.  Closed forms run
on arrays; a breakdown is built for the one row that is shown, so it costs nothing in a search.

Bands combine by one rule, interval arithmetic: parts err together, so a sum of P10s is the P10 of the sum, and what is
divided by is taken at its other end.  A band is stated once, where it was earned; what rests on it derives its own.
`false_nodes` says where any of this does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, inf, isclose, prod
from math import floor as round_down
from typing import Literal

import msgspec

from datahall.basis import Basis
from datahall.errors import UnknownNameError
from datahall.units import chained, fmt

Kind = Literal["datasheet", "measured", "derived", "estimate", "given"]
Origin = Literal[
    "computed", "fact", "input", "derived", "decision", "fitted", "assumption", "model", "simulated"
]  # fmt: skip
Operation = Literal[
    "", "sum", "difference", "product", "quotient", "ceiling", "floor", "maximum", "minimum", "overlap", "power",
    "solved", "simulated", "modelled",
]  # fmt: skip

SAME = 1e-9  # relative distance within which two floats are the same figure
WHOLE = 1e-9  # how far a float may miss a whole number that it stands for


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
    """A figure and the chain behind it; made by the constructors below, never by hand.

    >>> read = quotient("time to read the weights", given("weights", 16.06e9, "bytes"),
    ...                 given("bandwidth", 4.8e12, "bytes_per_s"), "s")
    >>> print(read, "=", read.formula)
    time to read the weights = 3.346 ms = weights / bandwidth
    >>> read.at("weights").value
    16060000000.0
    """

    name: str
    value: float
    unit: str
    operation: Operation = ""
    origin: Origin = "computed"
    parts: tuple[Breakdown, ...] = ()
    band: Band | None = None
    sources: tuple[Source, ...] = ()
    basis: Basis = ""
    note: str = ""
    fields: tuple[str, ...] = ()  # inputs that say it, if somebody does; none once the question is known

    def __str__(self) -> str:
        return f"{self.name} = {self.shown}"

    @property
    def shown(self) -> str:
        """The value for a person, with its band where it has one."""
        text = chained(self.value, self.unit)
        if self.band is None:
            return text
        return f"{text} [{fmt(self.band.low, self.unit, 3)} – {fmt(self.band.high, self.unit, 3)}]"

    @property
    def formula(self) -> str:
        """How the value follows from the parts."""
        return _FORMULAS[self.operation](self.parts) if self.operation else ""

    def at(self, *path: str) -> Breakdown:
        """Return the part at `path`, e.g. `figure.at("layer 0", "attention")`."""
        found = self
        for name in path:
            match = next((part for part in found.parts if part.name == name), None)
            if match is None:
                names = [part.name for part in found.parts]
                hint = f"its parts: {', '.join(names) or 'none'}"
                raise UnknownNameError(f'part of "{found.name}"', str(name), names, hint=hint)
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

    def with_band(self, low_ratio: float, high_ratio: float, basis: str, *, floor: float = -inf) -> Breakdown:
        """The same figure with the band that was earned for it, as ratios of measured over predicted.

        No measurement lies below a `floor` that physics sets, such as bytes over the narrowest place they cross.
        """
        low = max(self.value * low_ratio, min(self.value, floor))
        return msgspec.structs.replace(self, band=Band(low, self.value * high_ratio, basis))

    def with_note(self, note: str = "", basis: Basis = "", sources: Sequence[Source] = ()) -> Breakdown:
        """The same figure with words on what it rests on."""
        cited = tuple(dict.fromkeys((*self.sources, *sources)))
        return msgspec.structs.replace(self, note=note or self.note, basis=basis or self.basis, sources=cited)

    def unless_said(self, field: str) -> Breakdown:
        """The same figure, unless somebody says it, be it the same value."""
        return msgspec.structs.replace(self, fields=(field,))

    def named(self, name: str) -> Breakdown:
        """The same figure under another name."""
        return msgspec.structs.replace(self, name=name)


def fact(name: str, value: float, unit: str, *sources: Source, note: str = "") -> Breakdown:
    """A value of the catalogue, with its source."""
    assert sources, f"the fact {name!r} has no source"
    return Breakdown(name=name, value=float(value), unit=unit, origin="fact", sources=sources, note=note)


def given(name: str, value: float, unit: str, note: str = "", field: str = "") -> Breakdown:
    """What the person who asks says with a field, or any of several; where nobody does, a border calls it a default."""
    at = tuple(field.split())
    return Breakdown(name=name, value=float(value), unit=unit, origin="input", note=note, fields=at)


def fitted(name: str, value: float, unit: str, on: str, *sources: Source, basis: Basis = "") -> Breakdown:
    """A constant that was fitted, and on what."""
    return Breakdown(
        name=name, value=float(value), unit=unit, origin="fitted", sources=sources, note=on, basis=basis
    )


def assumed(name: str, value: float, unit: str, why: str, *sources: Source) -> Breakdown:
    """Something taken for granted, and why."""
    return Breakdown(name=name, value=float(value), unit=unit, origin="assumption", sources=sources, note=why)


def derived(name: str, value: float, unit: str, note: str = "") -> Breakdown:
    """What is counted from the question and the machine: steps of an algorithm, chips that share something."""
    return Breakdown(name=name, value=float(value), unit=unit, origin="derived", note=note)


def again(figure: Breakdown) -> Breakdown:
    """A figure that is opened elsewhere, as a leaf with its band."""
    leaf = derived(figure.name, figure.value, figure.unit, "as above")
    return msgspec.structs.replace(leaf, band=figure.band)


def chosen(name: str, value: float, unit: str, why: str) -> Breakdown:
    """What a plan decided, and why."""
    return Breakdown(name=name, value=float(value), unit=unit, origin="decision", note=why)


def modelled(name: str, value: float, unit: str, by: str, *inputs: Breakdown) -> Breakdown:
    """What a numerical model found that is no sum or product: which model, and the figures it was run with."""
    return Breakdown(
        name=name, value=float(value), unit=unit, origin="model", operation="modelled", parts=inputs, note=by
    )  # fmt: skip


def simulated(name: str, value: float, unit: str, how: str, *beside: Breakdown) -> Breakdown:
    """What a simulation found; figures beside it say what it was run with or compare it."""
    return Breakdown(
        name=name, value=float(value), unit=unit, origin="simulated", operation="simulated" if beside else "",
        parts=beside, note=how,
    )  # fmt: skip


def total(name: str, parts: Sequence[Breakdown], note: str = "") -> Breakdown:
    """The sum of parts of one unit."""
    return _computed("sum", name, parts, parts[0].unit, note)


def difference(name: str, whole: Breakdown, *less: Breakdown, note: str = "") -> Breakdown:
    """What is left of a whole."""
    return _computed("difference", name, (whole, *less), whole.unit, note)


def product(name: str, parts: Sequence[Breakdown], unit: str, note: str = "") -> Breakdown:
    """Parts multiplied."""
    return _computed("product", name, parts, unit, note)


def quotient(name: str, over: Breakdown, under: Breakdown, unit: str, note: str = "") -> Breakdown:
    """One part divided by another."""
    return _computed("quotient", name, (over, under), unit, note)


def ceiling(name: str, part: Breakdown, unit: str = "count", note: str = "") -> Breakdown:
    """A part rounded up, at least 1."""
    return _computed("ceiling", name, (part,), unit, note)


def floor(name: str, part: Breakdown, unit: str = "count", note: str = "") -> Breakdown:
    """A part rounded down."""
    return _computed("floor", name, (part,), unit, note)


def maximum(name: str, parts: Sequence[Breakdown], note: str = "") -> Breakdown:
    """The largest part."""
    return _computed("maximum", name, parts, parts[0].unit, note)


def minimum(name: str, parts: Sequence[Breakdown], note: str = "") -> Breakdown:
    """The smallest part."""
    return _computed("minimum", name, parts, parts[0].unit, note)


def overlap(name: str, one: Breakdown, other: Breakdown, degree: Breakdown, note: str = "") -> Breakdown:
    """Two parts that partly hide behind each other: (a^p + b^p)^(1/p); p = 1 is the sum, a large p the maximum."""
    return _computed("overlap", name, (one, other, degree), one.unit, note)


def power(name: str, part: Breakdown, exponent: Breakdown, unit: str, note: str = "") -> Breakdown:
    """A part to the power of another."""
    return _computed("power", name, (part, exponent), unit, note)


def solved(
    name: str,
    value: float,
    unit: str,
    kept: Breakdown,
    limit: Breakdown,
    broken: Breakdown | None,
    note: str = "",
) -> Breakdown:
    """The largest value at which a figure keeps a limit: what it is there, the limit, and what it is just beyond.

    `kept` rests on a leaf of the name and the value that were found, so that the equation can be checked.  Where
    something else ends the search before the limit is `broken`, the note says what.
    """
    parts = (kept, limit) if broken is None else (kept, limit, broken)
    return Breakdown(name=name, value=float(value), unit=unit, operation="solved", parts=parts, note=note)


def _computed(operation: Operation, name: str, parts: Sequence[Breakdown], unit: str, note: str) -> Breakdown:
    return Breakdown(
        name=name,
        value=_VALUES[operation]([part.value for part in parts]),
        unit=unit,
        operation=operation,
        parts=tuple(parts),
        band=_combined(operation, parts),
        note=note,
    )


def _combined(operation: Operation, parts: Sequence[Breakdown]) -> Band | None:
    """The band of a figure from those of its parts: interval arithmetic."""
    bands = [part.band for part in parts]
    if not any(bands):
        return None
    lows = [band.low if band else part.value for band, part in zip(bands, parts, strict=True)]
    highs = [band.high if band else part.value for band, part in zip(bands, parts, strict=True)]
    falling = _FALLING.get(operation)
    if falling is not None:
        lows[falling], highs[falling] = highs[falling], lows[falling]
    compute = _VALUES[operation]
    basis = next(band.basis for band in bands if band)
    return Band(compute(lows), compute(highs), basis)


def evaluate(figure: Breakdown) -> float:
    """The value again from the values of the parts; a leaf, and what a search or a run found, is what it says."""
    compute = _VALUES.get(figure.operation)
    return compute([part.value for part in figure.parts]) if compute else figure.value


def false_nodes(figure: Breakdown) -> list[str]:
    """What does not hold in a chain: each figure is what its parts make, each leaf says what it rests on, each band
    is stated once and holds its figure."""
    return [line for _, one in figure.walk() for check in _CHECKS for line in check(one)]


def _not_its_parts(one: Breakdown) -> Iterator[str]:
    if not _same(evaluate(one), one.value):
        yield f"{one.name} is {one.value!r}, but {one.formula} is {evaluate(one)!r}"


def _without_origin(one: Breakdown) -> Iterator[str]:
    if not one.parts and one.origin == "computed":
        yield f"{one.name} says neither what it is computed from nor what it rests on"
    if one.origin == "fact" and not one.sources:
        yield f"the fact {one.name} has no source"
    if one.origin == "fitted" and not one.sources:
        yield f"{one.name} is fitted, but has no source"
    if one.origin not in ("computed", "fact", "input", "derived", "fitted") and not (one.note or one.sources):
        yield f"{one.name} is {one.origin}, but does not say on what"
    if one.origin == "model" and not one.parts:
        yield f"{one.name} is modelled, but does not say from what"


def _not_solved(one: Breakdown) -> Iterator[str]:
    if one.operation != "solved":
        return
    kept, limit, *broken = one.parts
    if kept.value > limit.value:
        yield f"{one.name}: {kept} is beyond {limit}"
    if not any(below.name == one.name and below.value == one.value for _, below in kept.walk()):
        yield f"{one.name} is {one.value!r}, but {kept.name} was not found with it"
    if any(further.value <= limit.value for further in broken):
        yield f"{one.name} is not the most: a step beyond it, {broken[0]} keeps {limit} as well"
    if not broken and not one.note:
        yield f"{one.name} says neither where its limit is broken nor what ends it before"


def _wrong_band(one: Breakdown) -> Iterator[str]:
    if one.band is None:
        return
    if not one.band.low <= one.value <= one.band.high:
        yield f"the band of {one} does not hold it"
    if not one.band.basis:
        yield f"the band of {one} does not say what it rests on"
    derived = _combined(one.operation, one.parts) if one.operation in _VALUES else None
    if derived and not (_same(derived.low, one.band.low) and _same(derived.high, one.band.high)):
        yield f"the band of {one.name} is stated twice: its parts have one, and make {derived.low!r} – {derived.high!r}"


_CHECKS = (_not_its_parts, _without_origin, _not_solved, _wrong_band)


def _same(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=SAME)


def _quotient(values: list[float]) -> float:
    return values[0] / values[1] if values[1] else inf


def _overlap(values: list[float]) -> float:
    one, other, degree = values
    return float((one**degree + other**degree) ** (1.0 / degree))


_VALUES: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "difference": lambda values: values[0] - sum(values[1:]),
    "product": prod,
    "quotient": _quotient,
    "ceiling": lambda values: float(max(1, ceil(values[0] - WHOLE))) if values[0] < inf else inf,
    "floor": lambda values: float(round_down(values[0] + WHOLE)) if values[0] < inf else inf,
    "maximum": max,
    "minimum": min,
    "overlap": _overlap,
    "power": lambda values: float(values[0] ** values[1]),
}

# parts that make the whole smaller when they grow
_FALLING = {"difference": slice(1, None), "quotient": slice(1, None), "overlap": slice(2, None)}


def _names(parts: Sequence[Breakdown], sign: str) -> str:
    return sign.join(part.name for part in parts)


_FORMULAS: dict[str, Callable[[Sequence[Breakdown]], str]] = {
    "sum": lambda parts: _names(parts, " + "),
    "difference": lambda parts: _names(parts, " − "),
    "product": lambda parts: _names(parts, " × "),
    "quotient": lambda parts: _names(parts, " / "),
    "ceiling": lambda parts: f"⌈{parts[0].name}⌉",
    "floor": lambda parts: f"⌊{parts[0].name}⌋",
    "maximum": lambda parts: f"max({_names(parts, ', ')})",
    "minimum": lambda parts: f"min({_names(parts, ', ')})",
    "overlap": lambda parts: f"({parts[0].name}^p + {parts[1].name}^p)^(1/p), p = {parts[2].name}",
    "power": lambda parts: f"{parts[0].name} ^ {parts[1].name}",
    "solved": lambda parts: f"the most at which {parts[0].name} ≤ {parts[1].name}",
    "simulated": lambda parts: f"simulated, beside {_names(parts, ', ')}",
    "modelled": lambda parts: f"modelled, from {_names(parts, ', ')}",
}
