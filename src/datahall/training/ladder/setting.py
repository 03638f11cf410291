"""A job as it runs on one rung of the ladder, and the plainest one that everything is measured against."""

from __future__ import annotations

import msgspec

from datahall.cluster.cluster import Cluster
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job
from datahall.workload.precision import HALVES, WIDEST, Precision

# Host time to launch one operator of a layer and all the kernels it is made of, of PyTorch 2.11 uncompiled on one H200:
# steps of 128 to 512 tokens, which the host holds up, took 101 to 184 µs for each of their operators (2026-11).
EAGER_HOST_S = 113e-6
SHARES = ("tensor_exposed", "expert_exposed", "pipeline_exposed", "data_exposed")


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A job, its machine and its layout, and how its kernels are run."""

    job: Job
    cluster: Cluster
    layout: Layout
    framework: Framework
    schedule: str
    eager: bool = False  # kernels as a library has them, one for each operation

    @property
    def books(self) -> Bookkeeping:
        """What is kept in memory: of eager kernels more tensors, of unfused attention its scores."""
        own, flash = self.job.books(self.framework), self.framework.flash_attention
        saving = own.saving
        if self.eager:
            saving = msgspec.structs.replace(saving, modules="huggingface-eager")
        if not flash:
            saving = msgspec.structs.replace(saving, flash=False, wide_softmax=not self.eager)
        return msgspec.structs.replace(own, saving=saving, loss="eager" if self.eager else own.loss)


def plainest(own: Setting) -> Setting:
    """The job without any of it: eager kernels, unfused attention, 32 bits, nothing hidden, nothing shared.

    A format or a style of kernels that the machine or the framework does not have is left as it is.
    """
    framework = own.framework
    eager = framework.fusion != "eager"  # else its constants are of other kernels, counted as eager ones
    exposed = {name: 1.0 for name in (*SHARES, "parameters_exposed")}
    plain = msgspec.structs.replace(framework, flash_attention=False, **exposed)
    if eager:
        host_s = max(framework.host_s, EAGER_HOST_S)
        plain = msgspec.structs.replace(plain, fusion="eager", host_s=host_s, captured="none")
    layout = msgspec.structs.replace(
        own.layout, zero=0, shard=0, recompute="none", modules=(), compression="none", offload=()
    )
    return msgspec.structs.replace(
        own,
        framework=plain,
        layout=layout,
        job=msgspec.structs.replace(own.job, precision=widest(own)),
        eager=eager,
    )


def widest(own: Setting) -> Precision:
    """The widest format that the chip multiplies in, of 32 bits and 16."""
    name = next((one for one in (WIDEST, *HALVES) if own.cluster.chip.multiplies(one)), HALVES[0])
    return Precision.named(name)
