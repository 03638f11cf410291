"""Histograms of times against the values that went in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.inference.simulation.histogram import LEAST_S, NUM_BINS, add, mean, percentile

values = st.lists(st.floats(1e-5, 1e5), min_size=1, max_size=50)


def counted(times: list[float], weights: list[float] | None = None) -> np.ndarray:
    counts = np.zeros((3, NUM_BINS))
    for place, time_s in enumerate(times):
        add(counts, 1, time_s, *([weights[place]] if weights else []))
    assert counts[0].sum() == counts[2].sum() == 0
    return counts[1]


@given(values)
def test_the_mean_is_that_of_the_values_to_one_percent(times: list[float]) -> None:
    assert mean(counted(times)) == pytest.approx(np.mean(times), rel=5e-3)


@given(values, st.floats(0.01, 1.0))
def test_a_percentile_is_the_value_of_that_rank_to_one_percent(times: list[float], share: float) -> None:
    rank = max(1, math.ceil(share * len(times) - 1e-9))
    assert percentile(counted(times), share) == pytest.approx(sorted(times)[rank - 1], rel=5e-3)


@given(st.floats(1e-5, 1e5), st.floats(1.009, 3.0))
def test_values_a_percent_apart_are_told_apart(time_s: float, ratio: float) -> None:
    assert percentile(counted([time_s]), 0.5) < percentile(counted([time_s * ratio]), 0.5)


def test_a_weight_counts_as_many_values() -> None:
    assert np.array_equal(counted([0.5, 2.0], [3.0, 1.0]), counted([0.5, 0.5, 0.5, 2.0]))


def test_what_is_below_the_least_is_nothing_and_what_is_above_the_last_is_the_last() -> None:
    assert percentile(counted([0.0]), 0.5) == mean(counted([LEAST_S])) == 0.0
    assert percentile(counted([LEAST_S * 1.001]), 0.5) == pytest.approx(LEAST_S, rel=0.01)
    assert percentile(counted([1e9]), 0.5) == pytest.approx(1e6, rel=0.02)
    assert percentile(counted([1.0, 3.0]), 2.0) > 1e5  # a share beyond all of them ends at the last bin


def test_of_nothing_there_is_no_percentile() -> None:
    assert math.isnan(mean(np.zeros(NUM_BINS)))
    assert math.isnan(percentile(np.zeros(NUM_BINS), 0.5))
    assert not math.isnan(percentile(counted([1.0], [0.5]), 0.5))
