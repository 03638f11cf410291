"""What is said of a run: in which detail, why an algorithm, and what was said twice."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.errors import DatahallError

RING = {"collective": "all-reduce", "ranks": 16, "size": "640MB"}
LATE = {"nics": 3, "start": "1ms", "duration": "1ms", "reroute": "0.2ms"}


def simulated(**more: object) -> dh.Answer:
    asked = {"on": "rail", "chips": 16, "job": [RING], **more}
    return dh.simulate_fabric(**asked)  # type: ignore[arg-type]


def test_a_failure_under_way_is_compared_in_two_details_too() -> None:
    for other in ("full", "closed-form"):
        found = simulated(failure=[LATE], check_with=other)
        assert any("difference" in name for name in found.results)
        assert not any("does nothing here" in note for note in found.notes)


@pytest.mark.parametrize("detail", ["symmetric", "full"])
@pytest.mark.parametrize(
    "asked",
    [
        {
            "on": "nvl72", "chips": 144, "job": [{"collective": "all-reduce", "ranks": 144, "size": "64MB"}],
            "routing": "adaptive", "failure": [{"nics": 3, "start": "0.1ms", "reroute": "1ms"}],
        },
        {
            "on": "torus", "chips": 24, "routing": "adaptive", "failure": [{"links": 74}],
            "job": [{"collective": "all-gather", "algorithm": "ring", "ranks": 24, "size": "10MB"}],
        },
    ],
    ids=["a port that ends early", "a link whose rounds choose their ways"],
)  # fmt: skip
def test_what_is_out_is_no_gain_in_either_detail(asked: dict[str, Any], detail: str) -> None:
    whole = {name: value for name, value in asked.items() if name != "failure"}
    out, before = (dh.simulate_fabric(**one, detail=detail) for one in (asked, whole))
    assert float(out.results["makespan_s"]) >= float(before.results["makespan_s"]) * (1 - 1e-9)
    assert not any("failure does nothing" in note for note in out.notes)


def test_an_algorithm_that_was_asked_for_is_not_said_to_be_the_library_s_choice() -> None:
    for algorithm in ("ring", "tree"):
        found = dh.show_collective("all-reduce", chips=16, size="1GB", algorithm=algorithm)
        assert any(f"{algorithm} Simple as asked" in note for note in found.notes), found.notes
    usual = dh.show_collective("all-reduce", chips=16, size="1GB")
    assert any("because its own estimate is the smallest" in note for note in usual.notes)


def test_a_key_that_is_said_twice_is_refused() -> None:
    with pytest.raises(DatahallError, match="nics is said twice"):
        dh.simulate_fabric(on="rail", chips=64, job="collective=all-reduce", failure="nics=3,nics=4")
