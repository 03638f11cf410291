"""Ranges of values: "1000..10000:1000" goes in steps, "1..64:x2" grows by a factor; their values are made one by one."""

from __future__ import annotations

import re
from decimal import Decimal
from math import floor, log

import msgspec

from datahall.errors import ScenarioError, UnitError
from datahall.scenario.kinds.kind import shown
from datahall.units import parse

BETWEEN, GROWS = "..", "x"
EXAMPLE = "e.g. 1000..10000:1000 (in steps) or 1..64:x2 (doubled)"
_NUMBER = re.compile(r"\s*(-?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([^\d\s].*)?$")
_HAIR = 1e-9  # by which a factor multiplied up may miss the end


class Span(msgspec.Struct, frozen=True):
    """So many values from a first one on, each a step more, or a factor times as much; `word` is their unit."""

    said: str
    first: Decimal
    step: Decimal
    num: int
    word: str = ""
    grows: bool = False

    def at(self, index: int) -> str:
        """One of its values, as a person would write it.

        >>> [span("0.1..0.3:0.1").at(index) for index in range(3)], span("1k..8k:x2").at(3)
        (['0.1', '0.2', '0.3'], '8000')
        """
        value = self.first * self.step**index if self.grows else self.first + self.step * index
        return f"{value.normalize():f}{self.word}"


def span(text: str) -> Span:
    """Read a range; what makes no step, or has nothing between its ends, is refused.

    >>> span("1000..10000:1000").num, span("10ms..80 ms:x2").num, span("5..10:2").num
    (10, 4, 3)
    """
    ends, colon, step = text.partition(":")
    low, _, high = ends.partition(BETWEEN)
    if not colon:
        raise ScenarioError(f"{shown(text)} does not say in which steps", hint=EXAMPLE)
    grows = step.strip()[:1] in (GROWS, "×", "*")
    first, last, by = _read(text, low, high, step.strip()[1:] if grows else step, grows=grows)
    (start, word), (end, _), (stride, _) = first, last, by
    if end < start:
        raise ScenarioError(
            f"{shown(text)} is empty: {high.strip()} is less than {low.strip()}", hint=EXAMPLE
        )
    if grows and (stride <= 1 or start <= 0):
        raise ScenarioError(f"{shown(text)} does not grow", hint="from above 0, by a factor above 1")
    if not grows and stride <= 0:
        raise ScenarioError(f"{shown(text)} makes no step", hint=f"a step above 0, {EXAMPLE}")
    steps = floor(log(end / start) / log(stride) + _HAIR) if grows else int((end - start) // stride)
    return Span(text, start, stride, steps + 1, word, grows)


def _read(text: str, *parts: str, grows: bool) -> tuple[tuple[Decimal, str], ...]:
    """The first, the last and the step, in one unit; a word that only multiplies, as the k of 8k, is worked in."""
    found = [_NUMBER.match(part) for part in parts]
    if not all(found):
        raise ScenarioError(f"{shown(text)} is not a range", hint=EXAMPLE)
    numbers = [Decimal(one[1].replace("_", "")) for one in found if one]
    words = [(one[2] or "").strip() for one in found if one]
    if grows and words.pop():
        raise ScenarioError(f"{shown(text)}: a factor has no unit", hint=EXAMPLE)
    scales = [_scale(word) for word in words]
    if all(scale is not None for scale in scales):
        scaled = [n * (scale or 1) for n, scale in zip(numbers, [*scales, Decimal(1)], strict=False)]
        return tuple((number, "") for number in scaled)
    units = {word for word in words if word}
    if len(units) > 1:
        raise ScenarioError(f"{shown(text)} has two units: {', '.join(sorted(units))}", hint="write one")
    return tuple((number, units.copy().pop()) for number in numbers)


def _scale(word: str) -> Decimal | None:
    """What a word of a count multiplies by; None where it is a unit."""
    try:
        return Decimal(int(parse(f"1{word}", "count")))
    except UnitError:
        return None
