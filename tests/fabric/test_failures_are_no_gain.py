"""A failure may cost nothing, but it never looks like a gain: rounds that feel it keep the step of the others."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import datahall as dh
from datahall.errors import DatahallError

ON = {"torus": (12, 16, 24, 27, 32, 48), "hyperx": (36,), "dragonfly": (24, 72), "fat-tree": (16, 64),
      "rail-optimised": (32,), "clos": (64,), "nvl72": (144,)}  # fmt: skip
JOBS = (
    "collective=all-reduce,algorithm=ring", "collective=all-gather,algorithm=ring",
    "collective=all-reduce,algorithm=two-level", "collective=all-reduce,algorithm=halving-doubling",
)  # fmt: skip


WHEN = (",start=10us", ",start=100us,duration=1ms", ",start=1ms,duration=100ms", ",start=1s")


@cache
def time_s(on: str, chips: int, job: str, routing: str, failure: str = "") -> float:
    said = {"failure": failure} if failure else {}
    try:
        found = dh.simulate_fabric(on=on, chips=chips, job=job, routing=routing, **said)
    except DatahallError:  # no such part, or an algorithm for other numbers of chips
        return 0.0
    makespan = found.results.get("makespan_s")
    return float(makespan) if isinstance(makespan, float) else float("inf")  # flows that never end


@pytest.mark.parametrize("when", WHEN)
def test_every_time_that_is_drawn_can_be_asked(when: str) -> None:
    assert time_s("fat-tree", 16, f"{JOBS[0]},size=1MB", "ecmp", f"links=3,left=50 %{when}") > 0


@settings(max_examples=150, deadline=None)
@given(
    where=st.sampled_from([(on, chips) for on, sizes in ON.items() for chips in sizes]),
    kind=st.sampled_from(JOBS), size=st.sampled_from(("1MB", "64MB")),
    routing=st.sampled_from(("ecmp", "spray", "deterministic", "adaptive")),
    part=st.sampled_from(("links", "links", "nics")), number=st.integers(0, 120), left=st.sampled_from((50, 90, 99)),
    when=st.sampled_from(WHEN),
)  # fmt: skip
def test_a_part_that_slows_down_under_way_makes_nothing_faster(
    where: tuple[str, int], kind: str, size: str, routing: str, part: str, number: int, left: int, when: str
) -> None:
    """But for what fair shares do: who waits leaves more to others, and the last of them may end a little earlier.

    Seen: a ten-thousandth, of halving-doubling on a torus of 48 with link 88 at half its rate.
    """
    asked = (*where, f"{kind},size={size}", routing)
    after = time_s(*asked, f"{part}={number},left={left} %{when}")
    assume(after > 0)
    assert after >= time_s(*asked) * (1 - 1e-3)


@pytest.mark.parametrize("sides", [{"chips": 48}, {"chips": 24}])
def test_rounds_in_step_last_as_long_as_those_that_one_flow_stands_for(sides: dict[str, int]) -> None:
    """A failure that comes while rounds are under way, and takes next to nothing."""
    said = {"on": "torus", "job": "collective=all-reduce,algorithm=two-level,size=64MB", **sides}
    whole = dh.simulate_fabric(**said)
    slower = dh.simulate_fabric(**said, failure="links=42,left=99.99 %,start=10us")
    assert slower.results["makespan_s"] == pytest.approx(whole.results["makespan_s"], rel=1e-3)
    assert dh.simulate_fabric(**said, detail="full").results["makespan_s"] < whole.results["makespan_s"]
