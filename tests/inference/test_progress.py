"""A long run says how far it is, at growing intervals, and hands on what it was given."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from datahall.inference.simulation.progress import SILENT_S, reported, sentence
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.traffic import Traffic, generate


class Clock:
    """A clock that goes on by so much each time it is read."""

    def __init__(self, step_s: float) -> None:
        self.now_s, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def said(caplog: pytest.LogCaptureFixture, num_chunks: int, step_s: float) -> list[str]:
    traffic = Traffic(arrivals=Arrivals(rate_per_s=1.0), num_requests=10 * num_chunks)
    caplog.clear()
    with caplog.at_level(logging.INFO, "datahall"):
        told = list(reported(generate(traffic, 0, 10), traffic.num_requests, Clock(step_s)))
    plain = list(generate(traffic, 0, 10))
    assert [len(chunk) for chunk in told] == [len(chunk) for chunk in plain]
    assert np.array_equal(told[-1].arrival_s, plain[-1].arrival_s)
    return [record.getMessage() for record in caplog.records]


def test_a_short_run_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert not said(caplog, 20, SILENT_S / 100)


def test_a_long_run_speaks_less_and_less(caplog: pytest.LogCaptureFixture) -> None:
    """Of 1,000 chunks of a second each nine are told, each after twice as long as the last one."""
    lines = said(caplog, 1000, SILENT_S)
    told = [int(line.split()[0].replace(",", "")) // 10 for line in lines]
    assert told == [3 * 2**times - 1 for times in range(9)]  # of 3 s, 6 s, 12 s …


def test_the_rest_takes_as_long_as_what_was_did() -> None:
    assert "about 50 s" in sentence(320, 640, 50.0, 50.0 / 320)
    assert "about 25 s" in sentence(400, 600, 50.0, 50.0 / 400)
    assert "about" not in sentence(400, 0, 50.0, 50.0 / 400)


def test_the_time_to_compile_is_not_the_pace(caplog: pytest.LogCaptureFixture) -> None:
    """100 chunks of ten requests; the first takes a minute, each other one a second."""
    traffic = Traffic(arrivals=Arrivals(rate_per_s=1.0), num_requests=1000)
    readings = iter([0.0, 0.0, *(60.0 + index for index in range(99))])
    with caplog.at_level(logging.INFO, "datahall"):
        for _ in reported(generate(traffic, 0, 10), 1000, lambda: next(readings)):
            pass
    assert caplog.records[0].getMessage() == sentence(20, 1000, 61.0, 0.1)
