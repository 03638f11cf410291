"""Which inputs a queue was given for nothing: no policy asks for them, or nothing happens that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from datahall.errors import ScenarioError, option
from datahall.scenario.idle import does_nothing
from datahall.scenario.sections.operations.scheduling import ClusterJob, Scheduler
from datahall.scheduling.jobs import Jobs
from datahall.scheduling.loop.state import BY_PRIORITY, FINISHED, MIGRATED, NEAREST, NOBODY
from datahall.scheduling.machine import Machine
from datahall.scheduling.policies import RULES, Rules
from datahall.scheduling.run import Run

NOT_STOPPED = "no job is stopped"
WIDE = "jobs are alike to its network, wherever they lie"
NO_NETWORK = "no job says which share of its time the network takes"
STOPPING = (("policy", "priority"), ("mttf", "300d"))  # what stops jobs


def check_used(asked: Scheduler, jobs: Jobs, *, fails: bool) -> None:
    """Refuse what no policy asks for, and what is about jobs that are stopped where none can be."""
    for error in _unused(asked, jobs, _rules(asked), fails):
        raise error


def _unused(asked: Scheduler, jobs: Jobs, rules: Sequence[Rules], fails: bool) -> Iterator[ScenarioError]:
    if asked.depth is not None and all(one.passing == NOBODY for one in rules):
        yield _refused("depth", "nobody passes the first, who alone is looked at", ("policy", "backfill"))
    if fails or any(one.stops for one in rules):
        return
    why = "no node fails, and no policy stops a job for another"
    if asked.restart_s is not None:
        yield _refused("restart", why, *STOPPING)
    if asked.checkpoint_every_s is not None and not jobs.is_cut_off.any():
        yield _refused("checkpoint_every", why, *STOPPING)


def _refused(name: str, why: str, *other: tuple[str, str]) -> ScenarioError:
    hint = " or ".join(["leave it out,", *(option(name, value) for name, value in other)])
    return ScenarioError(does_nothing(name, why), field=name, hint=hint)


def idle_inputs(runs: Sequence[Run]) -> dict[str, str]:
    """Inputs of the scheduler that changed nothing of what happened, and why."""
    idle = {}
    if not any(run.restarts.any() for run in runs):
        idle["restart"] = NOT_STOPPED
    if not _loses(runs):
        idle["checkpoint_every"] = NOT_STOPPED
    asks = any(run.jobs.network_fraction.any() for run in runs)
    if not asks:
        idle["oversubscription"] = NO_NETWORK
    narrow = any(bool(np.any(run.machine.ratios > 1.0)) for run in runs)
    if not (asks and narrow) and not any(RULES[run.policy].placement == NEAREST for run in runs):
        why = WIDE if asks else NO_NETWORK
        idle["on"] = f"{why}, and no policy here asks where one lies"
    return idle


def idle_keys(
    said: Sequence[ClusterJob], asked: Scheduler, machine: Machine, runs: Sequence[Run]
) -> dict[str, str]:
    """Keys of jobs, as they were said, that changed nothing of what happened, and why."""
    rules, idle = _rules(asked), {}
    several = len(rules) > 1
    if any(one.priority for one in said) and not any(one.order == BY_PRIORITY for one in rules):
        idle["priority"] = (
            "no policy here orders by it" if several else f"{asked.policies[0]} does not order by it"
        )
    if any(one.preemptible for one in said) and not any(one.stops for one in rules):
        which = "no policy here stops" if several else f"{asked.policies[0]} does not stop"
        idle["preemptible"] = f"{which} jobs for others"
    if any(one.network_fraction for one in said) and not np.any(machine.ratios > 1.0):
        idle["network"] = "jobs are alike to the network, wherever they lie"
    if any(one.checkpoint_every_s for one in said) and not _loses(runs):
        idle["checkpoint_every"] = NOT_STOPPED
    return idle


def _rules(asked: Scheduler) -> list[Rules]:
    return [RULES[policy] for policy in asked.policies]


def _loses(runs: Sequence[Run]) -> bool:
    """Whether a job was stopped in a way that a checkpoint is for."""
    return any(bool((~np.isin(run.attempts["cause"], (FINISHED, MIGRATED))).any()) for run in runs)
