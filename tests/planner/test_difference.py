"""What two answers have of one result: no difference of a thing from itself, and the better one by its verb's word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.answer import Cell, Quantity
from datahall.answers.verbs import VERBS
from datahall.planner.compare.difference import Figure, figures, share_of, worded
from datahall.planner.compare.lead import LEAST, MOST, leads_of

LEADS = leads_of(["least step_s", "most mfu_fraction"])
numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
results = st.dictionaries(
    st.sampled_from(["step_s", "mfu_fraction", "site_w", "num_chips", "layout"]),
    st.one_of(numbers, st.integers(-(10**9), 10**9), st.text(max_size=3), st.booleans(), st.none()),
)


@given(results)
def test_a_thing_differs_in_nothing_from_itself(one: dict[str, Cell]) -> None:
    assert not any(figure.differs for figure in figures([one, one], LEADS))
    assert not list(worded([one, one]))


@given(numbers, numbers)
def test_turning_two_around_turns_the_difference(one: float, other: float) -> None:
    (there,) = figures([{"step_s": one}, {"step_s": other}], LEADS)
    (back,) = figures([{"step_s": other}, {"step_s": one}], LEADS)
    assert there.difference == -(back.difference or 0.0)
    assert there.best is None or back.best == 1 - there.best


def test_the_better_one_is_by_the_word_of_the_verb() -> None:
    found = figures([{"step_s": 2.0, "mfu_fraction": 0.4}, {"step_s": 1.5, "mfu_fraction": 0.3}], LEADS)
    assert [(one.key, one.best, one.margin_fraction) for one in found] == [
        ("step_s", 1, -0.25), ("mfu_fraction", 0, pytest.approx(1 / 3)),
    ]  # fmt: skip


def test_what_matters_comes_first() -> None:
    """The main results in their order, the others by how far apart they are, what is alike last."""
    one: dict[str, Cell] = {"num_a": 1, "num_b": 1, "num_c": 1, "mfu_fraction": 0.4, "step_s": 1.0}
    other: dict[str, Cell] = {"num_a": 1, "num_b": 9, "num_c": 2, "mfu_fraction": 0.5, "step_s": 1.0}
    assert [figure.key for figure in figures([one, other], LEADS)] == [
        "mfu_fraction", "step_s", "num_b", "num_c", "num_a",
    ]  # fmt: skip


def test_ends_of_a_band_are_of_its_value() -> None:
    one: dict[str, Cell] = {"step_s": 2.0, "step_low_s": 1.5, "step_high_s": 2.5}
    (figure,) = figures([one, {"step_s": 3.0, "step_low_s": 2.4, "step_high_s": 3.5}], LEADS)
    assert figure.values[0] == Quantity(2.0, "s", 1.5, 2.5)
    assert figure.bands_meet


@pytest.mark.parametrize(("low", "high", "meet"), [(1.9, 2.1, False), (1.1, 2.1, True), (1.05, 2.1, True)])
def test_bands_that_are_apart_do_not_meet(low: float, high: float, meet: bool) -> None:
    """0.9 to 1.1 s beside one from 1.9, one that begins where it ends, and one that begins within."""
    values = (Quantity(1.0, "s", 0.9, 1.1), Quantity(2.0, "s", low, high))
    there, back = (Figure(key="x_s", unit="s", values=pair) for pair in (values, values[::-1]))
    assert (there.bands_meet, back.bands_meet) == (meet, meet)


def test_of_nothing_there_is_no_share() -> None:
    assert (share_of(0.0, 5.0), share_of(0.0, 0.0), share_of(-2.0, -1.0)) == (None, 0.0, 0.5)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_main_result_says_what_is_better(verb: object) -> None:
    for text in getattr(verb, "leads", ()):
        word, key = text.split()
        assert word in (LEAST, MOST)
        assert key.isidentifier()


def test_another_last_digit_is_no_difference() -> None:
    (found,) = figures([{"step_s": 5509.0}, {"step_s": 5509.0 * (1.0 + 4e-16)}], LEADS)
    assert not found.differs
    assert found.difference == 0.0
