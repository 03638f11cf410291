"""A run begins as it goes on: what an empty fleet deals in turn is not what a service of many hours meets."""

from __future__ import annotations

import numpy as np
import pytest
from tests.results import number

import datahall as dh
from datahall.inference.simulation.setup import of_one_length
from datahall.workload.traffic.requests import Requests


def kept(requests: int) -> float:
    """What 12 replicas keep of prompts of which two do not fit into the time to the first token."""
    return number(
        dh.simulate_serve(
            "llama-3.1-70b", chip="h200-sxm", tp=4, replicas=12, precision="fp8", rate=24.667, isl=4000, osl=200,
            ttft="300ms", tpot="100ms", requests=requests,
        ),
        "good_fraction",
    )  # fmt: skip


def test_a_short_run_of_one_length_says_what_a_long_one_says() -> None:
    """Dealt in turn, as an empty fleet does, 99.9 % of the first 4,500 kept the limits and 68 % of 100,000."""
    assert kept(4500) == pytest.approx(kept(100_000), abs=0.05)


@pytest.mark.parametrize(("spread", "alike"), [(0.0, True), (0.001, True), (0.05, False)])
def test_lengths_that_differ_by_less_than_a_hundredth_are_one(spread: float, alike: bool) -> None:
    drawn = np.random.default_rng(0).normal(4000.0, 4000.0 * spread, 1000).astype(np.int64)
    requests = Requests.of(np.zeros(1000), drawn, np.full(1000, 200))
    assert of_one_length(requests) is alike
