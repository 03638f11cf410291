"""A deadline that few chips keep: a machine of one tier of switches has no taper to feel, and is weighed."""

from __future__ import annotations

import pytest
from tests.answers.borders import followed

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog

SHELF = Catalog(user=False)


def planned(**asked: str) -> Answer:
    found = dh.plan_train("llama-3.1-8b", tokens="1T", on="fat-tree", **asked, catalog=SHELF)  # type: ignore[arg-type]
    assert isinstance(found, Answer)
    return found


@pytest.mark.parametrize("deadline", ["90d", "40d"])
def test_few_chips_need_no_tier_that_is_tapered(deadline: str, capsys: pytest.CaptureFixture[str]) -> None:
    wide, tapered = planned(deadline=deadline), planned(deadline=deadline, oversubscription="4:1")
    assert wide.results["num_chips"] <= 64  # of one leaf
    for name in ("num_chips", "duration_s", "dp", "zero"):
        assert tapered.results[name] == wide.results[name]
    assert any(
        "oversubscription" in note and "does nothing here: no group of chips crosses" in note
        for note in tapered.notes
    )
    for command in tapered.next_commands:
        assert "oversubscription" not in command or " -o " in command  # a file is of the same question
        results = followed(command, capsys)
        assert "simulate train" not in command or results["step_s"] == tapered.results["step_s"]


def test_tiers_that_the_chips_need_keep_their_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(deadline="5d", oversubscription="4:1,2:1")
    assert 64 < found.results["num_chips"] <= 2048  # two tiers, and so one ratio
    for command in found.next_commands:
        ratios = "4:1,2:1" if " -o " in command else "4:1"  # a file is of the same question
        assert f"--oversubscription {ratios} " in f"{command} "
        results = followed(command, capsys)
        assert "simulate train" not in command or results["step_s"] == found.results["step_s"]
