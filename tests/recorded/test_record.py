"""A record sees what changed, and not the last bits of another processor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.recorded import record
from tests.recorded.record import changes, check_calls, kept, leaves, numerals, same, summed

import datahall as dh

NUMBERS = [0.0, 1e-9, 3.5e-4, 1.0, 8.0, 4.8e12, -2.5, float("inf")]


@pytest.mark.parametrize("place", range(len(NUMBERS) - 1))
def test_a_sum_moves_with_each_number_and_not_with_its_last_bits(place: int) -> None:
    whole = summed(NUMBERS)
    moved, hardly = list(NUMBERS), list(NUMBERS)
    moved[place] = NUMBERS[place] * 1.0001 or 1e-11
    hardly[place] = NUMBERS[place] * (1 + 1e-12)
    assert not same(whole, summed(moved))
    assert same(whole, summed(hardly))


def test_a_sum_moves_when_two_numbers_change_places_or_one_is_lost() -> None:
    assert not same(summed([1.0, 2.0]), summed([2.0, 1.0]))
    assert not same(summed([1.0, 0.0]), summed([1.0]))


def test_words_count_and_the_numbers_in_them_do_not() -> None:
    assert same(summed(["12.5 ms are left"]), summed(["13 ms are left"]))
    assert not same(summed(["12.5 ms are left"]), summed(["12.5 ms are lost"]))


def test_counts_and_choices_are_the_same_or_not() -> None:
    assert not same(8, 9)
    assert not same("ring", "tree")
    assert not same(True, 1)
    assert same(0.1 + 0.2, 0.3)
    assert not same(1.0, 1.000001)


def test_values_of_every_kind_have_leaves() -> None:
    assert list(leaves({"a": (1, None, [True, "x"]), "b": {3.0, 2.0}})) == [
        "a",
        1.0,
        "none",
        1.0,
        "x",
        "b",
        2.0,
        3.0,
    ]
    assert kept(7) == 7
    assert kept("ring") == "ring"
    assert numerals("1,024 chips, 0.5 s.", "8 of them") == [1024, 0.5, 8]


def test_what_of_a_catalogue_was_read_before_is_no_figure() -> None:
    fresh, used = dh.Catalog(user=False), dh.Catalog(user=False)
    used.failure_presets()
    used.chips()
    assert list(leaves({"a": 1, "of": fresh})) == list(leaves({"a": 1, "of": used}))


def test_a_change_is_named_with_what_was_and_what_is() -> None:
    assert changes({"a": 1, "b": 2}, {"a": 1, "c": 3}) == ["b: 2 became nothing", "c: nothing became 3"]


def test_a_failure_names_the_first_ten_and_says_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "HERE", tmp_path)
    (tmp_path / "calls").mkdir()
    check_calls("room", [(f"call {num:02}", num) for num in range(12)], update=True)
    assert len(json.loads((tmp_path / "calls" / "room.json").read_text())) == 12
    check_calls("room", [(f"call {num:02}", num) for num in range(12)], update=False)
    with pytest.raises(AssertionError, match="12 recorded figures changed") as failed:
        check_calls("room", [(f"call {num:02}", num + 1) for num in range(12)], update=False)
    assert "call 09: 9 became 10" in str(failed.value)
    assert "call 10" not in str(failed.value)
