"""What a simulated run comes to: its figures over all runs, its losses, its causes, and whether promises hold."""

from __future__ import annotations

from math import ceil, inf
from typing import NamedTuple

import msgspec
import numpy as np

from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.reliability.closed_form import Expected, expected, has_few_restarts, is_short
from datahall.reliability.ettr import HARDLY_ANY
from datahall.reliability.nodes.spares import Spares, spares_for
from datahall.reliability.run import Run
from datahall.reliability.simulation.outcome import LOSSES, Runs, Spread, spread
from datahall.reliability.simulation.simulate import played_again, simulate_runs
from datahall.reliability.simulation.state import Floats
from datahall.units import DAY_S, fmt

GIVEN_UP_AFTER = 20.0  # times the work that it would take without a failure: then a run is given up
ENOUGH = 0.9  # of the runs that must keep a promise
HARDLY = 1e-4  # of the time: what keeps less is not simulated
MOST_FAILURES = 2e8  # of all runs together: a minute
MOST_DRAWN = 400  # of a curve that is drawn
WHOLE = "restarts_s"  # of a restart that was said whole nobody knows the parts


class Loss(NamedTuple):
    """One way in which time goes that moves no run forward."""

    name: str
    time_s: Spread
    share_fraction: float  # of the elapsed time


