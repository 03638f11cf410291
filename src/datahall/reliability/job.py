"""The job that runs for weeks: its layout, how fast a step of it is, and the nodes that it stands on."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster
from datahall.fabric.design.parts import usual_server
from datahall.reliability.checkpoint.size import CheckpointSize, checkpoint_size
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.peak import peak_memory
from datahall.training.setup import Setup
from datahall.training.step.step import step_band
from datahall.training.used import Used

JOB_INPUTS = ("seq", "global_batch", "precision", "state", "chips")  # those that no layout says


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its chips."""

    setup: Setup
    step_s: float
    headroom_bytes: float  # of a chip's memory
    num_node_chips: int
    num_server_chips: int  # of a node as it is sold
    searched: bool  # whether nobody said the layout
    num_idle: int = 0  # chips beside it that have no work
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
        used = {**self.setup.used, "chips": self.num_chips + self.num_idle}
        return {name: used[name] for name in JOB_INPUTS if name in used} if self.searched else used

    @property
    def batch_tokens(self) -> int:
        """Of a step."""
        return self.setup.job.batch_tokens

    @property
    def tokens_per_s(self) -> float:
        """While it works."""
        return self.batch_tokens / self.step_s

    @property
    def mfu_fraction(self) -> float:
        """While it works."""
        return self.setup.job.mfu_fraction(self.cluster, self.step_s)

    @property
    def band(self) -> tuple[float, float]:
        """Between which shares of the predicted step eight of ten measured ones are expected."""
        return step_band(self.setup.job, self.cluster, self.setup.framework)


def job_on(setup: Setup, catalog: Catalog, *, step_s: float, searched: bool, num_idle: int = 0) -> RunningJob:
    """A job that is laid out, and whose step takes so long."""
    job, space = setup.job, Space.of(setup.layout)
    memory = peak_memory(job, setup.cluster.chip, space, setup.books, schedule=setup.schedule)
    server = usual_server(catalog, setup.cluster.chip)
    return RunningJob(
        setup=setup,
        step_s=step_s,
        headroom_bytes=float(memory.headroom_bytes[0]),
        num_node_chips=min(server.num_host_chips, setup.cluster.num_chips),
        num_server_chips=server.num_host_chips,
        searched=searched,
        num_idle=num_idle,
        size=checkpoint_size(job, setup.layout, setup.books),
    )
