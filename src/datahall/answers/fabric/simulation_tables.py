"""The tables and the chart of a fabric simulation."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answer import Axis, Column, LineChart, Series, Table
from datahall.fabric.flows.crosscheck import Crosscheck
from datahall.fabric.flows.outcome import Outcome
from datahall.fabric.flows.summary import JobRow, Sent, link_rows, rate_curves, step_rows

MOST_LINKS = 10
MOST_STEPS = 16


REPEATED = ("runs", "each run")  # columns that only jobs which come several times need


def job_table(rows: Sequence[JobRow]) -> Table:
    """Every job and burst of background."""
    columns = (
        Column("job"),
        Column("size", "bytes", key="size_bytes"),
        Column("flows", "count"),
        Column("start", "s"),
        Column("time", "s"),
        Column(REPEATED[0], "count"),
        Column(REPEATED[1], "s", key="run_s"),
        Column("bus bandwidth", "bytes_per_s"),
        Column("mean flow", "fraction"),
        Column("slowest flow", "fraction"),
    )
    repeated = any(row.num_runs > 1 for row in rows)
    kept = [place for place, one in enumerate(columns) if repeated or one.name not in REPEATED]
    return Table(
        title="jobs and background; flows as a share of what their ports allow",
        columns=tuple(columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in rows),
        note="the time of a job is that of all its runs, with the pauses between" if repeated else "",
    )


def difference_table(other: Crosscheck) -> Table:
    """Each job in two details."""
    columns = (
        Column("job"),
        Column(other.lower, "s"),
        Column(other.higher, "s"),
        Column("difference", "fraction"),
    )
    rows = tuple((job.name, job.lower_s, job.higher_s, job.difference_fraction) for job in other.jobs)
    return Table(title=f"cross-check: {other.lower} against {other.higher}", columns=columns, rows=rows)


def link_table(outcome: Outcome) -> Table:
    """The fullest links."""
    rows, num_used = link_rows(outcome, MOST_LINKS)
    columns = (
        Column("link"),
        Column("carried", "bytes"),
        Column("load", "fraction"),
        Column("peak", "fraction"),
        Column("capacity", "bytes_per_s"),
    )
    return Table(title=f"the fullest {len(rows)} of {num_used:,} links in use", columns=columns, rows=rows)


def timeline(outcome: Outcome) -> Table:
    """The steps of the jobs, in the order they come."""
    rows, num_steps = step_rows(outcome, MOST_STEPS)
    columns = (
        Column("job"),
        Column("step"),
        Column("flows", "count"),
        Column("first start", "s"),
        Column("last end", "s"),
    )
    more = num_steps - len(rows)
    note = f"{more:,} more steps; the Perfetto trace has them all" if more else ""
    return Table(title="timeline", columns=columns, rows=rows, note=note)


def chart(outcome: Outcome, sent: Sent) -> LineChart:
    """Bytes per second that all flows of each job move, over time."""
    return LineChart(
        title="what the jobs move",
        x=Axis("time", "s"),
        y=Axis("rate", "bytes_per_s"),
        series=tuple(
            Series(curve.name, curve.time_s, curve.bytes_per_s) for curve in rate_curves(outcome, sent)
        ),
    )
