"""Ranges, and the inputs that many values are given to: what they hold, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import load
from datahall.errors import ScenarioError
from datahall.scenario.kinds import Axes, Change, Reading
from datahall.scenario.kinds.ranges import span


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1..3:1", ["1", "2", "3"]),
        ("1..10:4", ["1", "5", "9"]),
        ("5..5:1", ["5"]),
        ("0.1..0.5:0.2", ["0.1", "0.3", "0.5"]),
        ("10ms..30 ms:10ms", ["10ms", "20ms", "30ms"]),
        ("10..30 ms:10", ["10ms", "20ms", "30ms"]),
        ("1k..4k:x2", ["1000", "2000", "4000"]),
        ("512..2k:x2", ["512", "1024"]),
        ("1..1000:x10", ["1", "10", "100", "1000"]),
        ("0..2:1", ["0", "1", "2"]),
        ("5 %..15 %:5 %", ["5%", "10%", "15%"]),
    ],
)
def test_a_range_has_the_values_that_it_says(text: str, values: list[str]) -> None:
    found = span(text)
    assert [found.at(index) for index in range(found.num)] == values


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1..8:0", "makes no step"),
        ("1..8:-1", "makes no step"),
        ("8..1:1", "is empty"),
        ("1..8", "does not say in which steps"),
        ("1..8:x1", "does not grow"),
        ("0..8:x2", "does not grow"),
        ("a..b:1", "is not a range"),
        ("1s..8min:1s", "two units"),
        ("1..8:x2s", "a factor has no unit"),
    ],
)
def test_a_range_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        span(text)


@given(first=st.integers(0, 1000), step=st.integers(1, 50), num=st.integers(1, 200))
def test_a_range_in_steps_is_the_range_of_python(first: int, step: int, num: int) -> None:
    values = list(range(first, first + step * num, step))
    found = span(f"{first}..{values[-1]}:{step}")
    assert [int(found.at(index)) for index in range(found.num)] == values


@given(first=st.integers(1, 100), factor=st.integers(2, 10), num=st.integers(1, 12))
def test_a_range_that_grows_ends_where_it_says(first: int, factor: int, num: int) -> None:
    found = span(f"{first}..{first * factor ** (num - 1)}:x{factor}")
    assert [int(found.at(index)) for index in range(found.num)] == [first * factor**n for n in range(num)]


def test_a_range_of_many_values_takes_no_room() -> None:
    assert span("1..1000000000000:1").num == 10**12


AT = Reading(catalog=load())


@pytest.mark.parametrize(
    "raw",
    [
        "tp=1,2,chips=8..16:8",
        ["tp=1,2", "chips=8..16:8"],
        {"tp": [1, 2], "chips": "8..16:8"},
        "{tp = [1, 2], chips = '8..16:8'}",
    ],
)
def test_values_are_one_at_every_border(raw: object) -> None:
    found = Axes("").read(raw, AT)  # type: ignore[arg-type]
    assert [(one.name, [str(one.at(place)) for place in range(one.num)]) for one in found] == [
        ("tp", ["1", "2"]), ("chips", ["8", "16"]),
    ]  # fmt: skip
    again = Axes("").read(Axes("").write(found), AT)
    assert [(one.name, one.num) for one in again] == [(one.name, one.num) for one in found]


def test_an_input_has_its_values_said_once() -> None:
    with pytest.raises(ScenarioError, match="tp is said twice"):
        Axes("").read(["tp=1", "tp=2"], AT)


def test_each_change_is_one_more() -> None:
    assert Change("").read(["tp=8", "tp=4,precision=fp8"], AT) == (
        {"tp": "8"},
        {"tp": "4", "precision": "fp8"},
    )
    assert Change("").read({"tp": 8}, AT) == ({"tp": 8},)
