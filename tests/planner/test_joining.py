"""What chips of another kind add to a planned run, as the answer says it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.errors import ScenarioError

SHELF = Catalog(user=False)


def plan(**more: Any) -> Answer:
    said = {"tokens": 1e11, "chips": 32, "chip": "h100-sxm", "global_batch": 256, **more}
    return dh.plan_train("llama-3.1-8b", **said, catalog=SHELF)


def test_the_plan_is_the_same_with_a_sentence_more() -> None:
    alone, beside = plan(), plan(available="a100-80gb=32")
    assert beside.headline.startswith(alone.headline)
    assert "With 32 × a100-sxm-80gb beside them a step takes" in beside.headline
    assert alone.results.items() <= beside.results.items()
    step, even = number(beside, "joined_step_s"), number(beside, "joined_even_step_s")
    without = number(beside, "joined_alone_step_s")
    assert step < without
    assert step <= even
    assert number(beside, "joined_gain_ratio") == pytest.approx(without / step)


def test_what_only_slows_it_down_is_left_idle() -> None:
    found = plan(available="tpu-v5e=8")
    assert "are better left idle" in found.headline or "cannot join" in found.headline


def test_what_cannot_join_says_why() -> None:
    found = dh.plan_train(
        "llama-3.1-70b", tokens=1e11, chips=64, chip="h100-sxm", available="l4=8", catalog=SHELF
    )
    assert "8 × l4 cannot join:" in found.headline
    assert found.results["joined_step_s"] is None


def test_a_fabric_of_one_kind_joins_no_other() -> None:
    assert "joins one kind of chip" in plan(available="h200=8", on="fat-tree").headline


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"available": "h100-sxm=8"}, "is what the run is planned on"),
        ({"available": "h200=8", "chips": None, "deadline": "30d"}, "beside a number of chips"),
        ({"available": "h9000=8"}, "is not a chip in the catalogue"),
    ],
)
def test_what_cannot_stand_beside_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(Exception, match=why) as error:
        plan(**said)
    assert isinstance(error.value, ScenarioError) or "catalogue" in why
