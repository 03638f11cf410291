"""A trace played again on a cluster as large as the most that it held at once.

At the trace's own starts every job asks when it really started: chips are held as they were, unless our nodes cannot
be filled as theirs were.  Starts and run times are the trace's, so that is a check of our placement and no prediction,
and is not scored.  Under a policy it asks when it was submitted: then we say when it starts, and know neither shares
of users nor nodes that were down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import DocumentError
from datahall.scenario.words import QueuePolicy
from datahall.scheduling.curves import between
from datahall.scheduling.files.queue_file import QueueFile
from datahall.scheduling.files.read import queue_of
from datahall.scheduling.files.table import Table
from datahall.scheduling.loop.state import Floats
from datahall.scheduling.machine import Machine, plain_machine
from datahall.scheduling.run import Conditions, simulate_queue
from datahall.units import fmt
from datahall.validation.measurement import Outcome, Row
from datahall.validation.scorecard import Prediction, Replayed, Unsupported

HELD, WAIT = "chips held", "mean wait"
NODE_CHIPS = 8  # of a node, where a trace does not say
NUM_BINS = 100  # pieces of the time of a trace
NUM_PARTS = 10  # of its jobs, in the order that they were submitted
RESOLUTION_S = 1.0  # a trace counts whole seconds: less is predicted as one
WAIT_BAND = (0.1, 10.0)
POLICY: QueuePolicy = "backfill"


def predict(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Play the rows of each source by themselves."""
    by_source: dict[str, list[Row]] = {}
    for row in rows:
        by_source.setdefault(row.text("source"), []).append(row)
    for source, own in by_source.items():
        yield from _played(own, source)


def _played(rows: Sequence[Row], source: str) -> Iterator[Outcome]:
    table = _table(rows)
    try:
        file = queue_of(table)
    except DocumentError as error:
        reasons = [one.message.rpartition(" (")[0] or one.message for one in error.problems]
        yield from (Unsupported(reasons[0], row.where) for row in rows)
        return
    for one in file.left_out:
        yield from (Unsupported(one.reason, one.where) for _ in range(one.rows))
    if not file.has_starts:
        yield from (Unsupported("the trace does not say when jobs started", row.where) for row in rows)
        return
    machine = _machine(file)
    name = source or file.title
    for found in (*_waits(file, machine, name), *_held(file, machine)):
        yield msgspec.structs.replace(found, where=rows[0].where)


def _table(rows: Sequence[Row]) -> Table:
    columns = dict.fromkeys(key for row in rows for key in row.cells)
    path, _, _ = rows[0].where.rpartition(":")
    lines = [int(row.where.rpartition(":")[2] or 0) for row in rows]
    return Table(path, {name: [row.text(name) for row in rows] for name in columns}, lines)


def _machine(file: QueueFile) -> Machine:
    jobs = file.jobs
    size = max(NODE_CHIPS, int((-(-jobs.chips // np.maximum(1, jobs.nodes)))[jobs.nodes > 0].max(initial=0)))
    nodes = max(-(-file.peak_chips // size), int(jobs.nodes.max()), int((-(-jobs.chips // size)).max()))
    return plain_machine(nodes, size)


def _held(file: QueueFile, machine: Machine) -> Iterator[Replayed]:
    """The mean number of chips held in each piece of time: by the trace, and as we place its jobs at its starts."""
    jobs = file.jobs
    exact = msgspec.structs.replace(jobs, submit_s=jobs.start_s, limit_s=jobs.run_s)
    order = np.argsort(exact.submit_s, kind="stable")
    run = simulate_queue(exact.taken(order), machine, "gang", Conditions(depth=jobs.num))
    begin, end = float(jobs.start_s.min()), float((jobs.start_s + jobs.run_s).max())
    edges = np.linspace(begin, end, NUM_BINS + 1)
    chips = jobs.chips.astype(np.float64)
    measured = between(jobs.start_s, jobs.start_s + jobs.run_s, chips, edges)
    attempts = run.attempts
    replayed = between(attempts["start_s"], attempts["end_s"], attempts["chips"].astype(np.float64), edges)
    for place in np.flatnonzero(measured > 0).tolist():
        yield Replayed(
            metric=HELD, where=file.path, measured=float(measured[place]), predicted=float(replayed[place])
        )


def _waits(file: QueueFile, machine: Machine, source: str) -> Iterator[Prediction | Unsupported]:
    """Mean waits of tenths of the jobs: as the trace has them, and under our policy."""
    jobs = file.jobs
    measured = jobs.start_s - jobs.submit_s
    run = simulate_queue(jobs, machine, POLICY, Conditions())
    predicted = run.first_s - jobs.submit_s
    for part in np.array_split(np.arange(jobs.num), min(NUM_PARTS, jobs.num)):
        seen, waits_s = _mean(measured, part), _mean(predicted, part)
        said = max(RESOLUTION_S, waits_s)
        if seen <= 0:
            yield Unsupported(f"nobody waited, predicted {fmt(waits_s, 's')}: no share of nothing", file.path)
        else:
            label = f"jobs {part[0] + 1} to {part[-1] + 1}" if part.size > 1 else f"job {part[0] + 1}"
            yield Prediction(
                source=source,
                hardware=f"{machine.num_chips:,} chips",
                model=POLICY,
                label=f"{WAIT}, {label}",
                where=file.path,
                measured=seen,
                predicted=said,
                low=said * WAIT_BAND[0],
                high=said * WAIT_BAND[1],
                metric=WAIT,
            )


def _mean(values: Floats, part: NDArray[np.int64]) -> float:
    return float(values[part].mean())
