"""What somebody asks: the jobs of a queue, the cluster under it, and what its nodes go through."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

import msgspec
import numpy as np

from datahall.counted import counted
from datahall.errors import DatahallError, InfeasibleError, ScenarioError, option
from datahall.fabric.flows.failures import blast_radius
from datahall.scenario.scenario import Attempts, Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure
from datahall.scenario.sections.operations.scheduling import (
    USUAL_DEPTH,
    USUAL_HALF_LIFE_S,
    USUAL_PROMISES,
    USUAL_RESTART_S,
    ClusterJob,
    Scheduler,
)
from datahall.scenario.words import QueuePolicy
from datahall.scheduling.files.queue_file import QueueFile
from datahall.scheduling.files.read import read_queue
from datahall.scheduling.idle import check_used
from datahall.scheduling.jobs import Jobs, jobs_of
from datahall.scheduling.loop.state import CONSERVATIVE
from datahall.scheduling.machine import Machine, machine_from, node_chips
from datahall.scheduling.policies import RULES
from datahall.scheduling.run import Conditions, Outage, Run, nodes_of, num_failures, simulate_queue, too_large
from datahall.units import fmt

MOST_TRACED = 60_000  # pieces of work on nodes that are drawn
MOST_FAILURES = 1e7  # expected while one job runs: half a minute of events


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A queue and a cluster, ready to be simulated."""

    jobs: Jobs
    machine: Machine
    policies: tuple[QueuePolicy, ...]
    scheduler: Scheduler
    conditions: Conditions
    file: QueueFile | None = None

    def run(self, policy: QueuePolicy) -> Run:
        """What happens under a policy."""
        usual = USUAL_PROMISES if RULES[policy].passing == CONSERVATIVE else USUAL_DEPTH
        depth = self.scheduler.depth or usual
        return simulate_queue(
            self.jobs, self.machine, policy, msgspec.structs.replace(self.conditions, depth=depth)
        )


def question_of(scenario: Scenario) -> Question:
    """Read the jobs, make the cluster, and refuse what it cannot hold."""
    asked = scenario.one(Scheduler)
    with scenario.at():
        asked.check()
    file = _file(scenario, asked)
    jobs = file.jobs if file is not None else _said(scenario, asked)
    machine = machine_from(
        scenario.one(FabricDesign), scenario.catalog, num_chips=_usual_chips(file, scenario)
    )
    _check_nodes(scenario, machine)
    _check_sizes(scenario, jobs, machine)
    conditions = Conditions(
        half_life_s=asked.half_life_s or USUAL_HALF_LIFE_S,
        restart_s=USUAL_RESTART_S if asked.restart_s is None else asked.restart_s,
        mttf_s=(asked.mttf_s or 0.0) / machine.num_hosts,  # a domain is down when one of its nodes is
        repair_s=asked.repair_s,
        outages=_outages(scenario, machine),
        seed=scenario.root.seed,
        traced=MOST_TRACED,
    )
    with scenario.at():
        check_used(asked, jobs, fails=asked.mttf_s is not None or bool(scenario.all(Failure)))
        _check_ends(jobs, machine, conditions)
    return Question(
        jobs=jobs,
        machine=machine,
        policies=asked.policies,
        scheduler=asked,
        file=file,
        conditions=conditions,
    )


def _check_ends(jobs: Jobs, machine: Machine, conditions: Conditions) -> None:
    """Refuse a job that nodes fail too often for: to wait for its end is to wait for ever."""
    failures = num_failures(jobs, machine, conditions)
    if not failures.size or float(failures.max()) <= MOST_FAILURES:
        return
    job = int(failures.argmax())
    num = int(nodes_of(jobs, machine)[job])
    alone_s = conditions.mttf_s / num
    stretch_s = min(float(jobs.run_s[job]), float(jobs.checkpoint_s[job]))
    raise InfeasibleError(
        f'"{jobs.names[job]}" never ends: of its {counted(num, machine.unit)} one fails every {fmt(alone_s, "s", 3)}, '
        f"is out for {fmt(conditions.repair_s, 's', 3)}, and {fmt(stretch_s + conditions.restart_s, 's', 3)} without a "
        "failure are needed between two checkpoints",
        field="mttf",
        hint=f"{_saved(jobs, machine, conditions, 0.1 * alone_s)}rarer failures, or a shorter {option('repair')}",
    )


