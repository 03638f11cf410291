"""A model of four small layers and a replica of it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer, Mla, Model, Moe
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_pool import KvCapacity

replace = msgspec.structs.replace
Serve = Callable[..., Replica]

FULL, WINDOW = Layer(mixer="full", mlp="dense"), Layer(mixer="window", mlp="dense", window=64)
SMALL = Model(
    name="small", title="", family="", year=2026, num_layers=4, hidden=64, num_heads=8, num_kv_heads=4, head_dim=8,
    ffn=128, vocab=1000, max_context=4096, layers=(FULL,) * 4,
)  # fmt: skip


def small(model: Model = SMALL, *, shelf: Catalog | None = None, **options: object) -> Replica:
    own = {"token_budget": 100, "max_sequences": 2, "reserved_bytes": 0.0}
    own |= {name: options.pop(name) for name in list(options) if name in engine("vllm").__struct_fields__}
    found = replace(engine("vllm"), **own)
    chip = (shelf or Catalog(user=False)).chip("h100-sxm")
    return Replica(model=model, chip=chip, engine=found, **options)  # type: ignore[arg-type]


MOE = Moe(num_experts=8, top_k=2, expert_ffn=48, shared_ffn=32)
MLA = Mla(q_rank=24, kv_rank=16, nope_head_dim=8, rope_head_dim=4, value_head_dim=6)


CACHE = KvCapacity(
    num_blocks=100, block_tokens=16, block_bytes=1.0, grows=True, window_blocks=((40, 0.125),), state_blocks=2.5,
    max_context=1600, memory_bytes=0.0, usable_bytes=0.0, weight_bytes=0.0, activation_bytes=0.0, reserved_bytes=0.0,
    pool_bytes=0.0,
    adapter_bytes=0.0,
)  # fmt: skip
