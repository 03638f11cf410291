"""The figures of `scheduling/` are what they were: see `record.py`."""

from __future__ import annotations

from tests.recorded.record import check_questions


def test_figures_of_questions(update: bool) -> None:
    check_questions("scheduling", update)
