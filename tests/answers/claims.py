"""What an answer says, held against what it rests on: its headline, its results and the leaves of its figure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from math import isclose, isfinite

from datahall.answer import Answer, Cell, Quantity
from datahall.answers.ask import form_of
from datahall.breakdown import SAME, false_nodes
from datahall.catalog import Catalog
from datahall.units import fmt, unit_of

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
SHAPE = re.compile(
    r"of \d+ ports|\b\d+(?:x\d+)+ |P\d+"
)  # of a switch or a torus, and a percentile: no figures
DIGITS = (2, 3, 4)  # that a sentence shows of a number


def unfounded(answer: Answer) -> list[str]:
    """Everything in an answer that does not follow from what is under it."""
    return [*_of_the_figure(answer), *_of_the_results(answer), *_of_the_headline(answer)]


def _of_the_figure(answer: Answer) -> Iterator[str]:
    if answer.figure is None:
        return
    yield from false_nodes(answer.figure)
    asked = {value for value, _ in _numbers(answer.inputs)} | _defaults(str(answer.question["ask"]))
    for _, leaf in answer.figure.walk():
        if leaf.origin == "input" and not any(isclose(leaf.value, value, rel_tol=SAME) for value in asked):
            yield f"{leaf} is said to be an input of the question, which has none of that value"


def _of_the_results(answer: Answer) -> Iterator[str]:
    """A result that is the figure has its band beside it, and each of the three is what the figure says."""
    if answer.figure is None:
        return
    figure, found = answer.figure, answer.results
    same = [key for key, value in found.items() if _is(value, figure.value)]
    for key in same:
        stem, low, high = _ends(key, found)
        if (
            figure.band
            and (low in found or high in found)
            and not (_is(found[low], figure.band.low) and _is(found[high], figure.band.high))
        ):
            yield f"the band of {stem} is not that of {figure}"
        value = found[key]
        if (
            isinstance(value, Quantity)
            and figure.band
            and not (_is(value.low, figure.band.low) and _is(value.high, figure.band.high))
        ):
            yield f"the band of {key} is not that of {figure}"
    if not same and not _shown_in(answer.headline + answer.binding, figure.value, figure.unit):
        yield f"{figure} stands neither in the results nor in a sentence"


def _of_the_headline(answer: Answer) -> Iterator[str]:
    known = {text for value, unit in _all_numbers(answer) for text in _ways_to_say(value, unit)}
    for number in NUMBER.findall(SHAPE.sub("", _without_names(answer.headline))):
        if number not in known:
            yield f'"{number}" of the headline stands nowhere else'


def _ends(key: str, found: dict[str, Cell]) -> tuple[str, str, str]:
    """The keys of the ends of a band beside the key of its value: pass_s, pass_low_s; num_chips, num_chips_low."""
    stem, _, unit = key.rpartition("_")
    inner = (f"{stem}_low_{unit}", f"{stem}_high_{unit}")
    return (key, *inner) if inner[0] in found else (key, f"{key}_low", f"{key}_high")


def _is(value: Cell, other: float) -> bool:
    number = value.value if isinstance(value, Quantity) else value
    return isinstance(number, int | float) and isclose(number, other, rel_tol=SAME)


def _shown_in(text: str, value: float, unit: str) -> bool:
    return any(fmt(value, unit, digits) in text for digits in DIGITS)


def _ways_to_say(value: float, unit: str) -> Iterator[str]:
    if not isfinite(value):
        return
    for digits in DIGITS:
        yield from NUMBER.findall(fmt(abs(value), unit, digits))
    yield from (f"{abs(value):,.0f}", f"{abs(value):.0f}")
    if unit == "fraction":
        yield from (f"{abs(value) * 100:.{places}f}" for places in (0, 1))


def _numbers(cells: dict[str, Cell]) -> Iterator[tuple[float, str]]:
    for key, value in cells.items():
        yield from _in_cell(value, unit_of(key))


def _in_cell(value: Cell, unit: str) -> Iterator[tuple[float, str]]:
    if isinstance(value, Quantity):
        yield from ((one, value.unit) for one in (value.value, value.low, value.high) if one is not None)
    elif isinstance(value, str):
        yield from ((float(text.replace(",", "")), "") for text in NUMBER.findall(value))
    elif value is not None and not isinstance(value, bool):
        yield float(value), unit


def _all_numbers(answer: Answer) -> Iterator[tuple[float, str]]:
    """Every number of an answer; of results of one unit also what is left of one and how many times it is another."""
    for value, unit in _numbers(answer.inputs):
        yield value, unit
        if unit == "fraction" and value < 1:
            yield value / (1 - value), unit  # what a share that is kept free is of the rest
    yield from _numbers(answer.results)
    for (one, unit), (other, same) in permutations(_numbers(answer.results), 2):
        if unit == same:
            yield one + other, unit
            yield from (((one / other, "ratio"), (one / other, "")) if other else ())
    yield from ((float(text), "") for key in answer.results for text in re.findall(r"_p(\d+)_", key))
    for table in answer.tables:
        for row in table.rows:
            for column, value in zip(table.columns, row, strict=True):
                yield from _in_cell(value, column.unit)
    if answer.figure is not None:
        for _, node in answer.figure.walk():
            yield node.value, node.unit
            if node.band is not None:
                yield from ((node.band.low, node.unit), (node.band.high, node.unit))
            yield from _in_cell(node.name, "")


@cache
def _defaults(verb: str) -> frozenset[float]:
    """What the inputs of a verb are if nobody says, as declared or as their help says."""
    found: set[float] = set()
    for field in form_of(verb).fields.values():
        if isinstance(field.default, int | float):
            found.add(float(field.default))
        stated = field.kind.help.partition("default")[2]
        found |= {float(text.replace(",", "")) for text in NUMBER.findall(stated)}
    return frozenset(found)


@cache
def _names() -> tuple[str, ...]:
    catalog = Catalog(user=False)
    entries = (*catalog.chips(), *catalog.models())
    return tuple(
        sorted({name for one in entries for name in (one.name, one.title) if name}, key=len, reverse=True)
    )


def _without_names(text: str) -> str:
    for name in _names():
        text = text.replace(name, "…")
    return re.sub(
        r"\b[a-zA-Z]+\d+\w*\b|\S+/\S+/\S+", "…", text
    )  # formats and kinds of memory: bf16, HBM3; paths
