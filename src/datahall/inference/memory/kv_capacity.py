"""How many tokens the cache of an engine holds on one rank, and what to change where it holds too few."""

from __future__ import annotations

from datahall.errors import InfeasibleError
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_pool import KvCapacity, divide_memory
from datahall.inference.memory.remedy import remedies
from datahall.units import fmt

__all__ = ["KvCapacity", "kv_capacity"]


def kv_capacity(replica: Replica) -> KvCapacity:
    """The cache of a replica's ranks; an `InfeasibleError` where it holds no sequence of the context asked for."""
    found = divide_memory(replica)
    asked = replica.max_context or found.block_tokens
    if found.pool_bytes <= 0 or found.num_blocks < found.blocks(asked):
        raise _too_small(replica, found, asked)
    return found


def _too_small(replica: Replica, found: KvCapacity, asked: int) -> InfeasibleError:
    model, chip = replica.model, replica.chip
    needed = found.blocks(asked) * found.block_bytes
    short = needed - max(found.pool_bytes, 0.0) + max(-found.pool_bytes, 0.0)
    where = f"{replica.num_chips} × {chip.name}" if replica.num_chips > 1 else chip.name
    left = (
        f"leave {fmt(found.pool_bytes, 'bytes')} of {fmt(found.usable_bytes, 'bytes')} for the cache"
        if found.pool_bytes > 0
        else f"are {fmt(-found.pool_bytes, 'bytes')} more than the {fmt(found.usable_bytes, 'bytes')} the engine takes"
    )
    return InfeasibleError(
        f"{model.name} on {where} holds no sequence of {asked:,} tokens: weights of {fmt(found.weight_bytes, 'bytes')} "
        f"and activations on each chip {left}; {fmt(short, 'bytes')} are missing",
        hint=remedies(replica, asked),
    )
