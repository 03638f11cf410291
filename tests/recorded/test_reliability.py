"""The figures of `reliability/` are what they were: see `record.py`."""

from __future__ import annotations

from tests.recorded.record import check_calls, check_questions
from tests.recorded.sampled import sampled


def test_figures_of_calls(update: bool) -> None:
    check_calls("reliability", sampled("reliability", without=("reliability.simulation",)), update)


def test_figures_of_questions(update: bool) -> None:
    check_questions("reliability", update)