def _saved(jobs: Jobs, machine: Machine, conditions: Conditions, interval_s: float) -> str:
    """The option that saves what was done so often, where every job ends then."""
    saving = msgspec.structs.replace(jobs, checkpoint_s=np.minimum(jobs.checkpoint_s, interval_s))
    if float(num_failures(saving, machine, conditions).max()) > MOST_FAILURES:
        return ""
    return f"{option('checkpoint_every', fmt(interval_s, 's', 2).replace(' ', ''))}, or "


def _file(scenario: Scenario, asked: Scheduler) -> QueueFile | None:
    if not asked.queue:
        return None
    if scenario.all(ClusterJob):
        raise ScenarioError(
            f"{option('queue')} and {option('cluster_job')} do not go together",
            field="cluster_job",
            hint="say one of them",
        )
    file = read_queue(asked.queue)
    jobs = (
        file.jobs
        if asked.first_jobs is None
        else file.jobs.taken(np.arange(min(asked.first_jobs, file.jobs.num)))
    )
    checkpoint_s = np.full(jobs.num, asked.checkpoint_every_s or inf)
    return msgspec.structs.replace(file, jobs=msgspec.structs.replace(jobs, checkpoint_s=checkpoint_s))


def _said(scenario: Scenario, asked: Scheduler) -> Jobs:
    said = scenario.all(ClusterJob)
    if not said:
        raise ScenarioError(
            "there is no job to run",
            field="queue",
            hint=f"a file of jobs, or {option('cluster_job', 'chips=8,run=2h')}",
        )
    _check_each(scenario, said)
    return jobs_said(said, asked.checkpoint_every_s or inf)


def jobs_said(said: Sequence[ClusterJob], checkpoint_s: float = inf) -> Jobs:
    """Columns of the jobs of a scenario, each as often as it says."""
    times = [place for one in said for place in range(one.count)]
    each = [one for one in said for _ in range(one.count)]
    users = tuple(sorted({one.account or one.user for one in each}))
    return jobs_of(
        np.array([one.submit_s + place * one.every_s for one, place in zip(each, times, strict=True)]),
        np.array([one.run_s for one in each]),
        np.array([one.chips for one in each]),
        names=_names(said),
        users=users,
        user=np.array([users.index(one.account or one.user) for one in each]),
        limit_s=np.array([one.run_s if one.limit_s is None else one.limit_s for one in each]),
        nodes=np.array([one.nodes or 0 for one in each]),
        priority=np.array([float(one.priority) for one in each]),
        serving=np.array([one.kind == "serving" for one in each]),
        preemptible=np.array([one.preemptible for one in each]),
        gang=np.array([one.gang for one in each]),
        checkpoint_s=np.array([one.checkpoint_every_s or checkpoint_s for one in each]),
        network_fraction=np.array([one.network_fraction for one in each]),
    ).in_order


def _names(said: Sequence[ClusterJob]) -> tuple[str, ...]:
    found = []
    for index, one in enumerate(said, 1):
        name = one.name or f"job {index}"
        found += [name if one.count == 1 else f"{name}.{place}" for place in range(1, one.count + 1)]
    return tuple(found)


def _check_each(scenario: Scenario, said: Sequence[ClusterJob]) -> None:
    """Refuse jobs that cannot be; two of one name could not be told apart."""
    attempts = Attempts(scenario)
    seen: dict[str, int] = {}
    for index, one in enumerate(said):
        attempts.make(one.check, index=index, section="cluster_job")
        if one.name and one.name in seen:
            error = ScenarioError(
                f'there are two jobs "{one.name}", the {_nth(seen[one.name])} and the {_nth(index)}',
                field="name",
                hint="a name of its own each, or none; several that are alike: count",
            )
            attempts.make(partial(_raise, error), index=index, section="cluster_job")
        seen.setdefault(one.name, index)
    attempts.finish()