class CauseCount(NamedTuple):
    """How often one cause interrupts a run."""

    name: str
    times: Spread
    share_fraction: float
    per_node_day: float
    repaired_fraction: float


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Many runs and the closed form beside them."""

    run: Run
    found: Runs
    closed: Expected
    until_s: float  # when it ends; inf: when its work is done
    goal_s: float  # work that was asked for; inf: as much as there is time for
    seed: int
    enough_fraction: float  # of the time that spares must suffice

    @property
    def kept_s(self) -> Floats:
        """Work of each run that was kept, in time at full speed: without those who are slow, and without checks."""
        return self.found.work_s * self.run.speed_fraction

    @property
    def kept(self) -> Spread:
        return spread(self.kept_s)

    @property
    def ettrs(self) -> Floats:
        """Effective training time of each run."""
        return self.kept_s / self.found.elapsed_s

    @property
    def ettr(self) -> Spread:
        """Of all runs together, and between what eight of ten of them lie, where a few that lose much need not."""
        whole = float(self.kept_s.sum() / self.found.elapsed_s.sum())
        _, low, high = spread(self.ettrs)
        return Spread(whole, low, high)

    @property
    def elapsed_s(self) -> Spread:
        return spread(self.found.elapsed_s)

    @property
    def failures(self) -> Spread:
        return spread(self.found.num_failures)

    @property
    def tokens(self) -> Spread:
        """Tokens that were trained on, and stayed so."""
        return spread(self.found.work_s * self.run.tokens_per_s)

    @property
    def away(self) -> Spread:
        """Nodes that were in repair at once, at the worst moment of a run."""
        return spread(self.found.runs["most_away"])

    @property
    def num_spares(self) -> int:
        """Spares with which nine of ten runs never wait for a repair."""
        return int(np.ceil(self.away.high))

    @property
    def difference(self) -> float:
        """The closed form less the simulation, of ETTR."""
        return self.closed.ettr - self.ettr.mean

    @property
    def is_short(self) -> bool:
        """Whether it ends after few checkpoints."""
        return is_short(self.run, self.elapsed_s.mean)

    @property
    def has_few_restarts(self) -> bool:
        """Whether it ends after what a few restarts take."""
        return has_few_restarts(self.run, self.elapsed_s.mean)

    @property
    def finished_fraction(self) -> float:
        """Runs that did all the work that was asked for."""
        return float(np.mean(self.found.work_s >= self.goal_s * (1.0 - 1e-9))) if self.goal_s < inf else 1.0

    def keeping(self, ettr: float) -> float:
        """The share of the runs that keep a promise of ETTR."""
        return float(np.mean(self.ettrs >= ettr))

    @property
    def ended_s(self) -> Floats:
        """When each run is done; inf for one that is given up."""
        done = self.found.work_s >= self.goal_s * (1.0 - 1e-9)
        return np.where(done, self.found.elapsed_s, inf)

    @property
    def done_s(self) -> float:
        """When as many of the runs are done as must keep a promise, nine of ten."""
        enough = ceil(ENOUGH * self.ended_s.size - 1e-9)
        return float(np.sort(self.ended_s)[enough - 1])

    def ending_by(self, deadline_s: float) -> float:
        """The share of the runs that are done by a deadline."""
        return float(np.mean(self.ended_s <= deadline_s))

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Where the time went that moved no run forward, most first."""
        whole = float(self.found.elapsed_s.mean())
        found = []
        for name in LOSSES:
            taken = self.found.lost_s(name)
            if taken.any():
                whose = WHOLE if name == "warmup_s" and self.run.recovery.is_whole else name
                found.append(Loss(whose, spread(taken), float(taken.mean()) / whole))
        for name, fraction in (("slow_s", self.run.slow_fraction), ("checks_s", self.run.checks_fraction)):
            if fraction:
                taken = self.kept_s * fraction
                found.append(Loss(name, spread(taken), float(taken.mean()) / whole))
        return tuple(sorted(found, key=lambda one: -one.time_s.mean))

    @property
    def steady_spares(self) -> Spares:
        """Spares that suffice almost always, in closed form."""
        return spares_for(self.run.process, self.enough_fraction, self.elapsed_s.mean)

    @property
    def num_waits(self) -> Spread:
        """How often a run waits for a repair."""
        return spread(self.found.runs["num_waits"])

    @property
    def is_hopeless(self) -> bool:
        """Whether a run hardly moves."""
        return self.ettr.mean < HARDLY_ANY

    @property
    def most_s(self) -> float:
        """When a run is given up."""
        return GIVEN_UP_AFTER * self.goal_s

    @property
    def is_given_up(self) -> bool:
        """Whether too many runs are given up for the others to say how long one takes."""
        return self.finished_fraction < ENOUGH

    @property
    def causes(self) -> tuple[CauseCount, ...]:
        """How often each cause interrupts a run, most often first."""
        counts, whole = self.found.counts, max(1.0, float(self.found.counts.sum()))
        rows = [
            CauseCount(
                one.name, spread(counts[:, place]), float(counts[:, place].sum()) / whole, one.rate_per_node_day,
                one.repair_fraction,
            )
            for place, one in enumerate(self.found.causes)
        ]  # fmt: skip
        return tuple(sorted(rows, key=lambda row: -row.times.mean))

    def progress(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Time and work of the typical run, in days."""
        points = played_again(self.found, self.found.typical) / DAY_S
        every = max(1, len(points) // MOST_DRAWN)
        kept = np.concatenate((points[::every], points[-1:]))
        return tuple(kept[:, 0].tolist()), tuple(kept[:, 1].tolist())


def story_of(
    run: Run, *, until_s: float, goal_s: float, num_runs: int, seed: int, enough_fraction: float
) -> Story:
    """Simulate a run many times; one that comes to nothing is given up, one that would take for ever refused."""
    closed = expected(run, until_s, goal_s)
    if closed.ettr < HARDLY:
        why, hint = nothing_comes(run, closed)
        raise InfeasibleError(f"the run comes to nothing: {why}", hint=hint)
    most = int(MOST_FAILURES * run.mttf_s / min(until_s, goal_s / closed.ettr))
    if num_runs > most:
        raise ScenarioError(
            f"{num_runs:,} runs with an interruption every {fmt(run.mttf_s, 's', 3)} are too many to simulate",
            field="runs",
            hint=f"{option('runs', most)} or fewer" if most else "a shorter run",
        )
    found = simulate_runs(
        run.process,
        run.plan.cadences,
        run.recovery,
        until_s=min(until_s, GIVEN_UP_AFTER * goal_s),
        goal_s=goal_s,
        num_runs=num_runs,
        seed=seed,
    )
    return Story(
        run=run,
        found=found,
        closed=closed,
        until_s=until_s,
        goal_s=goal_s,
        seed=seed,
        enough_fraction=enough_fraction,
    )


def nothing_comes(run: Run, closed: Expected) -> tuple[str, str]:
    """Why a run hardly moves, and what would mend it: what leaves the least of its time."""
    every, restart = fmt(run.mttf_s, "s", 3), fmt(run.restart_s, "s", 3)
    last, recovery = run.plan.last, run.recovery
    match closed.worst:
        case "copies":
            return (
                f"a copy to {last.tier.title} every {fmt(last.interval_s, 's', 3)} stops it for "
                f"{fmt(last.tier.blocking_s, 's', 3)}, with an interruption every {every}",
                "shorter stops, another interval, or rarer interruptions",
            )
        case "planned":
            return (
                f"planned stops of {fmt(recovery.planned_s, 's', 3)} come every "
                f"{fmt(recovery.planned_every_s, 's', 3)}",
                "rarer or shorter planned stops",
            )
        case "steps":
            return (
                f"a step takes {fmt(run.step_s, 's', 3)} for those who are slow and for looking for corruption, and "
                f"{fmt(run.job.step_s, 's', 3)} without",
                "fewer slow hosts, less jitter, or a cheaper look for corruption",
            )
        case "corruption":
            return (
                f"corruption is found after {fmt(recovery.silent_s, 's', 3)}, with an interruption every {every}",
                "a way to notice it sooner",
            )
        case "repairs":
            return (
                f"nearly always more nodes are in repair than there are spares, with an interruption every {every}",
                "more spares, or rarer interruptions",
            )
        case "capacity":
            return (
                f"capacity that is taken away is back after {fmt(recovery.back_s, 's', 3)}, with an interruption "
                f"every {every}",
                "capacity that is taken away less often, or back sooner",
            )
        case _:
            return (
                f"an interruption every {every}, and a restart of {restart} that each begins anew",
                "rarer interruptions, a far shorter restart, or replicas that go on without one",
            )
