"""Traces of public clusters as their publishers write them, and our own columns."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.counted import counted
from datahall.errors import DocumentError, Problem
from datahall.scheduling.files.queue_file import QueueFile
from datahall.scheduling.files.table import Sieve, Table, numbered, numbers
from datahall.scheduling.files.times import points_s
from datahall.scheduling.jobs import jobs_of


class TraceColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Names of a trace's columns: when a job was submitted, started, ended or how long it ran, and what it held."""

    title: str
    submit: str
    chips: str
    run: str = ""  # how long; or
    end: str = ""  # when it ended
    start: str = ""
    wait: str = ""  # instead of a start
    limit: str = ""
    nodes: str = ""
    workers: str = ""  # of so many chips each
    user: str = ""
    name: str = ""
    priority: str = ""
    low_priority: tuple[str, str] = ("", "")  # a column, and the word in it of jobs that may be stopped
    kind: str = ""
    parts: str = ""  # thousandths of a chip, of jobs that share one

    @property
    def needs(self) -> set[str]:
        """The columns by which it is known."""
        return {self.submit, self.chips, self.run or self.end, *([self.start] if self.end else [])}


# Our own first; a file is read as the first of which it has all that it needs.
LAYOUTS = (
    TraceColumns(
        title="our own columns", submit="submit_s", chips="chips", run="run_s", start="start_s", limit="limit_s",
        nodes="nodes", user="user", name="name", priority="priority", low_priority=("preemptible", "true"),
        kind="kind",
    ),
    TraceColumns(
        title="Alibaba GPU trace of 2023 (openb)", submit="creation_time", chips="num_gpu", start="scheduled_time",
        end="deletion_time", name="name", low_priority=("qos", "BE"), parts="gpu_milli",
    ),
    TraceColumns(
        title="Acme or Helios (Slurm, PAI-DLC)", submit="submit_time", chips="gpu_num", start="start_time",
        end="end_time", nodes="node_num", user="user", name="job_id",
    ),
    TraceColumns(
        title="Alibaba spot GPU trace of 2026", submit="submit_time", chips="gpu_request", run="duration",
        workers="worker_num", user="organization", name="job_name", low_priority=("job_type", "Spot"),
    ),
    TraceColumns(
        title="Alibaba PAI trace of 2020, as its simulator has it", submit="submit_time", chips="num_gpu",
        run="duration", wait="wait_time", workers="num_inst", user="user", name="job_id",
    ),
)  # fmt: skip


def known_columns() -> str:
    """What each layout needs, for an error."""
    return "; ".join(f"{one.title}: {', '.join(sorted(one.needs))}" for one in LAYOUTS)


def trace_queue(table: Table) -> QueueFile:
    """The jobs of a trace's table, by the layout that it has."""
    layout = next((one for one in LAYOUTS if one.needs <= set(table.columns)), None)
    if layout is None:
        seen = ", ".join(list(table.columns)[:12])
        problem = Problem(f"{table.path}:1", f"columns {seen} are of no known trace", known_columns())
        raise DocumentError(table.path, [problem])
    return _queue(table, layout)


def _queue(table: Table, layout: TraceColumns) -> QueueFile:
    sieve = Sieve(table)
    submit = points_s(table.column(layout.submit))
    start = _starts(table, layout, submit)
    run = numbers(table.column(layout.run)) if layout.run else points_s(table.column(layout.end)) - start
    each = numbers(table.column(layout.chips))
    workers = np.maximum(1.0, np.nan_to_num(numbers(table.column(layout.workers)), nan=1.0))
    chips = np.ceil(each * (workers if layout.workers else 1.0))
    sieve.drop(np.isnan(submit), "does not say when it was submitted")
    if layout.end:
        sieve.drop(np.isnan(start), "never started")
    sieve.drop(~(chips >= 1), "holds no chip")
    sieve.drop(np.isnan(run), "does not say how long it ran")
    sieve.drop(run < 0, "ends before it starts")
    sieve.drop(run == 0, "ran for no time")
    sieve.drop(np.nan_to_num(start, nan=np.inf) < submit, "starts before it is submitted")
    _drop_twice(sieve, layout)
    sieve.check_any()
    users, user = numbered(table.column(layout.user))
    words = [f"{where}" for where in table.column(layout.low_priority[0])]
    low = np.array([word.strip().lower() == layout.low_priority[1].lower() for word in words], np.bool_)
    limit = numbers(table.column(layout.limit))
    jobs = jobs_of(
        submit,
        run,
        np.where(sieve.kept, chips, 1).astype(np.int64),
        names=tuple(table.column(layout.name)) if layout.name in table.columns else (),
        users=users,
        user=user,
        limit_s=np.where(np.isfinite(limit), limit, run),
        start_s=start,
        nodes=_nodes(table, layout, chips),
        priority=np.nan_to_num(numbers(table.column(layout.priority))),
        preemptible=low & bool(layout.low_priority[1]),
        serving=np.array([one == "serving" for one in table.column(layout.kind)], np.bool_),
    )
    parts = np.nan_to_num(numbers(table.column(layout.parts)), nan=1000.0)
    shared = int(((parts < 1000) & (each == 1) & sieve.kept).sum()) if layout.parts else 0
    share = "shares a chip with others: it" if shared == 1 else "share a chip with others: each"
    notes = (f"{counted(shared, 'job')} {share} is given a whole one",) if shared else ()
    return QueueFile(
        path=table.path,
        title=layout.title,
        jobs=jobs.taken(sieve.kept).from_the_first,
        left_out=tuple(sieve.left_out),
        notes=notes,
    )


def _starts(table: Table, layout: TraceColumns, submit: NDArray[np.float64]) -> NDArray[np.float64]:
    if layout.wait:
        return submit + numbers(table.column(layout.wait))
    return points_s(table.column(layout.start))


def _nodes(table: Table, layout: TraceColumns, chips: NDArray[np.float64]) -> NDArray[np.int64]:
    """Nodes that jobs ask for; none where the trace does not say, or says more than chips."""
    said = np.nan_to_num(numbers(table.column(layout.nodes)), nan=0.0)
    return np.where((said >= 1) & (said <= np.nan_to_num(chips)), said, 0).astype(np.int64)


def _drop_twice(sieve: Sieve, layout: TraceColumns) -> None:
    """Leave out rows of a job that stands there already, all of them alike."""
    if layout.name not in sieve.table.columns:
        return
    rows = list(zip(*sieve.table.columns.values(), strict=True))
    seen: set[tuple[str, ...]] = set()
    twice = np.zeros(len(rows), np.bool_)
    for index, row in enumerate(rows):
        twice[index] = row in seen
        seen.add(row)
    sieve.drop(twice, "the same row again")
