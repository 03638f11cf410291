"""Low-rank adapters: beside a product with a k × n weight two thin ones, whose result is added to its own.

    y = x·W + (x·A)·B      A: k × r,  B: r × n;  r·(k + n) parameters beside k·n

A product that joins several matrices of the checkpoint has an A of its own for each.  Split over tp chips A is whole
where columns are split and B where rows are.  Reference: Hu et al. (2021), LoRA.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.catalog.entries.model import Layer, Model
from datahall.workload.adapters.targets import Targets
from datahall.workload.flops import forward_flop_per_token, training_flop_per_token
from datahall.workload.forward import Latent, forward_pass
from datahall.workload.operator import Gemm, Number
from datahall.workload.sharding import ONE_CHIP, Sharding

# products that are adapted, and how many matrices of the checkpoint each one joins
ATTENTION = {"qkv": 3, "qkv_down": 2, "q_up": 1, "kv_up": 1, "attention_output": 1}
MLP = {"gate_up": 2, "up": 1, "down": 1}
QUERY_VALUE = {"qkv": 2}
ADAPTED: dict[Targets, dict[str, int]] = {
    "all": ATTENTION | MLP,
    "attention": ATTENTION,
    "query-value": QUERY_VALUE,
}


class Projection(NamedTuple):
    """One adapted product on one chip."""

    name: str
    width_in: Number
    width_out: Number  # of the adapted matrices
    num_parts: int
    num_layers: float

    @property
    def widths(self) -> Number:
        """Parameters of its adapter for each rank."""
        return self.num_parts * self.width_in + self.width_out


def projections(
    model: Model,
    targets: Targets = "all",
    sharding: Sharding = ONE_CHIP,
    latent: Latent = "auto",
) -> list[Projection]:
    """What adapters stand beside on one chip; experts, recurrences, embedding and head have none.

    >>> from datahall.catalog import load
    >>> [(one.name, float(one.widths)) for one in projections(load().model("llama-2-7b"), "query-value")]
    [('qkv', 16384.0)]
    """
    every = forward_pass(model, batch=1.0, query=1.0, past=0.0, sharding=sharding, latent=latent)
    parts = ADAPTED[targets]
    return [
        Projection(
            one.name,
            one.shape.k,
            one.shape.n * adapted_columns(model, targets),
            parts[one.name],
            one.count,
        )
        for one in every
        if one.name in parts and isinstance(one.shape, Gemm)
    ]


def adapter_widths(model: Model, layer: Layer, targets: Targets, sharding: Sharding) -> Number:
    """Parameters of the adapters of one layer on one chip for each rank, as they are trained."""
    one = msgspec.structs.replace(model, layers=(layer,), num_layers=1)
    return sum((found.widths for found in projections(one, targets, sharding, "expanded")), 0.0)


def adapter_parameters(model: Model, targets: Targets, rank: int) -> float:
    """Parameters of the adapters of a whole model.

    >>> from datahall.catalog import load
    >>> adapter_parameters(load().model("llama-2-7b"), "query-value", 8)  # as LitGPT counts them
    4194304.0
    """
    layers = sum(
        count * adapter_widths(model, layer, targets, ONE_CHIP) for layer, count in model.layer_groups()
    )
    return float(rank * layers)


def tuning_flop_per_token(model: Model, context: Number, targets: Targets, rank: int) -> Number:
    """Arithmetic of forward and backward for one token where adapters alone train [FLOP].

        4·N_matmul + 6·adapters + 3·attention

    The gradients of frozen weights, 2·N_matmul, are not formed; the convention is that of `training_flop_per_token`.
    """
    frozen = forward_flop_per_token(model, context, "matmul")
    whole = training_flop_per_token(model, context)
    return whole - frozen + 6.0 * adapter_parameters(model, targets, rank)


def adapted_columns(model: Model, targets: Targets) -> float:
    """Share of what a joined product makes that is adapted: all of it, or of queries, keys and values the first and
    last."""
    if targets != "query-value":
        return 1.0
    queries, keys = model.num_heads, model.num_kv_heads
    return (queries + keys) / (queries * (2 if model.attention_gate else 1) + 2 * keys)
