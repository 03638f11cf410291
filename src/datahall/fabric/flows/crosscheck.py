"""One scenario in two details, and the difference.

closed form: each job alone, from the bytes that every place must pass, spread evenly over its links.
symmetric:   flows that share links, alike ones folded, a phase at a time.
full:        every message of every round, each waiting only for what it must.
"""

from __future__ import annotations

import msgspec

from datahall.fabric.flows.closed_form import closed_form_s
from datahall.fabric.flows.early import Fidelity
from datahall.fabric.flows.jobs import Level
from datahall.fabric.flows.outcome import FlowScenario, Outcome, simulate_flows


class JobTimes(msgspec.Struct, frozen=True):
    """How long one job takes at two levels [s]; the difference is of the second from the first."""

    name: str
    lower_s: float
    higher_s: float

    @property
    def difference_fraction(self) -> float:
        return self.higher_s / self.lower_s - 1.0 if self.lower_s > 0 else 0.0


class Crosscheck(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a scenario at two levels."""

    lower: Fidelity
    higher: Fidelity
    jobs: tuple[JobTimes, ...]

    @property
    def worst_fraction(self) -> float:
        """The largest difference of any job, either way."""
        return max((abs(job.difference_fraction) for job in self.jobs), default=0.0)


def level_named(text: str) -> Level:
    """A level that can be simulated."""
    return "full" if text == "full" else "symmetric"


def crosscheck(
    scenario: FlowScenario,
    lower: Fidelity = "symmetric",
    higher: Fidelity = "full",
    known: Outcome | None = None,
) -> Crosscheck:
    """Time every job at two levels; an outcome that is there already is not simulated again."""
    first, second = (job_times(scenario, level, known) for level in (lower, higher))
    rows = tuple(
        JobTimes(job.name, one, other) for job, one, other in zip(scenario.jobs, first, second, strict=True)
    )
    return Crosscheck(lower=lower, higher=higher, jobs=rows)


def job_times(scenario: FlowScenario, level: Fidelity, known: Outcome | None = None) -> list[float]:
    """From the start of each job to its end [s]."""
    if level == "closed-form":
        return [closed_form_s(scenario.net, job) for job in scenario.jobs]
    outcome = _simulated(scenario, level, known)
    label = outcome.traffic.flows.label
    assert label is not None
    label = label[outcome.run.flow]
    return [
        float(outcome.run.end_s[label == index].max(initial=job.start_s)) - job.start_s
        for index, job in enumerate(scenario.jobs)
    ]


def _simulated(scenario: FlowScenario, level: Level, known: Outcome | None) -> Outcome:
    return known if known is not None and known.level == level else simulate_flows(scenario, level)
