"""Policies side by side on one queue, and which of them serves it best."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from datahall.scheduling.asked import Question
from datahall.scheduling.curves import bins_of, in_use, waiting
from datahall.scheduling.loop.state import Floats
from datahall.scheduling.metrics import Metrics, metrics_of
from datahall.scheduling.run import Run

USER_ROWS = 8


class Curve(NamedTuple):
    """One line over time."""

    name: str
    time_s: tuple[float, ...]
    value: tuple[float, ...]


class UserRow(NamedTuple):
    """What one user had under a policy."""

    name: str
    num_jobs: int
    chip_time_s: float
    share_fraction: float
    mean_wait_s: float | None  # of those of their jobs that started; None where none did


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a question, one for each policy, and what each is worth."""

    question: Question
    runs: tuple[Run, ...]
    metrics: tuple[Metrics, ...]

    @property
    def best(self) -> int:
        """The policy under which jobs wait least; of those alike, the one with more goodput, then the first."""
        return min(range(len(self.runs)), key=lambda index: self.metrics[index].rank)

    @property
    def as_good(self) -> tuple[str, ...]:
        """The best, and those that are as good."""
        return tuple(
            run.policy
            for run, one in zip(self.runs, self.metrics, strict=True)
            if one.rank == self.metrics[self.best].rank
        )

    @property
    def num_never_done(self) -> int:
        """Jobs that do not end under the best policy either."""
        return self.question.jobs.num - self.metrics[self.best].num_done

    @property
    def worst(self) -> int:
        """The one under which they wait most."""
        return max(range(len(self.runs)), key=lambda index: self.metrics[index].rank)

    @property
    def load_fraction(self) -> float:
        """Work of all jobs over what the cluster does from the first submission to the last."""
        jobs, span_s = self.question.jobs, float(self.question.jobs.submit_s[-1])
        work_s = float((jobs.chips * np.minimum(jobs.run_s, jobs.limit_s)).sum())
        return work_s / (self.question.machine.num_chips * span_s) if span_s > 0 else 0.0

    @property
    def measured_wait_s(self) -> float | None:
        """Mean wait by the starts that the trace itself states; None where it states none."""
        file = self.question.file
        if file is None or not file.has_starts:
            return None
        return float((self.question.jobs.start_s - self.question.jobs.submit_s).mean())

    @property
    def held_curves(self) -> tuple[Curve, ...]:
        """The share of the chips that jobs hold, over time, by policy."""
        return self._curves(in_use)

    @property
    def queue_curves(self) -> tuple[Curve, ...]:
        """Jobs that wait, over time, by policy."""
        return self._curves(waiting)

    def _curves(self, of: Callable[[Run, Floats], Floats]) -> tuple[Curve, ...]:
        edges = bins_of(max(run.span_s for run in self.runs) or 1.0)
        middle = tuple(((edges[1:] + edges[:-1]) / 2).tolist())
        return tuple(Curve(run.policy, middle, tuple(of(run, edges).tolist())) for run in self.runs)

    def user_rows(self, index: int) -> tuple[UserRow, ...]:
        """Those who had most of the chips' time under a policy."""
        run, jobs = self.runs[index], self.question.jobs
        if len(jobs.users) < 2:
            return ()
        attempts = run.attempts
        held_s = np.bincount(
            jobs.user[attempts["job"]],
            attempts["chips"] * (attempts["end_s"] - attempts["start_s"]),
            len(jobs.users),
        )
        number = np.bincount(jobs.user, minlength=len(jobs.users))
        begun = run.first_s >= 0
        started = np.bincount(jobs.user[begun], minlength=len(jobs.users))
        waits = np.bincount(jobs.user[begun], (run.first_s - jobs.submit_s)[begun], len(jobs.users))
        first = np.argsort(-held_s, kind="stable")[:USER_ROWS]
        whole_s = float(held_s.sum()) or 1.0
        return tuple(
            UserRow(
                jobs.users[user] or "nobody",
                int(number[user]),
                float(held_s[user]),
                float(held_s[user]) / whole_s,
                float(waits[user] / started[user]) if started[user] else None,
            )
            for user in first.tolist()
            if number[user]
        )


def compare(question: Question) -> Comparison:
    """Play the queue under every policy that is asked for."""
    runs = tuple(question.run(policy) for policy in question.policies)
    return Comparison(question=question, runs=runs, metrics=tuple(metrics_of(run) for run in runs))
