"""A chain as it is printed can be done again with a calculator."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.units import chained, parse

LAST_DIGIT = 5e-4  # half of the fourth digit of a number that begins with 1
ASKED: dict[str, dict[str, Any]] = {
    "show fit": {"model": "llama-3.1-70b", "tp": 4},
    "show model": {"model": "deepseek-v3"},
    "show collective": {"collective": "all-reduce", "chips": 64, "size": "1 GB"},
    "show memory": {"model": "llama-3.1-8b", "chips": 8},
}
READ = {"bytes", "bytes_per_s", "s", "ratio", "fraction", "count", "tokens"}  # units that can be typed back


def typed(one: Breakdown) -> float:
    """The number that a person reads and types in."""
    return parse(chained(one.value, one.unit), one.unit)


@pytest.mark.parametrize("verb", ASKED)
def test_products_and_quotients_hold_as_printed(verb: str) -> None:
    figure = answer_of(ask(verb, ASKED[verb], catalog=Catalog(user=False))).figure
    assert figure is not None
    met = 0
    for _, one in figure.walk():
        units = {part.unit for part in one.parts} | {one.unit}
        if one.operation not in ("product", "quotient") or not units <= READ or one.value == 0:
            continue
        first, *others = [typed(part) for part in one.parts]
        again = prod([first, *others]) if one.operation == "product" else first / others[0]
        assert again == pytest.approx(typed(one), rel=LAST_DIGIT * (len(one.parts) + 1)), one.name
        met += 1
    assert met


def test_what_is_rounded_does_not_look_whole() -> None:
    figure = answer_of(ask("show fit", {"model": "llama-3.1-8b"}, catalog=Catalog(user=False))).figure
    assert figure is not None
    for _, one in figure.walk():
        if one.operation in ("floor", "ceiling") and one.parts[0].value != one.value:
            assert chained(one.value, one.unit) != chained(one.parts[0].value, one.parts[0].unit), one.name
