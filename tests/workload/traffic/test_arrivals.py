"""Arrivals keep their rate and their burstiness, in the order of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.errors import ScenarioError
from datahall.workload.traffic.arrivals import Arrivals, arrival_times

NUM = 200_000
HOURS = tuple(0.2 + (hour % 12) / 6 for hour in range(24))

KINDS = {
    "poisson": Arrivals(rate_per_s=50.0),
    "gamma": Arrivals(rate_per_s=50.0, gaps="gamma", variation_ratio=3.0),
    "regular gamma": Arrivals(rate_per_s=50.0, gaps="gamma", variation_ratio=0.3),
    "constant": Arrivals(rate_per_s=50.0, gaps="constant"),
    "on-off": Arrivals(rate_per_s=50.0, on_s=2.0, off_s=6.0),
    "busy-quiet": Arrivals(rate_per_s=50.0, on_s=2.0, off_s=2.0, quiet_ratio=0.25),
    "hourly": Arrivals(rate_per_s=NUM / 86400.0 / 2, hourly_factor=HOURS),
    "sinusoid": Arrivals(rate_per_s=NUM / 86400.0 / 2, swing_fraction=0.9),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def times(arrivals: Arrivals, seed: int = 1, num: int = NUM, duration_s: float = 0.0) -> np.ndarray:
    return np.concatenate([np.zeros(0), *arrival_times(arrivals, seed, num, duration_s)])


@each_kind
def test_the_mean_rate_is_the_one_asked_for(kind: str) -> None:
    found = times(KINDS[kind])
    assert found.size == NUM
    # On–off: 1,000 cycles whose lengths vary; the others come closer.
    assert NUM / found[-1] == pytest.approx(KINDS[kind].rate_per_s, rel=0.06 if "o" in kind[:2] else 0.025)


@each_kind
def test_times_rise_and_depend_on_the_seed_alone(kind: str) -> None:
    found = times(KINDS[kind])
    assert np.all(np.diff(found) >= 0)
    assert found[0] >= 0
    assert np.array_equal(found, times(KINDS[kind]))
    if kind != "constant":
        assert not np.array_equal(found, times(KINDS[kind], seed=2))


@pytest.mark.parametrize(("kind", "variation"), [("poisson", 1.0), ("gamma", 3.0), ("regular gamma", 0.3)])
def test_gaps_vary_as_said(kind: str, variation: float) -> None:
    gaps = np.diff(times(KINDS[kind]))
    assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.03)


def test_constant_arrivals_stand_at_equal_distances_from_zero() -> None:
    assert times(Arrivals(rate_per_s=4.0, gaps="constant"), num=4).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert np.diff(times(KINDS["constant"])) == pytest.approx(0.02)  # across chunks too


def test_at_once_is_all_at_time_zero() -> None:
    assert not times(Arrivals(rate_per_s=np.inf, gaps="at-once"), num=100).any()


def test_poisson_counts_are_poisson() -> None:
    found = times(KINDS["poisson"])
    counts = np.bincount(found.astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.08)


def test_on_off_is_silent_in_its_quiet_times_and_bursty_in_all() -> None:
    found = times(KINDS["on-off"])
    gaps = np.diff(found)
    # 2 s busy of 8: four times the mean rate within, and a gap of 6 s on average between.
    assert np.median(gaps) == pytest.approx(np.log(2) / 200.0, rel=0.05)
    assert gaps[gaps > 0.5].mean() == pytest.approx(6.5, rel=0.12)  # those of an exponential above 0.5 s
    counts = np.bincount(found.astype(int))
    assert counts.var() / counts.mean() > 20


@pytest.mark.parametrize(("on_s", "off_s"), [(2.0, 6.0), (2.0, 2.0), (6.0, 2.0)])
def test_on_off_begins_in_the_state_it_would_be_found_in(on_s: float, off_s: float) -> None:
    """Busy as often as it is busy at any time, so that its first seconds have the mean rate too; both to 3 σ."""
    seeds, share = range(400), on_s / (on_s + off_s)
    regular = Arrivals(rate_per_s=50.0, gaps="constant", on_s=on_s, off_s=off_s)
    busy = [times(regular, seed, num=1)[0] == 0.0 for seed in seeds]
    assert np.mean(busy) == pytest.approx(share, abs=3 * np.sqrt(share * (1 - share) / len(seeds)))
    drawn = Arrivals(rate_per_s=50.0, on_s=on_s, off_s=off_s)
    counts = [times(drawn, seed, num=0, duration_s=on_s).size for seed in seeds]
    assert np.mean(counts) == pytest.approx(50.0 * on_s, abs=3 * np.std(counts) / np.sqrt(len(seeds)))


def test_hours_of_the_day_have_their_share() -> None:
    found = times(KINDS["hourly"])
    share = np.bincount((found % 86400 // 3600).astype(int), minlength=24) / NUM
    expected = np.array(HOURS) / sum(HOURS)
    assert share == pytest.approx(expected, abs=4 * np.sqrt(expected.max() / NUM))


def test_a_sinusoid_peaks_when_told() -> None:
    found = times(Arrivals(rate_per_s=NUM / 86400.0, swing_fraction=0.9, peak_s=14 * 3600.0))
    share = np.bincount((found % 86400 // 3600).astype(int), minlength=24) / NUM
    assert share[13] + share[14] == pytest.approx(2 / 24 * 1.9, rel=0.03)
    assert share[1] + share[2] == pytest.approx(2 / 24 * 0.1, rel=0.15)


def test_a_duration_ends_a_run() -> None:
    found = times(KINDS["poisson"], num=0, duration_s=1000.0)
    assert 999.0 < found[-1] < 1000.0
    assert found.size == pytest.approx(50_000, rel=0.02)
    assert times(KINDS["poisson"], num=10, duration_s=1000.0).size == 10
    assert np.array_equal(found[:10], times(KINDS["poisson"], num=10))


def test_hours_without_traffic_are_skipped() -> None:
    only_noon = tuple(float(hour == 12) for hour in range(24))
    found = times(Arrivals(rate_per_s=0.01, hourly_factor=only_noon), num=2000)
    assert set((found % 86400 // 3600).astype(int)) == {12}


@given(
    rate=st.floats(0.01, 1e5),
    gaps=st.sampled_from(["poisson", "gamma", "constant"]),
    variation=st.floats(0.2, 8.0),
    modulation=st.sampled_from([{}, {"swing_fraction": 0.5}, {"on_s": 1.0, "off_s": 3.0}]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_any_arrivals_rise_from_zero(
    rate: float, gaps: str, variation: float, modulation: dict[str, float], seed: int
) -> None:
    arrivals = Arrivals(rate_per_s=rate, gaps=gaps, variation_ratio=variation, **modulation)  # type: ignore[arg-type]
    found = times(arrivals, seed, num=500)
    assert found.size == 500
    assert np.all(np.isfinite(found))
    assert found[0] >= 0
    assert np.all(np.diff(found) >= 0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rate_per_s": 0.0}, "a rate of 0 requests/s"),
        ({"rate_per_s": -3.0}, "a rate of -3"),
        ({"rate_per_s": np.inf}, "at-once"),
        ({"rate_per_s": np.nan}, "a rate of nan"),
        ({"rate_per_s": 1.0, "variation_ratio": 0.0}, "coefficient of variation of 0"),
        ({"rate_per_s": 1.0, "hourly_factor": (1.0, 2.0)}, "24 factors"),
        ({"rate_per_s": 1.0, "hourly_factor": (0.0,) * 24}, "not all zero"),
        ({"rate_per_s": 1.0, "swing_fraction": 1.5}, "a daily swing of 1.5"),
        ({"rate_per_s": 1.0, "on_s": 1.0}, "give both times"),
        ({"rate_per_s": 1.0, "on_s": 1.0, "off_s": 1.0, "swing_fraction": 0.1}, "one way only"),
    ],
)
def test_arrivals_that_cannot_be_are_refused(fields: dict[str, float], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        Arrivals(**fields)  # type: ignore[arg-type]


def test_arrivals_need_an_end() -> None:
    with pytest.raises(ScenarioError, match="without an end"):
        next(arrival_times(KINDS["poisson"], 0, num=0, duration_s=0.0))
