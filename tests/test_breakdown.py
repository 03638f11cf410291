"""Figures that explain themselves, and whose chain cannot be false."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf, isclose

import msgspec
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from datahall.breakdown import (
    Band,
    Breakdown,
    Source,
    assumed,
    ceiling,
    chosen,
    derived,
    difference,
    evaluate,
    fact,
    false_nodes,
    fitted,
    floor,
    given,
    maximum,
    minimum,
    modelled,
    overlap,
    power,
    product,
    quotient,
    simulated,
    solved,
    total,
)
from datahall.errors import UnknownNameError

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
        (ceiling("t", leaf(3.0 + 0.95e-9, "a")), 3, "⌈a⌉"),
        (ceiling("t", leaf(3.0 + 1.05e-9, "a")), 4, "⌈a⌉"),
        (ceiling("t", leaf(inf, "a")), inf, "⌈a⌉"),
        (floor("t", leaf(2.9, "a")), 2, "⌊a⌋"),
        (floor("t", leaf(3.0 - 0.95e-9, "a")), 3, "⌊a⌋"),
        (floor("t", leaf(3.0 - 1.05e-9, "a")), 2, "⌊a⌋"),
        (floor("t", leaf(-0.5, "a")), -1, "⌊a⌋"),
        (floor("t", leaf(inf, "a")), inf, "⌊a⌋"),
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
    assert "step is" in false_nodes(wrong)[0]


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (msgspec.structs.replace(leaf(1), origin="computed"), "neither what it is computed from"),
        (msgspec.structs.replace(WEIGHTS, sources=()), "has no source"),
        (assumed("a", 1.0, "s", ""), "does not say on what"),
        (fitted("a", 1.0, "s", "64 runs"), "is fitted, but has no source"),
        (simulated("a", 1.0, "s", ""), "does not say on what"),
        (modelled("a", 1.0, "s", "", leaf(1.0)), "does not say on what"),
        (modelled("a", 1.0, "s", "a model"), "does not say from what"),
        (chosen("a", 1.0, "s", ""), "does not say on what"),
    ],
)
def test_a_leaf_that_does_not_say_what_it_is_is_found(figure: Breakdown, words: str) -> None:
    assert any(words in line for line in false_nodes(figure))


def root_of_two(value: float, kept: float, broken: float | None = None, note: str = "") -> Breakdown:
    """The largest x of which the square keeps a limit of 2."""
    square = modelled("square of x", kept, "count", "x × x", leaf(1.414, "x", "count"))
    beyond = None if broken is None else modelled("square a step beyond", broken, "count", "x × x", leaf(1.5))
    return solved("x", value, "count", square, leaf(2.0, "limit", "count"), beyond, note)


def test_what_was_solved_keeps_its_limit_and_a_step_beyond_breaks_it() -> None:
    assert false_nodes(root_of_two(1.414, kept=1.414**2, broken=1.5**2)) == []
    assert false_nodes(root_of_two(1.414, kept=2.0, broken=1.5**2)) == [], "the limit itself is kept"


def test_what_was_solved_may_be_ended_by_something_else_that_it_names() -> None:
    assert false_nodes(root_of_two(1.414, kept=1.0, note="the search ends at 1.414")) == []


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (root_of_two(1.414, kept=2.0001, broken=2.25), "is beyond limit"),
        (root_of_two(1.3, kept=1.999, broken=2.25), "square of x was not found with it"),
        (root_of_two(1.414, kept=1.999, broken=1.9995), "is not the most"),
        (root_of_two(1.414, kept=1.999, broken=2.0), "is not the most"),
        (root_of_two(1.414, kept=1.999), "nor what ends it before"),
    ],
)
def test_what_was_not_solved_is_found(figure: Breakdown, words: str) -> None:
    (line,) = false_nodes(figure)
    assert words in line


def test_a_model_says_what_it_was_run_with() -> None:
    figure = modelled("wait", 2.0, "s", "M/D/1", leaf(3.0, "rate"), leaf(0.2, "service"))
    assert figure.formula == "modelled, from rate, service"
    assert false_nodes(figure) == []


CONSTRUCTED = [
    total("t", (leaf(2), leaf(3))),
    difference("t", leaf(9), leaf(2), leaf(3)),
    product("t", (leaf(2), leaf(3)), "s"),
    quotient("t", leaf(3), leaf(2), "s"),
    ceiling("t", leaf(2.1)),
    floor("t", leaf(2.9)),
    maximum("t", (leaf(2), leaf(3))),
    minimum("t", (leaf(2), leaf(3))),
    overlap("t", leaf(3), leaf(4), leaf(2)),
    power("t", leaf(2), leaf(10), "s"),
    root_of_two(1.414, kept=1.9, broken=2.1).named("x"),
]


@pytest.mark.parametrize("figure", CONSTRUCTED, ids=lambda figure: figure.operation)
@pytest.mark.parametrize("off", [1 + 1.05e-9, 1 - 1.05e-9, 2.0, 0.0])
def test_a_value_that_its_parts_do_not_make_is_found_whatever_made_it(figure: Breakdown, off: float) -> None:
    assert false_nodes(figure) == []
    wrong = msgspec.structs.replace(figure, value=figure.value * off)
    assert false_nodes(total("whole", (wrong, leaf(1)))), "at any depth"


def test_a_value_within_the_rounding_of_floats_is_the_same() -> None:
    whole = total("t", (leaf(2), leaf(3)))
    assert false_nodes(msgspec.structs.replace(whole, value=5.0 * (1 + 0.95e-9))) == []
    assert false_nodes(difference("t", leaf(2), leaf(2))) == [], "nothing is nothing"


@pytest.mark.parametrize(
    ("made", "origin"),
    [
        (fact("a", 2, "s", SHEET, note="why"), "fact"),
        (given("a", 2, "s", "why"), "input"),
        (derived("a", 2, "s", "why"), "derived"),
        (chosen("a", 2, "s", "why"), "decision"),
        (fitted("a", 2, "s", "why", SHEET), "fitted"),
        (assumed("a", 2, "s", "why", SHEET), "assumption"),
        (simulated("a", 2, "s", "why"), "simulated"),
    ],
)
def test_a_leaf_says_what_it_is_and_why(made: Breakdown, origin: str) -> None:
    cited = origin in ("fact", "fitted", "assumption")
    expected = {"name": "a", "value": 2.0, "unit": "s", "origin": origin, "note": "why"}
    assert {name: getattr(made, name) for name in expected} == expected
    assert made.sources == ((SHEET,) if cited else ())
    assert (made.formula, made.parts, false_nodes(made)) == ("", (), [])


def test_two_ways_to_add_the_same_floats_are_the_same_figure() -> None:
    parts = tuple(leaf(value) for value in (0.1, 0.2, 0.3))
    assert false_nodes(msgspec.structs.replace(total("t", parts), value=0.3 + 0.2 + 0.1)) == []
    assert total("t", parts).value != 0.3 + 0.2 + 0.1


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
        (lambda a, b: overlap("t", b, b, a), 5 * 2 ** (1 / 3), 5 * 2),
        (lambda a, b: power("t", a, b, "s"), 1, 3**5),
        (lambda a, b: power("t", b, a, "s"), 5, 5**3),
    ],
)
def test_a_band_follows_from_those_of_the_parts(make: object, low: float, high: float) -> None:
    banded = leaf(2.0, "a").with_band(0.5, 1.5, "64 runs")
    figure = make(banded, leaf(5.0, "b"))  # type: ignore[operator]
    assert (figure.band.low, figure.band.high) == pytest.approx((low, high))
    assert figure.band.basis == "64 runs"
    assert figure.band.low <= figure.value <= figure.band.high


BANDED = leaf(2.0, "a").with_band(0.5, 1.5, "64 runs")


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (leaf(2.0).with_band(1.1, 1.5, "64 runs"), "does not hold it"),
        (leaf(2.0).with_band(0.5, 0.9, "64 runs"), "does not hold it"),
        (leaf(2.0).with_band(0.5, 1.5, ""), "does not say what it rests on"),
        (total("t", (BANDED, leaf(5.0))).with_band(0.9, 1.1, "a guess"), "stated twice"),
        (total("t", (BANDED, leaf(5.0))).with_band(6 / 7, 1.1, "a guess"), "stated twice"),
        (total("t", (BANDED, leaf(5.0))).with_band(0.9, 8 / 7, "a guess"), "stated twice"),
    ],
)
def test_a_band_that_does_not_hold_is_found(figure: Breakdown, words: str) -> None:
    (line,) = false_nodes(figure)
    assert words in line


def test_a_band_does_not_reach_below_what_physics_allows() -> None:
    figure = leaf(2.0)
    assert ends(figure.with_band(0.5, 1.5, "64 runs", floor=1.5)) == (1.5, 3.0)
    assert ends(figure.with_band(0.5, 1.5, "64 runs", floor=0.5)) == (1.0, 3.0)
    at_the_floor = figure.with_band(0.5, 1.5, "64 runs", floor=2.0)
    assert ends(at_the_floor) == (2.0, 3.0)
    assert ends(figure.with_band(0.5, 1.5, "64 runs", floor=2.0 + 1e-12)) == (2.0, 3.0), "a rounding above it"
    assert ends(leaf(-2.0).with_band(1.5, 0.5, "64 runs")) == (-3.0, -1.0), "no floor unless one is known"
    assert false_nodes(at_the_floor) == []


def test_a_band_may_be_exact() -> None:
    assert false_nodes(leaf(2.0).with_band(1.0, 1.0, "counted")) == []
    assert false_nodes(total("t", (BANDED, leaf(5.0)))) == []


def ends(figure: Breakdown) -> tuple[float, float]:
    assert figure.band is not None
    return figure.band.low, figure.band.high


def test_parts_err_together_whether_they_rest_on_one_cause_or_on_two() -> None:
    """Twice the same part and two equal parts have one band: the widest, which holds whatever they share."""
    other = leaf(2.0, "b").with_band(0.5, 1.5, "8 runs")
    both = total("t", (BANDED, other))
    assert ends(both) == ends(total("t", (BANDED, BANDED))) == (2.0, 6.0)
    assert both.band == Band(2.0, 6.0, "64 runs"), "it rests on the first that is met"
    assert ends(product("t", (BANDED, other), "s")) == (1.0, 9.0)


def test_what_both_sides_of_a_fraction_share_is_taken_at_its_worst() -> None:
    assert ends(quotient("t", BANDED, BANDED.named("b"), "ratio")) == (1 / 3, 3.0)
    assert ends(difference("t", leaf(10.0), BANDED, BANDED)) == (4.0, 8.0)


def test_the_larger_of_two_is_as_unsure_as_the_ends_of_both() -> None:
    near = leaf(2.2, "b").with_band(0.9, 1.1, "8 runs")
    assert ends(maximum("t", (BANDED, near))) == pytest.approx((1.98, 3.0))
    assert ends(minimum("t", (BANDED, near))) == pytest.approx((1.0, 2.42))


bands = st.tuples(values, st.floats(0.1, 1.0), st.floats(1.0, 5.0)).map(
    lambda drawn: leaf(drawn[0]).with_band(drawn[1], drawn[2], "runs")
)
MADE_OF_TWO = (
    lambda a, b: total("t", (a, b)),
    lambda a, b: difference("t", a, b),
    lambda a, b: product("t", (a, b), "s"),
    lambda a, b: quotient("t", a, b, "s"),
    lambda a, b: maximum("t", (a, b)),
    lambda a, b: minimum("t", (a, b)),
    lambda a, b: overlap("t", a, b, leaf(2.0, "p")),
)


@drawn(bands, bands, st.floats(0, 1), st.floats(0, 1), st.sampled_from(MADE_OF_TWO))
def test_whatever_the_parts_turn_out_to_be_within_their_bands_the_whole_is_in_its_own(
    one: Breakdown, other: Breakdown, here: float, there: float, make: Callable[..., Breakdown]
) -> None:
    def at(figure: Breakdown, place: float) -> Breakdown:
        low, high = ends(figure)
        return leaf(low + place * (high - low))

    low, high = ends(make(one, other))
    slack = 1e-9 * max(abs(low), abs(high), one.value, other.value)
    assert low - slack <= make(at(one, here), at(other, there)).value <= high + slack
    assert false_nodes(make(one, other)) == []


def test_without_a_band_there_is_none() -> None:
    assert READ.band is None


def test_a_part_is_found_by_its_path() -> None:
    assert STEP.at() is STEP
    assert STEP.at("read") is READ
    assert STEP.at("read", "weights") is WEIGHTS


def test_a_part_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(UnknownNameError, match='"weihgts" is not a part of "read"') as caught:
        STEP.at("read", "weihgts")
    assert caught.value.nearest[0] == "weights"
    assert "its parts: weights, bandwidth" in caught.value.hint
    with pytest.raises(UnknownNameError, match="its parts: none"):
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


def test_words_are_added_to_a_figure_and_keep_what_they_do_not_replace() -> None:
    said = REST.with_note("loss, norms", basis="measured", sources=(RUN, SHEET))
    assert (said.note, said.basis, said.sources) == ("loss, norms", "measured", (RUN, SHEET))
    assert said.with_note(sources=(SHEET,)) == said, "a source stands once"
    assert said.with_note(basis="family-calibrated").note == "loss, norms"
    assert said.with_note("other").basis == "measured"
    assert (said.name, said.value, said.parts) == (REST.name, REST.value, REST.parts)
    assert STEP.named("one step") == msgspec.structs.replace(STEP, name="one step")


def test_a_figure_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        STEP.value = 0.0  # type: ignore[misc]
