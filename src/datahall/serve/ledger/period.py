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


def month_of(month: str, now_ns: int) -> tuple[str, Span]:
    """A month by its name, "2026-11", or that of a moment.

    >>> month_of("2026-11", 0)[1] == span_of("month", 1_795_000_000 * SECOND_NS)
    True
    """
    begun = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC) if month else None
    span = span_of("month", _ns(begun) if begun is not None else now_ns)
    return f"{datetime.fromtimestamp(span.start_ns // SECOND_NS, UTC):%Y-%m}", span


def day_of(moment_ns: int) -> str:
    """The day of a moment, in UTC; nothing for none."""
    return f"{datetime.fromtimestamp(moment_ns // SECOND_NS, UTC):%Y-%m-%d}" if moment_ns else ""
