"""Words of what evens a site out: what is counted, whether there can be as many, and what is left of the swing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results import number

import datahall as dh

SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "chips": 64}


def test_a_module_is_said_once() -> None:
    said = dh.show_power(**SMALL, battery_type="supercapacitor-48v").headline
    assert "1 module of Maxwell 48 V supercapacitors evens that out" in said


def test_capacitors_of_more_chips_than_there_are_are_not_enough_and_not_offered() -> None:
    answer = dh.show_power(**SMALL, battery_type="gb300-supply")
    assert number(answer, "even_batteries") == 79
    assert "are not enough to even that out" in answer.headline
    assert "it takes those of 79 GPUs, and there are 64." in answer.headline
    assert not any("--battery " in line for line in answer.next_commands)
    remedies = next(one for one in answer.tables if one.title.startswith("remedies"))
    assert max(float(one["units"] or 0) for one in remedies.records()) == 64  # type: ignore[arg-type]


def test_no_limit_is_kept_by_capacitors_of_chips_that_are_not_there() -> None:
    offered = dh.show_power(**SMALL, battery_type="gb300-supply", swing_limit="1kW")
    assert offered.verdict == "no"
    assert not any("--battery " in line for line in offered.next_commands)


@pytest.mark.parametrize("said", [{"supercapacitors": 5, "battery": 3}, {"battery": 1}])
def test_what_no_meter_sees_is_flat(said: dict[str, int]) -> None:
    answer = dh.show_power(**SMALL, **said)
    assert "that is flat, instead of 43." in answer.headline
    assert number(answer, "swing_w") < 1e-5 * number(answer, "peak_w")


BESIDE = "facility does nothing here"


@pytest.mark.parametrize(
    ("facility", "does"),
    # 5 % of electrical losses in both, as in the usual one; 8 % in the survey, which swing with the servers
    [("google", False), ("survey-average", True)],
)
def test_a_building_beside_a_pue_says_its_losses_or_nothing(facility: str, does: bool) -> None:
    usual, other = (dh.show_power(**SMALL, pue=1.3, **one) for one in ({}, {"facility": facility}))
    assert number(usual, "site_w") == pytest.approx(number(other, "site_w"))
    assert (number(usual, "swing_w") != number(other, "swing_w")) is does
    assert any(BESIDE in note for note in other.notes) is not does
    assert any("as asked, with electrical losses as of " in note for note in other.notes) is does


@pytest.mark.parametrize(("facility", "does"), [("google", False), ("survey-average", True)])
def test_so_it_is_in_a_plan_of_a_run(facility: str, does: bool) -> None:
    plan = dh.plan_train(**SMALL, tokens="1T", pue=1.3, facility=facility)
    assert any(BESIDE in note for note in plan.notes) is not does


def test_and_a_service_swings_as_its_pue_says_whatever_the_building() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "rate": 50, "chips": ["h100-sxm"], "pue": 1.3}
    usual, other = dh.plan_serve(**asked), dh.plan_serve(**asked, facility="survey-average")
    assert number(usual, "swing_w") == number(other, "swing_w")
    assert any(BESIDE in note for note in other.notes)
    assert not any(BESIDE in note for note in usual.notes)
