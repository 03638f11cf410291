"""Plans of requests that caches have something of: runs end, and layouts that may do with less are tried."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.planner.test_confirm import first_way
from tests.results import number

import datahall as dh
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.planner.serving import confirm as confirmation
from datahall.planner.serving.confirm import confirm
from datahall.planner.serving.length import MOST_SIMULATED
from datahall.planner.serving.objective import CHIPS


def test_conversations_are_not_played_for_as_long_as_a_queue_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One candidate was played for 2.8 million requests, and another plan began one of 140 million."""
    asked: list[int] = []

    def counted(*given: Any, **said: Any) -> ServingRun:
        asked.append(said["most_arrivals"])
        return simulate_serving(*given, **said)

    monkeypatch.setattr(confirmation, "simulate_serving", counted)
    said: dict[str, Any] = {
        "isl": 4000,
        "osl": 50,
        "ttft": "600ms",
        "tpot": "20ms",
        "turns": 6,
        "think": "20s",
    }
    plan = dh.plan_serve("mixtral-8x7b", chips="mi300x", rate=7.5, **said)
    assert number(plan, "good_fraction") >= 0.95
    assert 0 < max(asked) <= 100_000


def test_a_long_pause_is_played_by_fewer_replicas_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def counted(fleet: Any, *_: Any, **said: Any) -> ServingRun:
        asked.append((fleet.pools[0].count, said["most_arrivals"]))
        raise StopIteration

    way = first_way(0.0, rate=300, isl=200, osl=100, turns=4, think=3600, ttft=2.0, tpot=0.1)
    monkeypatch.setattr(confirmation, "simulate_serving", counted)
    with pytest.raises(StopIteration):
        confirm(way, seed=0)
    (played, requests), *_ = asked
    assert 4 <= played < way.num_replicas
    assert requests <= MOST_SIMULATED


def test_a_layout_that_the_closed_form_dislikes_is_tried_where_caches_may_find_more() -> None:
    """24 chips of tp 8 were planned, for the closed form computes shared prompts; 16 of tp 4 keep the limits."""
    said: dict[str, Any] = {"rate": 40, "system": 6000, "isl": 300, "osl": 200, "ttft": "1s", "tpot": "50ms"}
    assert number(dh.plan_serve("llama-3.1-70b", chips="h100-sxm", **said), "num_chips") == 16


@pytest.mark.parametrize(("system", "most"), [(6000, 3), (0, 0)])
def test_a_rival_may_be_tried_with_fewer_than_hold_its_load_where_prompts_are_shared(
    system: int, most: int
) -> None:
    way = first_way(rate=40, isl=6300 - system, osl=100, system=system, ttft=5.0, tpot=0.1)
    few = msgspec.structs.replace(way, num_replicas=4)
    assert way.num_least > 3
    assert CHIPS.most(way, few) == most
