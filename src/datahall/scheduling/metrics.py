"""What a policy is worth: waits, slowdown, use of the chips, what of it was useful, and how alike users fare."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.breakdown import Breakdown, quotient, simulated, total
from datahall.scheduling.loop.state import Floats, Ints
from datahall.scheduling.run import Run

SHORTEST_S = 10.0  # a job that runs less counts as this long: the bound of the bounded slowdown


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Of one policy; waits are from submission to the first start."""

    num_jobs: int
    num_done: int  # that ran to their end
    num_cut_off: int  # stopped by their limit before it
    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float
    slowdown_ratio: float  # mean of bounded slowdowns
    makespan_s: float
    utilisation_fraction: float  # chip time that jobs held
    useful_fraction: float  # and that was useful
    blocked_fraction: float  # chip time that was idle while somebody waited who would have fitted in number
    goodput_fraction: float  # of the time that jobs held, useful
    failed_fraction: float  # and that was lost to failures, and to beginning again after them and others
    fairness_fraction: float  # Jain's index over the users' mean slowdown
    num_restarts: int
    num_spread: int  # starts across more of the network than need be

    @property
    def rank(self) -> tuple[float, ...]:
        """The best has the least: jobs that are never done, mean wait, useless time, makespan."""
        return (self.num_jobs - self.num_done, self.mean_wait_s, -self.goodput_fraction, self.makespan_s)


def metrics_of(run: Run) -> Metrics:
    """Sum up a run."""
    jobs = run.jobs
    started, done = run.first_s >= 0, run.is_done
    waits = (run.first_s - jobs.submit_s)[started]
    slow = slowdowns((run.end_s - jobs.submit_s)[done], jobs.run_s[done])
    whole_s = run.machine.num_chips * run.span_s
    return Metrics(
        num_jobs=jobs.num,
        num_done=int(done.sum()),
        num_cut_off=int((jobs.is_cut_off & (run.end_s >= 0)).sum()),
        mean_wait_s=float(waits.mean()) if waits.size else 0.0,
        median_wait_s=float(np.median(waits)) if waits.size else 0.0,
        p95_wait_s=float(np.quantile(waits, 0.95)) if waits.size else 0.0,
        slowdown_ratio=float(slow.mean()) if slow.size else 1.0,
        makespan_s=run.span_s,
        utilisation_fraction=run.allocated_s / whole_s if whole_s else 0.0,
        useful_fraction=run.useful_s / whole_s if whole_s else 0.0,
        blocked_fraction=run.blocked_s / whole_s if whole_s else 0.0,
        goodput_fraction=run.useful_s / run.allocated_s if run.allocated_s else 1.0,
        failed_fraction=(run.failed_s + run.restart_s) / run.allocated_s if run.allocated_s else 0.0,
        fairness_fraction=jain(_by_user(slow, jobs.user[done])),
        num_restarts=int(run.restarts.sum()),
        num_spread=int((run.attempts["stretch_ratio"] > 1.0).sum()),
    )


def slowdowns(turnaround_s: Floats, run_s: Floats) -> Floats:
    """Bounded slowdowns: time in the system over run time, which counts as 10 s at least, and never below 1.

    D. Feitelson, L. Rudolph, "Metrics and benchmarking for parallel job scheduling", JSSPP 1998.

    >>> slowdowns(np.array([100.0, 6.0]), np.array([50.0, 1.0])).tolist()
    [2.0, 1.0]
    """
    return np.maximum(1.0, turnaround_s / np.maximum(run_s, SHORTEST_S))


def jain(values: Floats) -> float:
    """Jain's index of fairness, (Σx)² / (n Σx²): 1 where all are alike, 1/n where one has it all.

    R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC TR-301, 1984.

    >>> jain(np.array([2.0, 2.0])), jain(np.array([1.0, 0.0, 0.0, 0.0]))
    (1.0, 0.25)
    """
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (values.size * squares) if squares else 1.0


def _by_user(values: Floats, user: Ints) -> Floats:
    """The mean of each user who has any."""
    num = np.bincount(user)
    return np.bincount(user, values)[num > 0] / num[num > 0]


def useful_figure(run: Run) -> Breakdown:
    """The share of all chip time that was useful, with where the rest went."""
    how = f"played under {run.policy}: {run.num_events:,} events, {run.num_failures:,} failures of nodes"
    parts = {
        "lost to failures since the last checkpoint": run.failed_s,
        "lost to preemption since the last checkpoint": run.preempted_s,
        "lost to limits since the last checkpoint": run.cut_off_s,
        "lost to placement across a narrow network": run.placement_s,
        "lost to beginning again": run.restart_s,
        "idle while a job waited that would fit in number": run.blocked_s,
        "idle otherwise": run.idle_s - run.blocked_s,
        "down": run.down_s,
    }
    useful = simulated("useful work", run.useful_s, "chip_s", how)
    rest = [simulated(name, value, "chip_s", how) for name, value in parts.items() if value > 0.0]
    whole = total("time of all chips", [useful, *rest])
    return quotient("useful share of the chips' time", useful, whole, "fraction")
