"""Columns of requests are cut between sessions and put together again."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import ScenarioError
from datahall.workload.traffic.requests import Requests, in_chunks, join


def waiting(after: list[int]) -> Requests:
    num = len(after)
    plain = Requests.of(np.arange(num, dtype=float), np.full(num, 9), np.full(num, 3))
    return msgspec.structs.replace(plain, after=np.array(after, np.int64))


def test_independent_requests_are_cut_anywhere() -> None:
    assert [len(chunk) for chunk in in_chunks([waiting([-1] * 7)], 3)] == [3, 3, 1]


def test_sessions_stay_whole_and_count_from_their_chunk() -> None:
    run = waiting([-1, 0, 1, -1, -1, 4])
    chunks = list(in_chunks([run], 4))
    assert [chunk.after.tolist() for chunk in chunks] == [[-1, 0, 1, -1], [-1, 0]]


def test_a_session_longer_than_a_chunk_is_a_chunk() -> None:
    assert [len(chunk) for chunk in in_chunks([waiting([-1, 0, 1, 2, -1])], 2)] == [4, 1]


def test_sessions_that_interleave_stay_together() -> None:
    assert [len(chunk) for chunk in in_chunks([waiting([-1, -1, 0, 1, -1])], 2)] == [4, 1]


def test_a_cut_within_a_session_is_refused() -> None:
    with pytest.raises(ScenarioError, match="begin within a session"):
        waiting([-1, 0, 1]).rows(1, 3)
    with pytest.raises(ScenarioError, match="begin within a session"):
        waiting([-1, 0]).rows(1, 2)
    assert waiting([-1, -1, 1]).rows(1, 3).after.tolist() == [-1, 0]


def test_nothing_joined_is_nothing() -> None:
    assert len(join([])) == 0


@given(
    back=st.lists(st.integers(0, 6), min_size=1, max_size=40),
    size=st.integers(1, 10),
)
def test_cut_and_joined_is_the_same(back: list[int], size: int) -> None:
    run = waiting([row - step if step and row >= step else -1 for row, step in enumerate(back)])
    whole = join(in_chunks([run], size))
    assert np.array_equal(whole.after, run.after)
    assert np.array_equal(whole.arrival_s, run.arrival_s)
