"""The kernels of one micro-batch on one chip, with what is recomputed module by module and experts cut their own way.

Selective recomputation in Megatron-LM's modern form names modules: their forward runs again in backward, and what
only they produce is not kept.  Reference: Megatron-Core, recompute_modules; Korthikanti et al. (2022), section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
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


class Module(NamedTuple):
    """A part of a layer that can be recomputed alone: kernels that run again, tensors that need not be kept."""

    kernels: tuple[str, ...]
    tensors: tuple[str, ...]
    needs: str = ""  # part of a model without which it means nothing


EITHER_WAY = {"blackwell", "rubin"}  # multiply FP8 whichever way the operands lie
TENSOR_SCALED = {"fp8", "int8"}

_SHARED = ("shared_gate", "shared_up", "shared_product", "shared_activated")
_SHARED_KERNELS = ("shared_gate_up", "shared_up", "shared_activation", "shared_down")
_EXPERT = ("expert_gate", "expert_up", "expert_product", "expert_activated")
_EXPERT_KERNELS = ("expert_gate_up", "expert_up", "expert_activation", "expert_down")
# kernels of attention are known by their shape, its scores by their mark
PARTS: Mapping[str, Module] = MappingProxyType(
    {
        "core_attn": Module((), ()),
        "layernorm": Module(("mixer_norm", "mlp_norm"), ("norm_1_output", "norm_2_output")),
        "mla_up_proj": Module(("q_up", "kv_up", "rope"), ("query", "key", "value"), "mla"),
        "mlp": Module(
            ("gate_up", "up", "activation", "down"), ("gate", "up", "product", "activated"), "dense"
        ),
        "moe": Module(
            ("router", "dispatch", "combine", *_EXPERT_KERNELS, *_SHARED_KERNELS),
            ("router_scores", "expert_input", "expert_output", *_EXPERT, *_SHARED),
            "moe",
        ),
        "moe_act": Module(("expert_activation",), ("expert_product", "expert_activated"), "moe"),
        "shared_experts": Module(_SHARED_KERNELS, _SHARED, "shared"),
    }
)


def lacking_module(model: Model, modules: Iterable[str]) -> tuple[str, str] | None:
    """The first module that a model does not have, and what it would need; None where it has all."""
    has = {
        "": True,
        "mla": model.mla is not None,
        "moe": model.moe is not None,
        "shared": model.moe is not None and model.moe.shared_ffn > 0,
        "dense": any(layer.mlp == "dense" for layer in model.layers),
    }
    named = {
        "mla": "latent attention",
        "moe": "experts",
        "shared": "shared experts",
        "dense": "layers with a dense MLP",
    }
    return next(((one, named[PARTS[one].needs]) for one in modules if not has[PARTS[one].needs]), None)


def dropped_tensors(modules: Iterable[str]) -> frozenset[str]:
    """Names of the tensors that are not kept when some modules are recomputed."""
    return frozenset(name for module in modules for name in PARTS[module].tensors)


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
    either_way = chip is not None and chip.family in EITHER_WAY and job.precision.activations in TENSOR_SCALED
    operators = training_pass(
        job.model,
        batch=batch,
        seq=float(job.seq),
        sharding=sharding,
        precision=job.precision,
        recompute="none" if modules else recompute,
        gradients=Gradients(
            flash=framework.flash_attention, transposes=not (either_way or job.adapters_only)
        ),
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
    return (*operators, *again)


def _narrowed(head: Operator, job: Job) -> Operator:
    """A product of the head in the format of the other products."""
    return msgspec.structs.replace(
        head, precision=job.precision.compute, weight_precision=job.precision.weights
    )
