"""The busiest stretch of a trace, by hand: which requests it has, and how often they come."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import ScenarioError
from datahall.workload.traffic.recorded.replay import replay
from datahall.workload.traffic.recorded.stretch import Stretch, busiest
from datahall.workload.traffic.requests import Requests
from datahall.workload.traffic.traffic import TraceReplay

HEAD = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
OWN = "arrival_s,prompt,output,after,session\n"


def written(folder: Path, times: list[float], prompt: list[int] | None = None) -> str:
    path = folder / "requests.csv"
    lengths = prompt or [100] * len(times)
    rows = (f"{time_s!r},{tokens},10" for time_s, tokens in zip(times, lengths, strict=True))
    path.write_text(HEAD + "\n".join(rows))
    return str(path)


def played(path: str, speed: float = 1.0) -> TraceReplay:
    return TraceReplay(path=path, speed_ratio=speed, first=0, block_tokens=0)


def found(folder: Path, times: list[float], window_s: float, **more: float) -> Stretch:
    return busiest(played(written(folder, times), **more), window_s)


def test_the_stretch_is_where_most_requests_come(tmp_path: Path) -> None:
    """One a second for ten seconds, four a second for five, one a second again."""
    times = [*range(10), *(10 + place / 4 for place in range(20)), *range(15, 25)]
    stretch = found(tmp_path, [float(one) for one in times], 5.0)
    assert (stretch.start_s, stretch.span_s, len(stretch.requests)) == (10.0, 5.0, 20)
    assert stretch.rate_per_s == 4.0
    assert stretch.mean_per_s == pytest.approx(40 / (24.0 * 40 / 39))
    assert stretch.requests.arrival_s[:3].tolist() == [0.0, 0.25, 0.5]
    assert not stretch.is_whole


@pytest.mark.parametrize("window_s", [0.01, 0.3, 1.0, 7.7, 1000.0])
@pytest.mark.parametrize("gap_s", [0.04, 1 / 3, 2.0])
def test_equal_gaps_have_their_rate_whatever_the_window(
    tmp_path: Path, gap_s: float, window_s: float
) -> None:
    stretch = found(tmp_path, [place * gap_s for place in range(100)], window_s)
    assert stretch.rate_per_s == pytest.approx(1 / gap_s, rel=1e-9)
    assert stretch.mean_per_s == pytest.approx(1 / gap_s, rel=1e-9)


def test_a_faster_trace_has_a_stretch_of_as_long_a_time(tmp_path: Path) -> None:
    times = [float(place) for place in range(100)]
    stretch = found(tmp_path, times, 10.0, speed=2.0)
    assert (stretch.rate_per_s, stretch.span_s, len(stretch.requests)) == (2.0, 10.0, 20)


def test_a_window_longer_than_the_trace_is_all_of_it(tmp_path: Path) -> None:
    stretch = found(tmp_path, [0.0, 1.0, 5.0], 300.0)
    assert stretch.is_whole
    assert stretch.rate_per_s == stretch.mean_per_s == pytest.approx(3 / 7.5)


@given(
    gaps=st.lists(st.floats(1e-3, 100.0), min_size=2, max_size=60),
    window_s=st.floats(1e-2, 1e3),
)
def test_the_busiest_is_at_least_as_busy_as_any_other(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[float], window_s: float
) -> None:
    """Against all stretches, one by one."""
    times = np.append(0.0, np.cumsum(gaps)).tolist()
    stretch = found(tmp_path_factory.mktemp("trace"), times, window_s)
    end_s = times[-1] * len(times) / (len(times) - 1)
    edges = [*times, end_s]
    rates = [
        (stop - start) / (edges[stop] - edges[start])
        for start in range(len(times))
        for stop in [
            next((at for at, edge in enumerate(edges) if edge >= times[start] + window_s * (1 - 1e-9)), 0)
        ]
        if stop
    ]
    assert stretch.rate_per_s == pytest.approx(max(rates, default=len(times) / end_s), rel=1e-9)


def test_later_turns_come_with_the_request_that_their_conversation_begins_with(tmp_path: Path) -> None:
    """The second conversation has three turns; its turns point to each other's rows among those that are left."""
    path = tmp_path / "own.csv"
    rows = ["0,10,5,-1,0", "10,10,5,-1,1", "2,20,5,1,1", "2,30,5,2,1", "20,10,5,-1,2"]
    path.write_text(OWN + "\n".join(rows))
    stretch = busiest(played(str(path)), 10.0)
    assert stretch.start_s == 10.0
    assert stretch.requests.after.tolist() == [-1, 0, 1]
    assert stretch.requests.arrival_s.tolist() == [0.0, 2.0, 2.0]
    assert stretch.rate_per_s == pytest.approx(3 / 10)


def test_requests_that_pass_the_context_are_left_out_with_those_that_wait_for_them(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    rows = ["0,10,5,-1,0", "10,990,15,-1,1", "2,20,5,1,1", "20,10,5,-1,2"]
    path.write_text(OWN + "\n".join(rows))
    stretch = busiest(played(str(path)), 300.0, 1000)
    assert (len(stretch.requests), stretch.num_too_long, stretch.num_recorded) == (2, 2, 2)
    with pytest.raises(ScenarioError, match=r"none of the 4 requests .* fits the context of 10 tokens"):
        busiest(played(str(path)), 300.0, 10)


def test_all_at_one_time_have_no_rate(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="come at one time, from which no rate follows"):
        found(tmp_path, [0.0] * 5, 10.0)


def test_a_stretch_goes_on_without_a_gap_when_it_is_played_again(tmp_path: Path) -> None:
    times = [0.0, 1.0, 2.0, 2.25, 2.5, 2.75, 3.0, 4.0]
    stretch = found(tmp_path, times, 1.0)
    (chunk, again) = replay(stretch.trace, num=8)
    assert chunk.arrival_s.tolist() == [0.0, 0.25, 0.5, 0.75]
    assert again.arrival_s.tolist() == [1.0, 1.25, 1.5, 1.75]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_comes_to_some_of_the_replicas_is_a_share_of_the_requests(tmp_path: Path, share: float) -> None:
    stretch = found(tmp_path, [place * 0.1 for place in range(4000)], 1e6)
    thin = stretch.thinned(share, 0)
    assert len(thin.requests) == pytest.approx(share * 4000, abs=4 * np.sqrt(4000 * share * (1 - share)))
    assert thin.duration_s == stretch.span_s
    assert np.array_equal(thin.requests.arrival_s, stretch.thinned(share, 0).requests.arrival_s)


def test_chosen_rows_keep_their_block_keys() -> None:
    own = Requests.of(np.arange(3.0), np.full(3, 1000), np.full(3, 10))
    keyed = msgspec.structs.replace(
        own, blocks=np.array([1, 2, 3, 1, 4]), block_start=np.array([0, 2, 3, 5]), block_tokens=512
    )
    some = keyed.chosen(np.array([True, False, True]))
    assert (some.blocks.tolist(), some.block_start.tolist(), some.block_tokens) == (
        [1, 2, 1, 4],
        [0, 2, 4],
        512,
    )
