"""The span of time that a budget is for: a day, a calendar month or all time, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from datahall.scenario.words import BudgetPeriod

SECOND_NS = 10**9
HOUR_NS = 3600 * SECOND_NS
NEVER_NS = 2**63 - 1


class Span(NamedTuple):
    """From when, and until before when."""

    start_ns: int
    end_ns: int


def span_of(period: BudgetPeriod, now_ns: int) -> Span:
    """The period that a moment lies in; each begins on a whole hour, by which usage is summed.

    >>> month = span_of("month", 1_795_000_000 * SECOND_NS)
    >>> datetime.fromtimestamp(month.start_ns / SECOND_NS, UTC).isoformat()
    '2026-11-01T00:00:00+00:00'
    """
    if period == "total":
        return Span(0, NEVER_NS)
    day = datetime.fromtimestamp(now_ns // SECOND_NS, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "day":
        return Span(_ns(day), _ns(day + timedelta(days=1)))
    first = day.replace(day=1)
    return Span(_ns(first), _ns((first + timedelta(days=31)).replace(day=1)))


def hour_of(now_ns: int) -> int:
    """The hour that a moment is summed under, counted from 1970."""
    return now_ns // HOUR_NS


def _ns(moment: datetime) -> int:
    return int(moment.timestamp()) * SECOND_NS
