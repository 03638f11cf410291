"""The tables and charts of a queue."""

from __future__ import annotations

from datahall.answer import Axis, Bar, Chart, Column, GanttChart, LineChart, Series, Table
from datahall.scheduling.comparison import Comparison
from datahall.scheduling.curves import MOST_ROWS, Piece, pieces
from datahall.scheduling.run import Run

MOST_JOBS = 20


def policy_table(found: Comparison) -> Table:
    """The policies side by side."""
    columns = (
        Column("policy"),
        Column("mean wait", "s"),
        Column("P95 wait", "s"),
        Column("slowdown", "ratio"),
        Column("makespan", "s"),
        Column("held", "fraction", "utilisation_fraction"),
        Column("goodput", "fraction"),
    )
    rows = tuple(
        (
            run.policy,
            one.mean_wait_s,
            one.p95_wait_s,
            one.slowdown_ratio,
            one.makespan_s,
            one.utilisation_fraction,
            one.goodput_fraction,
        )
        for run, one in zip(found.runs, found.metrics, strict=True)
    )
    return Table(
        title="policies on one queue",
        columns=columns,
        rows=rows,
        marked=found.best,
        note=(
            "Slowdown is the mean of (wait + run) / run, runs of at least 10 s. Held is the share of the chips' time "
            "that jobs have; goodput the share of that which is useful."
        ),
    )


def waste_table(found: Comparison) -> Table:
    """What each policy wastes, and on whom."""
    columns = (
        Column("policy"),
        Column("median wait", "s"),
        Column("idle, would fit", "fraction", "blocked_fraction"),
        Column("fairness", "fraction"),
        Column("restarts", "count", "num_restarts"),
        Column("spread out", "count", "num_spread"),
        Column("done", "count", "num_done"),
    )
    rows = tuple(
        (
            run.policy,
            one.median_wait_s,
            one.blocked_fraction,
            one.fairness_fraction,
            one.num_restarts,
            one.num_spread,
            one.num_done,
        )
        for run, one in zip(found.runs, found.metrics, strict=True)
    )
    return Table(
        title="what is wasted",
        columns=columns,
        rows=rows,
        marked=found.best,
        note=(
            "Idle, would fit: chip time that nobody had while a job waited for no more chips than that. Fairness is "
            "Jain's index of the users' mean slowdown. Spread out: starts that are slowed by the network they cross."
        ),
    )


def user_table(found: Comparison) -> tuple[Table, ...]:
    """Who had the chips under the best policy."""
    rows = found.user_rows(found.best)
    columns = (
        Column("user"),
        Column("jobs", "count"),
        Column("chip time", "chip_s", "chip_time_s"),
        Column("share", "fraction"),
        Column("mean wait", "s"),
    )
    policy = found.runs[found.best].policy
    note = "Jobs that never start are not in the mean wait." if found.num_never_done else ""
    return (
        (Table(title=f"users under {policy}", columns=columns, rows=tuple(rows), note=note),) if rows else ()
    )


def job_table(found: Comparison) -> tuple[Table, ...]:
    """Every job of a short queue under the best policy."""
    run, jobs = found.runs[found.best], found.question.jobs
    if jobs.num > MOST_JOBS:
        return ()
    columns = (
        Column("job"),
        Column("chips", "count"),
        Column("submitted", "s"),
        Column("started", "s"),
        Column("ended", "s"),
        Column("restarts", "count"),
    )
    rows = tuple(
        (
            jobs.names[index],
            int(jobs.chips[index]),
            float(jobs.submit_s[index]),
            _time(float(run.first_s[index])),
            _time(float(run.end_s[index])),
            int(run.restarts[index]),
        )
        for index in range(jobs.num)
    )
    return (Table(title=f"jobs under {run.policy}", columns=columns, rows=rows),)


def _time(value: float) -> float | None:
    return value if value >= 0 else None


def left_out_table(found: Comparison) -> tuple[Table, ...]:
    """Rows of the file that are no jobs of the queue."""
    file = found.question.file
    rows = tuple((one.reason, one.rows, one.where) for one in file.left_out) if file else ()
    columns = (Column("why"), Column("rows", "count", "num_rows"), Column("first at"))
    return (Table(title="rows that are left out", columns=columns, rows=rows),) if rows else ()


def charts(found: Comparison) -> tuple[Chart, ...]:
    """Chips held and jobs waiting over time, and who had which node."""
    run = found.runs[found.best]
    if run.span_s <= 0:
        return ()
    drawn = pieces(run)
    gantt = (_gantt(run, drawn),) if drawn else ()
    return (
        LineChart(
            title="chips that jobs hold",
            x=Axis("time", "s"),
            y=Axis("share of the chips", "fraction"),
            series=tuple(Series(one.name, one.time_s, one.value) for one in found.held_curves),
        ),
        LineChart(
            title="jobs that wait",
            x=Axis("time", "s"),
            y=Axis("jobs", "count"),
            series=tuple(Series(one.name, one.time_s, one.value) for one in found.queue_curves),
        ),
        *gantt,
    )


def _gantt(run: Run, drawn: list[Piece]) -> GanttChart:
    machine, nodes = run.machine, run.machine.num_nodes
    rows = min(nodes, MOST_ROWS)
    some = f"the first {rows} of {nodes:,} {machine.unit}s" if rows < nodes else f"the {machine.unit}s"
    return GanttChart(
        title=f"jobs on {some} under {run.policy}",
        rows=tuple(f"{machine.unit} {node}" for node in range(rows)),
        bars=tuple(
            Bar(
                piece.node,
                piece.start_s,
                piece.end_s,
                run.jobs.names[piece.job],
                piece.low_fraction(int(machine.chips[piece.node])),
                piece.high_fraction(int(machine.chips[piece.node])),
            )
            for piece in drawn
        ),
        end=max(piece.end_s for piece in drawn),
        note=f"A bar is as tall as the share of a {machine.unit}'s chips that the job has.",
    )
