"""What would make a model fit: the cheapest changes first."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from datahall.errors import DatahallError, option
from datahall.inference.engine.replica import Replica, exchanging_chips
from datahall.inference.memory.fit import LARGEST_SEARCHED
from datahall.inference.memory.kv_pool import KvCapacity, divide_memory
from datahall.inference.step.kernels import sharding_of
from datahall.workload.precision import COMMON, Precision

FEWEST_TOKENS = 512  # a context shorter than this is no remedy
MOST_REMEDIES = 3


def remedies(
    replica: Replica,
    context: int,
    num_sequences: int = 1,
    *,
    context_field: str = "max_context",
    memory_only: bool = False,
) -> str:
    """Up to three changes, each of which alone is enough; "no single change" where there are none.

    A wider group is one whose chips can exchange something, unless nothing but memory is asked for.
    """
    found = list(_remedies(replica, context, num_sequences, context_field, memory_only))[:MOST_REMEDIES]
    return (
        f"enough: {', or '.join(found)}"
        if found
        else "no single change of context, precision or tp is enough"
    )


def longest_context(found: KvCapacity, num_sequences: int) -> int:
    """Tokens of the longest sequences of which the cache holds so many."""
    low, high = 0, found.num_blocks * found.block_tokens
    while low < high:
        middle = -(-(low + high) // 2)
        low, high = (middle, high) if found.num_sequences(middle) >= num_sequences else (low, middle - 1)
    return low


def fits(replica: Replica, context: int, num_sequences: int = 1) -> bool:
    """Whether a replica holds sequences of so many tokens, and its chip can run the precision."""
    if not _runs(replica):
        return False
    found = divide_memory(replica)
    return found.pool_bytes > 0 and found.num_sequences(context) >= num_sequences


def _runs(replica: Replica) -> bool:
    return replica.chip.multiplies(replica.precision.operands)


def _remedies(
    replica: Replica, context: int, num_sequences: int, context_field: str, memory_only: bool
) -> Iterator[str]:
    longest = longest_context(divide_memory(replica), num_sequences)
    if _runs(replica) and longest >= FEWEST_TOKENS:
        yield f"{option(context_field, longest // 16 * 16)} or less"
    for name in COMMON:
        other = Precision.named(name)
        narrower = _narrower(other, replica.precision) or not _runs(replica)
        if narrower and fits(msgspec.structs.replace(replica, precision=other), context, num_sequences):
            yield option("precision", name)
            break
    tp = _smallest_group(replica, context, num_sequences)
    if tp and (memory_only or _is_joined(msgspec.structs.replace(replica, tp=tp))):
        yield option("tp", tp)


def _is_joined(replica: Replica) -> bool:
    """Whether chips that exchange something stand in one domain, or a network joins theirs."""
    return exchanging_chips(replica) <= replica.num_domain or replica.port_bytes_per_s > 0


def _narrower(one: Precision, other: Precision) -> bool:
    before = other.weight_bytes_per_value + other.kv_bytes_per_value
    return one.weight_bytes_per_value + one.kv_bytes_per_value < before


def _smallest_group(replica: Replica, context: int, num_sequences: int) -> int:
    tp = replica.tp * 2
    while tp <= LARGEST_SEARCHED:
        wider = msgspec.structs.replace(replica, tp=tp)
        try:
            sharding_of(wider)  # refuses what does not divide
        except DatahallError:
            pass
        else:
            if fits(wider, context, num_sequences):
                return tp
        tp *= 2
    return 0
