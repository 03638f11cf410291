"""The kernels of one micro-batch on one chip, with what is recomputed module by module and experts cut their own way.

Selective recomputation in Megatron-LM's modern form names modules: their forward runs again in backward, and what
only they produce is not kept.  Reference: Megatron-Core, recompute_modules; Korthikanti et al. (2022), section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from datahall.catalog.entries.chip import Chip
from datahall.training.adapters.products import tuning_operators
from datahall.training.layout.modules import PARTS
from datahall.workload.backward import Gradients, training_pass
from datahall.workload.memory.activation import Recompute
from datahall.workload.operator import Attention, Number, Operator
from datahall.workload.sharding import Sharding

if TYPE_CHECKING:
    from datahall.training.layout.layout import Layout
    from datahall.training.step.framework import Framework
    from datahall.training.step.step import Job


class ExpertSharding(Sharding, frozen=True, kw_only=True):
    """A sharding whose experts have a tensor parallelism of their own: ep · etp chips hold all of them once."""

    etp: Number = 0.0  # 0: tp/ep chips share an expert, from ep = tp on one

    @property
    def expert_tp(self) -> Number:
        """Chips that share one expert."""
        own = np.asarray(self.etp, dtype=np.float64)
        return np.where(own > 0, own, np.maximum(self.tp / self.ep, 1.0))[()]

    @property
    def expert_groups(self) -> Number:
        """Batches that meet at one set of experts; below one where a batch has several sets."""
        return self.ep * self.expert_tp / self.tp


def sharding_of(layout: Layout) -> ExpertSharding:
    """How one layout cuts the operators of a micro-batch."""
    return ExpertSharding(
        tp=float(layout.tp),
        cp=float(layout.cp),
        ep=float(layout.ep),
        etp=float(layout.etp),
        sequence_parallel=layout.sequence_parallel,
    )


EITHER_WAY = {"blackwell", "rubin"}  # multiply FP8 whichever way the operands lie


def layout_operators(job: Job, framework: Framework, layout: Layout, chip: Chip) -> tuple[Operator, ...]:
    """Forward and backward of one micro-batch on one chip of a layout."""
    batch = float(layout.micro_batch)
    return micro_batch_operators(
        job, framework, sharding_of(layout), batch, layout.recompute, layout.modules, chip
    )


def micro_batch_operators(
    job: Job,
    framework: Framework,
    sharding: Sharding,
    batch: Number,
    recompute: Recompute,
    modules: tuple[str, ...] = (),
    chip: Chip | None = None,
) -> tuple[Operator, ...]:
    """Forward and backward of one micro-batch on one chip, recomputed kernels included."""
    either_way = chip is not None and chip.family in EITHER_WAY and job.precision.tensor_scaled
    gradients = Gradients(
        flash=framework.flash_attention, transposes=not (either_way or job.adapters is not None)
    )
    operators = training_pass(
        job.model,
        batch=batch,
        seq=float(job.seq),
        sharding=sharding,
        precision=job.precision,
        recompute="none" if modules else recompute,
        gradients=gradients,
        fusion=framework.fusion,
    )
    if job.narrow_head:
        operators = tuple(_narrowed(one, job) if one.name.startswith("head") else one for one in operators)
    names = {name for module in modules for name in PARTS[module].kernels}
    again = tuple(
        msgspec.structs.replace(one, name=f"{one.name}_recompute", backward=True)
        for one in operators
        if not one.backward
        and (one.name in names or ("core_attn" in modules and isinstance(one.shape, Attention)))
    )
    every = (*operators, *again)
    return (*every, *tuning_operators(job, every, framework.fusion, gradients))


def _narrowed(head: Operator, job: Job) -> Operator:
    """A product of the head in the format of the other products."""
    return msgspec.structs.replace(
        head, precision=job.precision.compute, weight_precision=job.precision.weights
    )
