"""Bursts of a whole service meet all of its replicas, and a plan is simulated for long enough to meet many of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.results import number

import datahall as dh
from datahall.workload.traffic.arrivals import Arrivals, arrival_times

H100: dict[str, Any] = {
    "chips": "h100-sxm",
    "isl": 1000,
    "osl": 200,
    "precision": "fp8",
    "tp": 1,
    "ttft": "300ms",
}


@pytest.mark.parametrize("variation", [0.5, 4.0])
@pytest.mark.parametrize("part", [0.05, 0.5])
def test_a_part_gets_bursts_as_if_each_request_were_drawn_for_it(variation: float, part: float) -> None:
    """Counts of the whole process, thinned, vary as those that are drawn for the part do."""
    whole = Arrivals(rate_per_s=1.0, gaps="gamma", variation_ratio=variation)
    times = np.concatenate(list(arrival_times(whole, 0, 1_000_000, 0.0)))
    kept = times[np.random.default_rng(1).random(times.size) < part] * part
    drawn = np.concatenate(list(arrival_times(whole.shared(part), 2, kept.size, 0.0)))

    def clump(arrivals: NDArray[np.float64]) -> float:
        counts = np.bincount((arrivals / 50.0).astype(np.int64))[:-1]
        return float(counts.var() / counts.mean())

    assert clump(kept) == pytest.approx(clump(drawn), rel=0.15)


def test_poisson_and_whole_arrivals_are_shared_as_they_are() -> None:
    for one, part in ((Arrivals(rate_per_s=2.0), 0.1), (Arrivals(rate_per_s=2.0, gaps="constant"), 1.0)):
        assert one.shared(part) == one
    assert Arrivals(rate_per_s=2.0, gaps="constant").shared(0.25).clump == pytest.approx(0.75)


def planned(model: str, **said: Any) -> float:
    answer = dh.plan_serve(model, **said)
    assert number(answer, "good_fraction") >= 0.95
    return number(answer, "num_replicas")


def test_some_of_many_replicas_do_not_get_the_bursts_of_all() -> None:
    """162 to 166 keep the limits when all are simulated; twelve who got bursts of a hundred asked for 189."""
    assert 160 <= planned("llama-3.1-8b", rate=4000, tpot="50ms", burstiness=10, **H100) <= 175


def test_bursts_may_ask_for_many_times_the_replicas_of_the_mean() -> None:
    """The closed form asks for one; 12 to 14 keep the limits, and no more than two were tried."""
    assert 11 <= planned("llama-3.1-8b", rate=5, tpot="25ms", burstiness=20, **H100) <= 15


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_bursts_are_met_so_often_that_the_seed_does_not_tell(seed: int) -> None:
    """10, 14 and 12 by the seed, of 4,500 requests; of 150,000 eleven keep 94 % and twelve 96 %."""
    said: dict[str, Any] = {
        "chips": "mi300x",
        "isl": 4000,
        "osl": 50,
        "precision": "fp8",
        "tp": 1,
        "ttft": "1s",
        "tpot": "30ms",
    }
    assert planned("qwen3-32b", rate=11.3, burstiness=4, seed=seed, **said) == 12
