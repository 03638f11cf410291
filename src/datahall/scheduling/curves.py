"""What a run looks like over time: chips held, jobs waiting, and who had which node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.events import perfetto, rows
from datahall.scheduling.loop.state import Floats
from datahall.scheduling.run import Run

NUM_BINS = 160
MOST_ROWS = 32  # nodes of a Gantt chart
MOST_PIECES = 3000


class Piece(NamedTuple):
    """A job on some chips of a node, from the `low`-th on, for a while."""

    node: int
    start_s: float
    end_s: float
    low: int
    high: int
    job: int

    def low_fraction(self, num_chips: int) -> float:
        """Where its part of a node of so many chips begins."""
        return self.low / num_chips

    def high_fraction(self, num_chips: int) -> float:
        """And where it ends."""
        return self.high / num_chips


def bins_of(first_s: float, last_s: float) -> Floats:
    """The ends of equal pieces of time, which is a second at least."""
    return np.linspace(first_s, max(last_s, first_s + 1.0), NUM_BINS + 1)


def in_use(run: Run, edges: Floats) -> Floats:
    """Mean share of the chips that jobs held, between edges of time."""
    chips = run.attempts["chips"].astype(np.float64)
    return between(run.attempts["start_s"], run.attempts["end_s"], chips, edges) / run.machine.num_chips


def waiting(run: Run, edges: Floats) -> Floats:
    """Mean number of jobs that wait, between edges of time; one that never starts waits to the end."""
    attempts, never = run.attempts, run.first_s < 0
    begins = np.concatenate([attempts["queued_s"], run.jobs.submit_s[never]])
    ends = np.concatenate([attempts["start_s"], np.full(int(never.sum()), run.over_s)])
    return between(begins, ends, np.ones(begins.size), edges)


def between(start_s: Floats, end_s: Floats, weight: Floats, edges: Floats) -> Floats:
    """The mean over each piece of time of what holds `weight` from start to end.

    >>> between(np.array([0.0]), np.array([3.0]), np.array([2.0]), np.array([0.0, 2.0, 4.0])).tolist()
    [2.0, 1.0]
    """
    area = np.zeros(edges.size)
    order, back = np.argsort(start_s), np.argsort(end_s)
    for times, weights in ((start_s[order], weight[order]), (end_s[back], -weight[back])):
        # what began before an edge has held since: Σ w (edge − start)
        num = np.searchsorted(times, edges, side="right")
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        moments = np.concatenate([[0.0], np.cumsum(weights * times)])
        area += edges * sums[num] - moments[num]
    return np.maximum(0.0, np.diff(area) / np.diff(edges))


def pieces(run: Run) -> list[Piece]:
    """Who had which chips of the first nodes; those of a node that are free longest are taken first."""
    found = rows(run.trace)
    found = found[found["a"] < MOST_ROWS]
    found = found[np.argsort(found["time_s"], kind="stable")][:MOST_PIECES]
    busy = {node: np.zeros(int(size)) for node, size in enumerate(run.machine.chips[:MOST_ROWS])}
    made: list[Piece] = []
    for start_s, job, node, chips, _, length_s in found.tolist():
        slots = np.flatnonzero(busy[node] <= start_s + 1e-9)[:chips]
        busy[node][slots] = start_s + length_s
        parts = np.split(slots, np.flatnonzero(np.diff(slots) > 1) + 1) if slots.size and length_s > 0 else []
        made += [
            Piece(node, start_s, start_s + length_s, int(one[0]), int(one[-1]) + 1, job) for one in parts
        ]
    return made


def trace_of(run: Run) -> bytes:
    """The run for ui.perfetto.dev: a track for each node, a slice for each job on it."""
    names = {int(job): run.jobs.names[int(job)] for job in np.unique(rows(run.trace)["kind"])}
    return perfetto(
        run.trace, names, {node: f"{run.machine.unit} {node}" for node in range(run.machine.num_nodes)}
    )
