"""The job that runs for weeks: its layout, how fast a step of it is, and the nodes that it stands on.

A layout that nobody says is the fastest that fits, by the closed form of a step.
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster
from datahall.counted import counted
from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.fabric.design.parts import usual_server
from datahall.reliability.checkpoint.size import CheckpointSize, checkpoint_size
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob
from datahall.training.early import says_layout
from datahall.training.layout.asked import precision_of
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import search
from datahall.training.layout.space import WIDE
from datahall.training.memory.peak import peak_memory
from datahall.training.pipeline.table import usual_order
from datahall.training.setup import Setup, framework_of, job_of, machine_of, setup_of
from datahall.training.step.step import step_band, step_times
from datahall.training.used import Used
from datahall.workload.flops import mfu_fraction, training_flop_per_token

JOB_INPUTS = ("seq", "global_batch", "precision", "state", "chips")  # those that no layout says


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its chips."""

    setup: Setup
    step_s: float  # closed form
    headroom_bytes: float  # of a chip's memory
    num_node_chips: int
    searched: bool  # whether the layout was found here
    size: CheckpointSize

    @property
    def cluster(self) -> Cluster:
        return self.setup.cluster

    @property
    def layout(self) -> Layout:
        return self.setup.layout

    @property
    def num_chips(self) -> int:
        return self.cluster.num_chips

    @property
    def num_nodes(self) -> int:
        """Machines with an operating system of their own."""
        return -(-self.num_chips // self.num_node_chips)

    @property
    def used(self) -> Used:
        """What it is computed with, by the attributes of inputs."""
        used = self.setup.used
        return {name: used[name] for name in JOB_INPUTS if name in used} if self.searched else used

    @property
    def batch_tokens(self) -> int:
        """Of a step."""
        return self.setup.job.global_batch * self.setup.job.seq

    @property
    def tokens_per_s(self) -> float:
        """While it works."""
        return self.batch_tokens / self.step_s

    @property
    def mfu_fraction(self) -> float:
        """While it works."""
        job = self.setup.job
        per_token = float(training_flop_per_token(job.model, job.seq))
        peak = self.cluster.chip.peak(job.precision.compute)
        return float(mfu_fraction(self.tokens_per_s, per_token, self.num_chips, peak))

    @property
    def band(self) -> tuple[float, float]:
        """Between which shares of the predicted step eight of ten measured ones are expected."""
        return step_band(self.setup.job, self.cluster, self.setup.framework)


def running_job(scenario: Scenario) -> RunningJob:
    """The job that a scenario asks for, laid out as it says or as is fastest."""
    said = says_layout(scenario)
    return job_on(setup_of(scenario) if said else _fastest(scenario), scenario.catalog, searched=not said)


def job_on(setup: Setup, catalog: Catalog, *, searched: bool) -> RunningJob:
    """A job that is laid out."""
    job, space = setup.job, Space.of(setup.layout)
    memory = peak_memory(job, setup.cluster.chip, space, setup.books, schedule=setup.schedule)
    server = usual_server(catalog, setup.cluster.chip)
    return RunningJob(
        setup=setup,
        step_s=float(step_times(job, setup.cluster, space, setup.framework).step_s[0]),
        headroom_bytes=float(memory.headroom_bytes[0]),
        num_node_chips=min(server.num_host_chips, setup.cluster.num_chips),
        searched=searched,
        size=checkpoint_size(job, setup.layout, setup.books),
    )


def _fastest(scenario: Scenario) -> Setup:
    """The layout with the shortest step, by its closed form."""
    job, framework = job_of(scenario), framework_of(scenario)
    asked, chips = scenario.one(TrainingJob), scenario.one(FabricDesign).chips
    assert chips is not None
    cluster = machine_of(scenario)(chips)
    options = msgspec.structs.replace(WIDE, margin_fraction=asked.margin_fraction)
    found = search(job, cluster, framework, options=options)
    if not found.num_fitting:
        model = job.model.title or job.model.name
        if len(found.space):
            short = float(np.min(found.memory.total_bytes)) / found.memory.limit_bytes
            raise InfeasibleError(
                f"{model} does not fit on {counted(chips, 'chip')}: its leanest layout takes {short:.2f} times the "
                "memory of one",
                field="chips",
                hint="more chips; what takes the memory: datahall show memory",
            )
        raise ScenarioError(
            f"no layout of {model} divides {counted(chips, 'chip')} and a global batch of {job.global_batch:,}",
            field="chips",
            hint=f"e.g. {option('chips', 1 << (chips.bit_length() - 1))}, or another {option('global_batch')}",
        )
    return Setup(
        job=job,
        precision=precision_of(asked, None),
        cluster=cluster,
        layout=found.layout(0),
        framework=framework,
        schedule=usual_order(found.layout(0).vpp),
    )
