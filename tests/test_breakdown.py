"""Figures that explain themselves, and whose chain cannot be false."""

from __future__ import annotations

from itertools import pairwise
from math import inf, isclose

import msgspec
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from datahall.breakdown import (
    Breakdown,
    Source,
    assumed,
    ceiling,
    difference,
    evaluate,
    fact,
    false_nodes,
    fitted,
    floor,
    given,
    maximum,
    minimum,
    overlap,
    power,
    product,
    quotient,
    simulated,
    solved,
    total,
)

SHEET = Source("datasheet", "2024-01", "datasheet")
RUN = Source("our run", "2026-11", "measured")

WEIGHTS = fact("weights", 16e9, "bytes", SHEET)
RATE = fact("bandwidth", 4.8e12, "bytes_per_s", RUN, SHEET)
READ = quotient("read", WEIGHTS, RATE, "s")
REST = fitted("rest", 1e-3, "s", "64 runs", RUN)
STEP = total("step", (READ, REST)).with_band(0.9, 1.1, "64 runs")

values = st.floats(1e-6, 1e6)
leaves = st.builds(
    lambda name, value, sources: fact(name, value, "s", *sources) if sources else given(name, value, "s"),
    st.text("abc", min_size=1, max_size=3),
    values,
    st.lists(st.sampled_from([SHEET, RUN]), max_size=2),
)
trees = st.recursive(
    leaves,
    lambda parts: st.builds(
        lambda make, below: make("node", below),
        st.sampled_from([total, maximum, minimum]),
        st.lists(parts, min_size=1, max_size=3),
    ),
    max_leaves=12,
)


def leaf(value: float, name: str = "x", unit: str = "s") -> Breakdown:
    return given(name, value, unit)


@pytest.mark.parametrize(
    ("figure", "value", "formula"),
    [
        (total("t", (leaf(2, "a"), leaf(3, "b"))), 5, "a + b"),
        (difference("t", leaf(9, "a"), leaf(2, "b"), leaf(3, "c")), 4, "a − b − c"),
        (product("t", (leaf(2, "a"), leaf(3, "b")), "s"), 6, "a × b"),
        (quotient("t", leaf(3, "a"), leaf(2, "b"), "s"), 1.5, "a / b"),
        (quotient("t", leaf(3, "a"), leaf(0, "b"), "s"), inf, "a / b"),
        (ceiling("t", leaf(2.1, "a")), 3, "⌈a⌉"),
        (ceiling("t", leaf(0.0, "a")), 1, "⌈a⌉"),
        (floor("t", leaf(2.9, "a")), 2, "⌊a⌋"),
        (maximum("t", (leaf(2, "a"), leaf(3, "b"))), 3, "max(a, b)"),
        (minimum("t", (leaf(2, "a"), leaf(3, "b"))), 2, "min(a, b)"),
        (overlap("t", leaf(3, "a"), leaf(4, "b"), leaf(2, "p")), 5, "(a^p + b^p)^(1/p), p = p"),
        (overlap("t", leaf(3, "a"), leaf(4, "b"), leaf(1, "p")), 7, "(a^p + b^p)^(1/p), p = p"),
        (power("t", leaf(2, "a"), leaf(10, "n"), "s"), 1024, "a ^ n"),
    ],
)
def test_a_figure_is_computed_from_its_parts(figure: Breakdown, value: float, formula: str) -> None:
    assert figure.value == pytest.approx(value)
    assert figure.formula == formula
    assert false_nodes(figure) == []


@drawn(trees)
def test_every_node_re_evaluates(tree: Breakdown) -> None:
    assert false_nodes(tree) == []
    assert all(isclose(evaluate(node), node.value) for _, node in tree.walk())


