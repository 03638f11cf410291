"""What a layer with frozen weights keeps from forward to backward, and the copy of a weight that is multiplied.

A product whose weight is frozen and has no adapter needs no input for a weight gradient; a norm whose scale is frozen
not what it multiplies.  An adapter needs its input, and what its first matrix made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from datahall.catalog.entries.model import Layer, Model
from datahall.training.layout.columns import Column
from datahall.training.layout.modules import PARTS
from datahall.workload.adapters.count import Projection, projections
from datahall.workload.forward import forward_pass
from datahall.workload.memory.activation import SavedTensor, Split
from datahall.workload.operator import Gemm, GroupedGemm
from datahall.workload.sharding import Sharding

if TYPE_CHECKING:
    from datahall.training.adapters.adapters import Adapters
    from datahall.training.memory.bookkeeping import Bookkeeping
    from datahall.training.step.step import Job

INTO_ATTENTION, INTO_MLP = {"qkv", "qkv_down"}, {"gate_up", "up"}
CUT_BY_ROWS = {"attention_output", "down"}  # their input is spread over tensor parallelism
NEVER_ADAPTED = {
    "expert_input",
    *(f"{of}_{what}" for of in ("expert", "shared") for what in ("product", "activated")),
}
WIDE_PRODUCTS = {"head", "router", "shared_gate"}  # never quantised


def adapted_tensors(
    tensors: tuple[SavedTensor, ...], job: Job, kind: Layer, books: Bookkeeping, modules: tuple[str, ...]
) -> tuple[SavedTensor, ...]:
    """What a layer keeps of its own tensors, and what its adapters keep beside; modules that run again keep nothing."""
    if job.adapters is None:
        return tensors
    beside = _projections(job.model, kind, job.adapters)
    left = _unneeded(job.model, kind, {one.name for one in beside}, job.adapters, books)
    again = {name for module in modules for name in PARTS[module].kernels}
    own = (one for one in beside if one.name not in again)
    return (
        *(one for one in tensors if one.name not in left),
        *(tensor for one in own for tensor in _of_adapter(one, job, job.adapters, books)),
        *(_joined(job) if books.keeps_joined and kind.mixer in ("full", "window") else ()),
    )


def _projections(model: Model, kind: Layer, adapters: Adapters) -> list[Projection]:
    return projections(_one_layer(model, kind), adapters.targets, latent="expanded")


def _one_layer(model: Model, kind: Layer) -> Model:
    return msgspec.structs.replace(model, layers=(kind,), num_layers=1)


def _unneeded(
    model: Model, kind: Layer, adapted: set[str], adapters: Adapters, books: Bookkeeping
) -> set[str]:
    """Tensors that only a frozen weight's gradient would need."""
    normalised = {f"{norm}_normalised" for norm in ("norm_1", "norm_2", "latent_norm")}
    if books.keeps_frozen_inputs == "all" or (books.keeps_frozen_inputs and adapters.quantised):
        return normalised
    one_norm = kind.mixer == "none" or model.norms_per_layer == 1  # it feeds both blocks, or the MLP alone
    read_by = {
        "norm_1_output": INTO_ATTENTION | (INTO_MLP if one_norm else set()),
        "norm_2_output": INTO_MLP,
        "latent_norm_output": {"q_up", "kv_up"},
        "product": {"down"},
        "activated": {"down"},
    }
    return normalised | NEVER_ADAPTED | {name for name, users in read_by.items() if not users & adapted}


def _of_adapter(one: Projection, job: Job, adapters: Adapters, books: Bookkeeping) -> list[SavedTensor]:
    """What one adapter keeps: what its first matrices made, and its input anew where dropout changes it."""
    width_in, by_rows = float(one.width_in), one.name in CUT_BY_ROWS
    kept = [_tensor(f"{one.name}_shrunk", adapters.rank * one.num_parts, job.value_bytes)]
    if books.keeps_joined and adapters.targets == "query-value":
        kept.append(_tensor(f"{one.name}_expanded", float(one.width_out), job.value_bytes, by_rows=True))
    if books.adapter_dropout:
        copies = one.num_parts if books.adapter_dropout == "each matrix" else 1
        kept.append(_tensor(f"{one.name}_dropped", copies * width_in, job.value_bytes, by_rows=by_rows))
        kept.append(_tensor(f"{one.name}_dropout_mask", copies * width_in, 1.0, by_rows=by_rows))
    return kept


def _joined(job: Job) -> list[SavedTensor]:
    """Queries and keys before they are turned, which values share their memory with; repeated heads are copies."""
    model = job.model
    if model.num_kv_heads != model.num_heads:
        return []
    widths = {"query": model.num_heads, "key": model.num_kv_heads}
    return [
        _tensor(f"joined_{name}", heads * model.head_dim, job.value_bytes, by_rows=True)
        for name, heads in widths.items()
    ]


def _tensor(name: str, width: float, value_bytes: float, *, by_rows: bool = False) -> SavedTensor:
    split: Split = "tensor" if by_rows else "sequence"
    return SavedTensor(name=name, width=width, value_bytes=value_bytes, split=split)


def widened_bytes(job: Job, kind: Layer, sharding: Sharding) -> Column:
    """The largest matrix of a layer brought from NF4 to the format that is multiplied, one at a time [B]."""
    if job.adapters is None or not job.adapters.quantised:
        return np.zeros(np.shape(sharding.tp))
    joined = {"qkv": 3, "gate_up": 2, "expert_gate_up": 2, "shared_gate_up": 2}
    every = forward_pass(
        _one_layer(job.model, kind), batch=1.0, query=1.0, sharding=sharding, latent="expanded", embed=False
    )
    sizes = [
        np.asarray(one.shape.k * one.shape.n / joined.get(one.name, 1), dtype=np.float64)
        for one in every
        if isinstance(one.shape, Gemm | GroupedGemm) and one.name not in WIDE_PRODUCTS
    ]
    largest = np.max(np.broadcast_arrays(*sizes), axis=0) if sizes else 0.0
    return np.asarray(job.value_bytes * largest + np.zeros(np.shape(sharding.tp)))
