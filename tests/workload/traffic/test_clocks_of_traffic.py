"""Clocks that arrivals are read on, and dates that a trace is read with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datahall.errors import DocumentError
from datahall.workload.traffic.arrivals import Arrivals, arrival_times
from datahall.workload.traffic.recorded.trace_file import read_trace

DAY_S = 86400.0


def times(num: int, **how: object) -> np.ndarray:
    return np.concatenate(
        list(arrival_times(Arrivals(gaps="constant", **how), seed=1, num=num, duration_s=0.0))
    )


def test_a_sinusoid_is_held_for_a_minute() -> None:
    """Ten requests a second on average: gaps within a minute are equal, and those of the next are others."""
    found = times(200_000, rate_per_s=10.0, swing_fraction=0.8, peak_s=0.0)
    gaps, minute = np.diff(found), (found // 60.0).astype(int)
    inside = minute[:-1] == minute[1:]
    by_minute = [gaps[inside & (minute[:-1] == one)] for one in range(3, 150)]
    for one in by_minute:
        assert np.ptp(one) < 1e-6 * one[0]
    means = np.array([one.mean() for one in by_minute])
    assert (np.diff(means) > 0).all()  # from the peak on, ever fewer


def test_a_sinusoid_is_highest_where_it_was_said_and_has_the_mean_that_was_said() -> None:
    found = times(int(DAY_S), rate_per_s=1.0, swing_fraction=0.6, peak_s=21_600.0)
    assert found[-1] < DAY_S < found[-1] + 10.0
    hours = np.bincount((found // 3600.0).astype(int), minlength=24)
    # the mean of a cosine over the hour next to its top is sin(x)/x at x = 15°, and the lowest is its mirror
    top = 3600.0 * (1 + 0.6 * np.sin(np.pi / 12) / (np.pi / 12))
    assert hours[5] == pytest.approx(top, abs=2)
    assert hours[6] == pytest.approx(top, abs=2)
    assert hours[17] + hours[5] == pytest.approx(7200, abs=3)
    assert hours.sum() == int(DAY_S)


def test_the_second_day_is_the_first_again() -> None:
    found = times(2 * int(DAY_S), rate_per_s=1.0, hourly_factor=(1.0, 3.0) * 12)
    first, second = found[: int(DAY_S)], found[int(DAY_S) :]
    assert second - DAY_S == pytest.approx(first, abs=1e-6)
    assert np.sum(first < 3600.0) == 1800
    assert np.sum((first >= 3600.0) & (first < 7200.0)) == 5400


def trace(tmp_path: Path, *dates: str) -> Path:
    file = tmp_path / "trace.csv"
    rows = "\n".join(f"{date},100,10" for date in dates)
    file.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}\n")
    return file


def test_dates_are_seconds_after_the_first(tmp_path: Path) -> None:
    plain = read_trace(
        trace(tmp_path, "2023-11-16 18:17:03.50", "2023-11-16 18:17:05", "2023-11-17 18:17:03.5")
    )
    assert plain.requests.arrival_s.tolist() == [0.0, 1.5, DAY_S]
    utc = read_trace(trace(tmp_path, "2023-11-16T18:17:03Z", "2023-11-16T18:17:04+00:00"))
    assert utc.requests.arrival_s.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("zone", ["+02:00", "-05:00"])
@pytest.mark.parametrize("fraction", ["", ".98"])
@pytest.mark.parametrize("row", [0, 1])
def test_a_time_of_another_zone_is_refused_at_its_line(
    tmp_path: Path, zone: str, fraction: str, row: int
) -> None:
    dates = ["2023-11-16 18:17:03", "2023-11-16 18:17:04"]
    dates[row] += fraction + zone
    with pytest.raises(DocumentError) as caught:
        read_trace(trace(tmp_path, *dates))
    (problem,) = caught.value.problems
    assert problem.where.endswith(f":{row + 2}")
    assert zone in problem.message


def test_a_date_that_is_missing_or_none_is_refused_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        read_trace(trace(tmp_path, "2023-11-16 18:17:03", "", "yesterday"))
    assert [one.where.rpartition(":")[2] for one in caught.value.problems] == ["3", "4"]
