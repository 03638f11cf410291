"""What is said of a run: at which level, why an algorithm, and what was said twice."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.errors import DatahallError

RING = {"collective": "all-reduce", "ranks": 64, "size": "640MB"}
LATE = {"nics": 3, "start": "1ms", "duration": "1ms", "reroute": "0.2ms"}


def simulated(**more: object) -> dh.Answer:
    asked = {"on": "rail", "chips": 64, "job": [RING], **more}
    return dh.simulate_fabric(**asked)  # type: ignore[arg-type]


def test_a_check_that_would_compare_the_full_level_with_itself_is_said_to_do_nothing() -> None:
    found = simulated(failure=[LATE], check_with="full")
    assert any("check_with does nothing here" in note for note in found.notes)
    assert not any("difference" in name for name in found.results)
    assert any("difference" in name for name in simulated(check_with="closed-form").results)


def test_what_fails_of_a_port_that_ends_early_at_the_coarser_level_is_felt_at_both() -> None:
    asked = {
        "on": "nvl72", "chips": 144, "job": [{"collective": "all-reduce", "ranks": 144, "size": "64MB"}],
        "routing": "adaptive", "failure": [{"nics": 3, "start": "0.1ms", "reroute": "1ms"}],
    }  # fmt: skip
    coarse, fine = (dh.simulate_fabric(**asked, level=level) for level in ("symmetric", "full"))  # type: ignore[arg-type]
    assert coarse.results["makespan_s"] == fine.results["makespan_s"]
    assert not any("failure does nothing" in note for note in coarse.notes)


def test_a_link_that_is_out_is_felt_at_both_levels_where_rounds_choose_their_ways() -> None:
    asked = {
        "on": "torus", "chips": 24, "routing": "adaptive", "failure": [{"links": 74}],
        "job": [{"collective": "all-gather", "algorithm": "ring", "ranks": 24, "size": "10MB"}],
    }  # fmt: skip
    times = [
        float(dh.simulate_fabric(**asked, level=level).results["makespan_s"])  # type: ignore[arg-type]
        for level in ("symmetric", "full")
    ]
    assert times[0] == times[1]


def test_an_algorithm_that_was_asked_for_is_not_said_to_be_the_library_s_choice() -> None:
    for algorithm in ("ring", "tree"):
        found = dh.show_collective("all-reduce", chips=16, size="1GB", algorithm=algorithm)
        assert any(f"{algorithm} Simple as asked" in note for note in found.notes), found.notes
    usual = dh.show_collective("all-reduce", chips=16, size="1GB")
    assert any("because its own estimate is the smallest" in note for note in usual.notes)


def test_a_key_that_is_said_twice_is_refused() -> None:
    with pytest.raises(DatahallError, match="nics is said twice"):
        dh.simulate_fabric(on="rail", chips=64, job="collective=all-reduce", failure="nics=3,nics=4")
