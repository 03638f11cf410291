"""A training run as somebody asks for it: the job, the machine, the layout and the framework, put together.

Whether a layout can run and a job can be trained is looked at before, in `early.py`.
What is not said comes from the layout file, and what that does not say is the same for every verb: the usual of
`scenario/sections/training.py`, the global batch by `usual_batch`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from datahall.cluster.cluster import Cluster, cluster_as_small, cluster_from
from datahall.cluster.wiring import Wiring, wiring_of
from datahall.errors import InfeasibleError, ScenarioError
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.training import TrainingJob
from datahall.scenario.usual import USUAL_SEQ
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.asked import LaidOut, laid_out, precision_of, usual_batch
from datahall.training.layout.columns import Space
from datahall.training.layout.file import LayoutFile
from datahall.training.layout.layout import Layout
from datahall.training.leaf import Degrees
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.step.framework import Framework
from datahall.training.step.framework import framework as framework_named
from datahall.training.step.step import Job, step_times
from datahall.training.used import Used, used_by_job, used_by_layout
from datahall.workload.precision import Precision

LARGEST_POWER = 20  # of two: more chips are not weighed

Machine: TypeAlias = Callable[[int], Cluster]  # the same wiring with so many chips


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """One layout of one job on one machine."""

    job: Job
    precision: str  # the job's, by name
    cluster: Cluster
    layout: Layout
    framework: Framework
    schedule: str
    file: LayoutFile | None = None
    fewest: bool = False  # replicas, as few as hold all experts

    @property
    def books(self) -> Bookkeeping:
        """How the framework keeps the job in memory."""
        return self.job.books(self.framework)

    @property
    def degrees(self) -> Degrees:
        """The numbers of the layout as leaves of figures."""
        accumulated = self.file is not None and self.file.accumulation > 0
        return Degrees(
            self.layout, fewest=self.fewest, accumulated=accumulated, tunes=self.job.adapters is not None
        )

    @property
    def used(self) -> Used:
        """What it is computed with, by the attributes of inputs."""
        job = used_by_job(self.job, self.framework, self.precision)
        experts = self.job.model.moe is not None
        laid = used_by_layout(self.layout, self.schedule, experts=experts)
        if self.file is not None and self.file.num_copies > 1:
            laid.pop("shard", None)  # follows from the copies that the file asks for
        return {**job, "chips": self.cluster.num_chips, **laid}

    @property
    def num_micro(self) -> int:
        """Micro-batches of a replica in a step."""
        return self.layout.num_micro(self.job.global_batch)


def setup_of(scenario: Scenario) -> Setup:
    """The run that a scenario lays out."""
    laid = laid_out(scenario)
    job = job_of(scenario, laid)
    return Setup(
        job=job,
        precision=precision_of(scenario.one(TrainingJob), laid.file),
        cluster=machine_of(scenario)(laid.num_chips),
        layout=laid.layout,
        framework=framework_of(scenario),
        schedule=laid.schedule,
        file=laid.file,
        fewest=laid.fewest,
    )


def job_of(scenario: Scenario, laid: LaidOut | None = None, *, num_chips: int = 0) -> Job:
    """What is trained; without a layout, as a plan asks, the global batch need not divide anything yet.

    `num_chips`: those that it is to be laid out on, where that is known.
    """
    asked, file = scenario.one(TrainingJob), laid.file if laid is not None else None
    return Job(
        model=scenario.model(),
        seq=asked.seq or (file.seq if file is not None else 0) or USUAL_SEQ,
        global_batch=laid.global_batch
        if laid is not None
        else asked.global_batch or usual_batch(num_chips, tunes=asked.lora is not None),
        precision=Precision.named(precision_of(asked, file)),
        state=asked.state,
        imbalance=asked.imbalance_ratio,
        adapters=adapters_of(asked),
    )


def adapters_of(asked: TrainingJob) -> Adapters | None:
    """What is trained in place of the weights; None where these are."""
    if asked.lora is None:
        return None
    return Adapters(rank=asked.lora, targets=asked.lora_targets, quantised=asked.quantised)


def framework_of(scenario: Scenario) -> Framework:
    """Whose overlap and overheads."""
    return framework_named(scenario.one(TrainingJob).framework)


def machine_of(
    scenario: Scenario, *, whole: bool = False, strict: bool = False, wiring: Wiring | None = None
) -> Machine:
    """The machine that is asked for, with any number of chips: plans also look at fewer and at more.

    `whole`: as it would be without what has failed.  `strict`: a number of chips that nobody said has all that has
    failed, too, or is refused.  `wiring`: what is left of the scenario's, where some of it takes no part.
    """
    wiring, catalog = wiring or wiring_of(scenario), scenario.catalog
    failures = () if whole else wiring.failures

    def machine(num_chips: int) -> Cluster:
        with scenario.at(field="chip"):
            if wiring.design.chips == num_chips:
                return cluster_from(wiring.design, catalog, num_chips=num_chips, failures=failures)
            design = msgspec.structs.replace(wiring.design, chips=None)
            return cluster_as_small(
                design, catalog, num_chips=num_chips, failures=failures, if_there=not strict
            )

    return machine


def torus_failure_fraction(
    scenario: Scenario, job: Job, cluster: Cluster, layout: Layout, framework: Framework
) -> float | None:
    """How much longer a step takes in closed form for what has failed of a torus; None where nothing has.

    Failed links narrow the way out of a chip and the middle of an axis; a ring along an axis is timed as if whole.
    """
    if not cluster.system.torus or not wiring_of(scenario).failures:
        return None
    machines = (cluster, machine_of(scenario, whole=True)(cluster.num_chips))
    step_s, whole_s = (float(step_times(job, one, Space.of(layout), framework).step_s[0]) for one in machines)
    return step_s / whole_s - 1.0


def built(machine: Machine, num_chips: int) -> Cluster | None:
    """The machine with so many chips, or None where its wiring does not go with their number."""
    try:
        return machine(num_chips)
    except (ScenarioError, InfeasibleError):
        return None


def of_any_size(machine: Machine) -> Cluster:
    """The machine with as few chips as its wiring allows, for what does not hang on their number."""
    sizes = (1 << power for power in range(LARGEST_POWER))
    return next((one for size in sizes if (one := built(machine, size)) is not None), None) or machine(1)