def _nth(index: int) -> str:
    number = index + 1
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _raise(error: DatahallError) -> None:
    raise error


def _usual_chips(file: QueueFile | None, scenario: Scenario) -> int:
    """The most chips that a trace held at once, in whole nodes: where nobody says how many there are."""
    design = scenario.one(FabricDesign)
    if file is None or design.chips or not file.has_starts:
        return 0
    size = node_chips(design, scenario.catalog)
    needed = int((-(-file.jobs.chips // size)).max()) * size
    return max(-(-file.peak_chips // size) * size, needed)


def _check_sizes(scenario: Scenario, jobs: Jobs, machine: Machine) -> None:
    """Refuse jobs that no cluster of this size can ever hold, each at its place, with a size that holds them all."""
    wrong = np.flatnonzero(too_large(jobs, machine))
    if not wrong.size:
        return
    hint = f"{option('chips', int(nodes_of(jobs, machine).max()) * machine.node_chips)} for all of them"
    said = scenario.all(ClusterJob)
    if not said:
        more = f", and {wrong.size - 1:,} others as many or fewer" if wrong.size > 1 else ""
        raise _never(
            jobs, machine, int(wrong[np.argmax(jobs.chips[wrong])]), f"{hint}, or leave it out", more
        )
    attempts = Attempts(scenario)
    for index, one in enumerate(said):
        alone = jobs_said([msgspec.structs.replace(one, name=one.name or f"job {index + 1}", count=1)])
        if too_large(alone, machine).any():
            error = _never(alone, machine, 0, hint)
            attempts.make(partial(_raise, error), index=index, section="cluster_job")
    attempts.finish()


def _check_nodes(scenario: Scenario, machine: Machine) -> None:
    """Refuse jobs whose chips do not go on the nodes that they ask for."""
    attempts, size = Attempts(scenario), machine.node_chips
    for index, one in enumerate(scenario.all(ClusterJob)):
        if one.nodes is None or one.chips <= one.nodes * size:
            continue
        error = ScenarioError(
            f"{one.chips:,} chips do not go on {counted(one.nodes, machine.unit)} of {size}",
            field="nodes",
            hint=f"nodes = {-(-one.chips // size)} at least, or leave it out",
        )
        attempts.make(partial(_raise, error), index=index, section="cluster_job")
    attempts.finish()


def _never(jobs: Jobs, machine: Machine, job: int, hint: str, more: str = "") -> InfeasibleError:
    chips, nodes, size = int(jobs.chips[job]), int(jobs.nodes[job]), machine.node_chips
    on = f" on {counted(nodes, 'node')}" if nodes else ""
    return InfeasibleError(
        f'"{jobs.names[job]}" asks for {chips:,} chips{on}{more}; the cluster has {machine.num_chips:,} in '
        f"{counted(machine.num_nodes, machine.unit)} of {size}",
        field="chips",
        hint=hint,
    )


def _outages(scenario: Scenario, machine: Machine) -> tuple[Outage, ...]:
    """Nodes that the failures of the scenario take, by what they cut off."""
    return tuple(
        _outage(scenario, machine, failure, index) for index, failure in enumerate(scenario.all(Failure))
    )


def _outage(scenario: Scenario, machine: Machine, failure: Failure, index: int) -> Outage:
    with scenario.at(index, section="failure"):
        if machine.fabric is None or not failure.of_fabric:
            raise ScenarioError(
                "what fails depends on how the chips are wired" if machine.fabric is None else "what fails?",
                field="failure",
                hint=f"name a topology, e.g. {option('on', 'fat-tree')}, and chips, domains or switches",
            )
        gone = blast_radius(machine.fabric, failure).cut_off
    nodes = np.unique(machine.fabric.domain[gone])
    return Outage(
        nodes=tuple(nodes.tolist()),
        start_s=failure.start_s,
        duration_s=inf if failure.duration_s is None else failure.duration_s,
    )