def test_a_figure_that_was_tampered_with_is_found() -> None:
    wrong = msgspec.structs.replace(STEP, value=2 * STEP.value)
    assert ["step is" in line for line in false_nodes(wrong)] == [True]


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (msgspec.structs.replace(leaf(1), origin="computed"), "neither what it is computed from"),
        (msgspec.structs.replace(WEIGHTS, sources=()), "has no source"),
        (assumed("a", 1.0, "s", ""), "does not say on what"),
        (fitted("a", 1.0, "s", ""), "does not say on what"),
        (simulated("a", 1.0, "s", ""), "does not say on what"),
        (solved("a", 5.0, "count", leaf(1.2, "time"), leaf(1.0, "limit")), "is beyond"),
    ],
)
def test_a_leaf_that_does_not_say_what_it_is_is_found(figure: Breakdown, words: str) -> None:
    assert any(words in line for line in false_nodes(figure))


def test_what_was_solved_may_miss_its_limit_by_the_step_of_the_search() -> None:
    assert false_nodes(solved("a", 5.0, "count", leaf(1.01, "time"), leaf(1.0, "limit"))) == []


def test_a_fact_without_a_source_cannot_be_made() -> None:
    with pytest.raises(AssertionError, match="no source"):
        fact("memory", 80e9, "bytes")


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (lambda a, b: total("t", (a, b)), 1 + 5, 3 + 5),
        (lambda a, b: difference("t", b, a), 5 - 3, 5 - 1),
        (lambda a, b: product("t", (a, b), "s"), 1 * 5, 3 * 5),
        (lambda a, b: quotient("t", a, b, "s"), 1 / 5, 3 / 5),
        (lambda a, b: quotient("t", b, a, "s"), 5 / 3, 5 / 1),
        (lambda a, b: maximum("t", (a, b)), 5, 5),
    ],
)
def test_a_band_follows_from_those_of_the_parts(make: object, low: float, high: float) -> None:
    banded = leaf(2.0, "a").with_band(0.5, 1.5, "64 runs")
    figure = make(banded, leaf(5.0, "b"))  # type: ignore[operator]
    assert (figure.band.low, figure.band.high) == pytest.approx((low, high))
    assert figure.band.basis == "64 runs"
    assert figure.band.low <= figure.value <= figure.band.high


def test_without_a_band_there_is_none() -> None:
    assert READ.band is None


def test_a_part_is_found_by_its_path() -> None:
    assert STEP.at() is STEP
    assert STEP.at("read") is READ
    assert STEP.at("read", "weights") is WEIGHTS


def test_a_part_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(KeyError, match=r"'read' has no part 'rest'; its parts: weights, bandwidth"):
        STEP.at("read", "rest")
    with pytest.raises(KeyError, match="its parts: none"):
        STEP.at("rest", "anything")


def test_a_walk_goes_top_down() -> None:
    assert [(depth, figure.name) for depth, figure in STEP.walk()] == [
        (0, "step"), (1, "read"), (2, "weights"), (2, "bandwidth"), (1, "rest"),
    ]  # fmt: skip
    assert next(STEP.walk(3))[0] == 3


@drawn(trees)
def test_a_walk_meets_every_figure_once_and_never_skips_a_depth(tree: Breakdown) -> None:
    def count(figure: Breakdown) -> int:
        return 1 + sum(map(count, figure.parts))

    depths = [depth for depth, _ in tree.walk()]
    assert len(depths) == count(tree)
    assert all(later <= earlier + 1 for earlier, later in pairwise(depths))


def test_a_source_is_cited_once_in_the_order_met() -> None:
    assert STEP.citations() == (SHEET, RUN)
    assert str(SHEET) == "datasheet (2024-01, datasheet)"


@drawn(trees)
def test_citations_are_the_sources_of_the_walk(tree: Breakdown) -> None:
    met = [source for _, figure in tree.walk() for source in figure.sources]
    assert set(tree.citations()) == set(met)
    assert len(tree.citations()) == len(set(met))


def test_a_figure_is_shown_with_its_unit_and_its_band() -> None:
    assert READ.shown == "3.333 ms"
    assert STEP.shown == "4.333 ms [3.9 ms – 4.77 ms]"
    assert str(STEP) == "step = 4.333 ms [3.9 ms – 4.77 ms]"


def test_a_figure_survives_json() -> None:
    text = msgspec.json.encode(STEP)
    assert msgspec.json.decode(text, type=Breakdown) == STEP
    assert b'"basis":""' not in text, "what says nothing is left out"


def test_a_figure_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        STEP.value = 0.0  # type: ignore[misc]
