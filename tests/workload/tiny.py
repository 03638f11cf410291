"""A model small enough to be worked out by hand, and what one of its passes does, row by row."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.catalog.entries.model import Layer, Mla, Model, Moe, Recurrent
from datahall.workload.operator import Operator

FULL = Layer(mixer="full", mlp="dense")
NEAR = Layer(mixer="window", mlp="dense", window=6)

MOE = Moe(num_experts=4, top_k=2, expert_ffn=6, num_shared_experts=1, shared_ffn=10, shared_gate=True)
MLA = Mla(q_rank=6, kv_rank=7, nope_head_dim=3, rope_head_dim=2, value_head_dim=5)
RECURRENT = Recurrent(num_heads=4, head_dim=3, num_key_heads=2, key_dim=5)

Row = tuple[str, float, float, float, float, float]


def tiny(*layers: Layer, **fields: object) -> Model:
    """Width 8, four heads of 2 with two for keys and values, MLP 12, twenty tokens."""
    sizes = {
        "name": "tiny", "title": "", "family": "", "year": 2026, "num_layers": len(layers), "hidden": 8,
        "num_heads": 4, "num_kv_heads": 2, "head_dim": 2, "ffn": 12, "vocab": 20, "max_context": 64,
        "layers": layers,
    }  # fmt: skip
    return Model(**(sizes | fields))  # type: ignore[arg-type]


def table(operators: Sequence[Operator]) -> list[Row]:
    """Name, count, arithmetic, bytes read, bytes written, bytes of weights among those read."""
    return [
        (
            one.name,
            one.count,
            *(float(value) for value in (one.flop, one.read_bytes, one.write_bytes, one.weight_bytes)),
        )
        for one in operators
    ]
