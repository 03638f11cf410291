"""What a chip holds whatever the batch: weights, and in training gradients and optimizer states.

Parameters come in buckets with their own divisors: those split by tensor parallelism, those whole on every
chip (norms, routers), and routed experts, which also have their own number of replicas.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec
import numpy as np

from datahall.catalog.entries.model import Model
from datahall.workload.memory.recipe import StateRecipe
from datahall.workload.operator import Number
from datahall.workload.parameters import ATTENTION, count_parameters
from datahall.workload.precision import BF16, Precision, attention_stays_wide

Stage = Literal["heaviest", "first", "middle", "last"]


class Parameters(Protocol):
    """Parameters of a model by the way they are divided."""

    @property
    def sharded(self) -> float: ...
    @property
    def replicated(self) -> float: ...
    @property
    def expert(self) -> float: ...
    @property
    def embedding(self) -> float: ...
    @property
    def head(self) -> float: ...


class ChipParameters(msgspec.Struct, frozen=True):
    """Parameters on one chip: experts apart, for they have fewer replicas."""

    dense: Number
    expert: Number


class StateBytes(msgspec.Struct, frozen=True):
    """Training state on one chip [B]."""

    weight_bytes: Number
    gradient_bytes: Number
    optimizer_bytes: Number

    @property
    def total_bytes(self) -> Number:
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes


def chip_parameters(
    counts: Parameters,
    *,
    tp: Number,
    pp: Number,
    ep: Number,
    stage: Stage = "heaviest",
) -> ChipParameters:
    """Parameters on one chip of an evenly cut pipeline.

        dense = (sharded/t + replicated)/p + tables/t      expert = expert/(max(ep, t)·p)

    The first stage holds the embedding and the last the head; a tied head is a second copy when there is
    more than one stage.  `heaviest` is whichever of the two is larger.

    >>> class Counts(msgspec.Struct):
    ...     sharded: float; replicated: float; expert: float; embedding: float; head: float
    >>> part = chip_parameters(Counts(8e9, 1e6, 0.0, 0.5e9, 0.5e9), tp=4, pp=2, ep=1)
    >>> float(part.dense), float(part.expert)
    (1125500000.0, 0.0)
    """
    body = (counts.sharded / tp + counts.replicated) / pp
    head = counts.head or counts.embedding
    only = counts.embedding + counts.head
    apart = {"heaviest": max(counts.embedding, head), "first": counts.embedding, "last": head, "middle": 0.0}
    tables = np.where(np.asarray(pp) > 1, apart[stage], only)[()]
    return ChipParameters(body + tables / tp, counts.expert / np.maximum(ep, tp) / pp)


def state_bytes(
    parameters: ChipParameters,
    recipe: StateRecipe,
    *,
    zero: Number = 0.0,
    dp: Number = 1.0,
    expert_dp: Number | None = None,
) -> StateBytes:
    """Weights, gradients and optimizer states on one chip under ZeRO stage `zero` over `dp` replicas.

        optimizer/D from stage 1,  gradients/D from stage 2,  weights/D from stage 3

    Parameters: those of the chip; bytes per parameter; ZeRO stage 0–3 (Megatron's distributed optimizer is
    1, FSDP is 3); replicas of the dense weights; replicas of the experts, dp·cp·tp/max(ep, tp).
    Reference: Rajbhandari et al. (2020), ZeRO, section 5.

    >>> one = state_bytes(ChipParameters(1e9, 0.0), StateRecipe.named("megatron"), zero=1, dp=4)
    >>> float(one.total_bytes) / 1e9
    9.0
    """
    replicas = dp if expert_dp is None else expert_dp

    def held(bytes_per_parameter: float, from_stage: int) -> Number:
        split = np.asarray(zero) >= from_stage
        dense = parameters.dense / np.where(split, dp, 1.0)[()]
        expert = parameters.expert / np.where(split, replicas, 1.0)[()]
        total: Number = bytes_per_parameter * (dense + expert)
        return total

    return StateBytes(held(recipe.weight, 3), held(recipe.gradient, 2), held(recipe.optimizer, 1))


def serving_weight_bytes(
    model: Model,
    counts: Parameters,
    precision: Precision = BF16,
    *,
    tp: Number = 1.0,
    pp: Number = 1.0,
    ep: Number = 1.0,
) -> Number:
    """Weights on one chip of the heaviest stage [B]: linear layers in their format, tables, norms and routers wide.

    The latent projections of MLA are whole on every chip yet quantised like other linear layers; attention is where
    checkpoints keep it so.
    """
    latent = _latent_projections(model)
    chip = chip_parameters(counts, tp=tp, pp=pp, ep=ep)
    quantised = (counts.sharded / tp + latent) / pp + chip.expert
    if attention_stays_wide(model, precision):
        attention = sum(part.count for part in count_parameters(model).parts if part.name == ATTENTION)
        quantised = quantised - (attention / tp + latent) / pp
    wide = chip.dense + chip.expert - quantised
    return quantised * precision.weight_bytes_per_value + wide * precision.wide_bytes_per_value


def _latent_projections(model: Model) -> float:
    if model.mla is None:
        return 0.0
    width = model.mla.q_rank + model.mla.kv_rank + model.mla.rope_head_dim
    return float(sum(layer.mixer == "mla" for layer in model.layers) * model.hidden * width)
