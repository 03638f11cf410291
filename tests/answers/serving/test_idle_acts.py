"""Inputs that are idle in a small question act in one that lets them: there no note says that they do nothing."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog

SHELF = Catalog(user=False)
QUIET = {"model": "llama-3.1-8b", "rate": 2, "requests": 100, "isl": 200, "osl": 40, "autoscale": "1..3:8"}
GROWS = QUIET | {"rate": 120, "requests": 3000, "cold_start": "2 s"}  # replicas start, and none is stopped
# busy for half a minute, then quiet for a while: replicas start, and stop
TIDES = {"busy": "30 s", "lull": "60 s", "cold_start": "2 s", "patience": "5 s"}
SWELLS = QUIET | {"rate": 40, "requests": 8000, **TIDES}
SPREAD = {
    "model": "qwen3-30b-a3b", "chip": "h200-sxm", "precision": "fp8", "rate": 4, "requests": 100, "isl": 200, "osl": 40,
    "tp": 1, "dp": 8, "ep": 8,
}  # fmt: skip

# six hundred blocks: requests have to leave, and no two prompts begin alike
FULL = {"model": "llama-3.1-8b", "rate": 20, "requests": 300, "isl": 500, "osl": 200, "kv_blocks": 600}
SWAPS, AGAIN = ({**FULL, "preemption": way, "host_cache": "10 GB"} for way in ("swap", "recompute"))


def simulated(said: dict[str, Any]) -> Answer:
    return dh.simulate_serve(**said, catalog=SHELF)


def is_idle(answer: Answer, name: str) -> bool:
    notes = [note for note in answer.notes if "nothing here" in note]
    return any(name in note.partition(" do")[0].replace(",", " ").split() for note in notes)


@pytest.mark.parametrize(
    ("said", "name", "value", "acts"),
    [
        (QUIET, "cold_start", "60 s", False),
        (QUIET, "interval", "5 s", False),
        (QUIET, "patience", "60 s", False),
        (GROWS, "cold_start", "5 s", True),
        (GROWS, "patience", "20 s", False),
        (SWELLS, "cold_start", "20 s", True),
        (SWELLS, "interval", "5 s", True),
        (SWELLS, "patience", "50 s", True),
        (SPREAD, "expert_exchange", "all-to-all", True),
        (SPREAD | {"tp": 8, "dp": 1}, "expert_exchange", "all-to-all", False),
        (SPREAD, "routing_skew", 1.0, True),
        (SPREAD | {"dp": 1, "ep": 1, "tp": 2}, "routing_skew", 1.0, False),
        (SWAPS | {"host_link": "40 GB/s"}, "host_link", "20 GB/s", True),
        (SWAPS, "host_cache", "20 GB", False),
        (AGAIN, "host_link", "20 GB/s", False),
        (AGAIN, "host_cache", "20 GB", False),
    ],
    ids=lambda one: str(one)[:24],
)
def test_an_input_acts_or_is_said_to_be_idle(said: dict[str, Any], name: str, value: Any, acts: bool) -> None:
    usual, other = simulated(said), simulated(said | {name: value})
    assert (usual.results != other.results) is acts
    assert is_idle(other, name) is not acts


def test_half_the_link_over_which_requests_are_swapped_makes_them_stay_longer() -> None:
    """None of them comes back from a cache; neither the link nor the cache that brings it is called idle."""
    fast, slow = (simulated({**SWAPS, "host_link": link}) for link in ("40 GB/s", "20 GB/s"))
    for one in (fast, slow):
        assert one.results["num_preempted"] > 0
        assert one.results["prefix_hit_tokens"] == one.results["host_hit_tokens"] == 0
        assert not is_idle(one, "host_link")
        assert not is_idle(one, "host_cache")
    assert fast.results["e2e_p50_s"] < slow.results["e2e_p50_s"]
    assert fast.results["e2e_p99_s"] < slow.results["e2e_p99_s"]


@pytest.mark.parametrize(("second", "acts"), [(3, True), (0, False)])
def test_priorities_act_where_they_differ(second: int, acts: bool) -> None:
    def asked(first: int, second: int) -> Answer:
        streams = [
            {"rate": 30, "requests": 400, "isl": 2000, "osl": 100, "priority": priority}
            for priority in (first, second)
        ]
        return dh.ask(
            {
                "ask": "simulate serve",
                "model": "llama-3.1-8b",
                "traffic": streams,
                "deployment": {"max_sequences": 8},
            },
            catalog=SHELF,
        )

    equal, other = asked(0, 0), asked(0, second) if acts else asked(2, 2)
    assert (equal.results != other.results) is acts
    assert any("traffic.priority does nothing here" in note for note in other.notes) is not acts
