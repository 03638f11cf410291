"""What a queue costs to play: with twice the jobs about twice the calls, whatever the policy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from tests.scheduling.queue_case import play
from tests.scheduling.test_reference import Chosen

from datahall.scheduling.jobs import Jobs, jobs_of
from datahall.scheduling.loop import state
from datahall.scheduling.loop.advance import advance
from datahall.scheduling.machine import plain_machine

ROOM = state.__file__.rpartition("/")[0]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """How often functions of the loop are called, as it is and not compiled."""
    monkeypatch.setattr("datahall.scheduling.run.advance", Chosen(advance.interpreted))

    def counted(run: Callable[[], object]) -> int:
        num = 0

        def count(frame: FrameType, event: str, _: Any) -> None:
            nonlocal num
            num += event == "call" and frame.f_code.co_filename.startswith(ROOM)

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            run()
        finally:
            sys.setprofile(before)
        return num

    return counted


def stopped_for_one(num: int) -> Jobs:
    """So many jobs of one chip that may be stopped, and one that takes all chips from them."""
    submit_s = np.append(np.arange(num), 2.0 * num).astype(float)
    return jobs_of(
        submit_s,
        np.append(np.linspace(20.0 * num, 10.0 * num, num), 5.0),
        np.append(np.ones(num, np.int64), num),
        priority=np.append(np.zeros(num), 1.0),
        preemptible=np.append(np.ones(num, np.bool_), False),
    )


def test_to_stop_twice_as_many_jobs_costs_about_twice_as_much(
    calls: Callable[[Callable[[], object]], int],
) -> None:
    few, many = (
        calls(lambda num=num: play(stopped_for_one(num), "priority", plain_machine(1, num)))
        for num in (120, 240)
    )
    assert many < 2.5 * few


def at_once(num: int) -> Jobs:
    """So many jobs of three users submitted at once, on which use takes turns."""
    numbers = np.arange(num)
    return jobs_of(
        np.zeros(num),
        5.0 + numbers % 7,
        np.ones(num, np.int64),
        user=numbers % 3,
        users=("a", "b", "c"),
    )


def test_a_turn_among_users_costs_no_more_than_a_look_at_their_jobs(
    calls: Callable[[Callable[[], object]], int],
) -> None:
    """Every event may turn the queue around: with twice the jobs twice the events, each over twice the queue."""
    few, many = (
        calls(lambda num=num: play(at_once(num), "fair-share", plain_machine(1, 4), depth=4))
        for num in (60, 120)
    )
    assert many < 4.0 * few
