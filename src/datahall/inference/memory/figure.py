"""The memory of a replica's chip as a figure that adds up: from the chip's capacity to the sequences held at once."""

from __future__ import annotations

from datahall.breakdown import (
    Breakdown,
    assumed,
    difference,
    floor,
    maximum,
    modelled,
    product,
    quotient,
)
from datahall.inference.memory.fit import Fit
from datahall.inference.memory.room import seen_figure


def sequences_figure(fit: Fit) -> Breakdown:
    """sequences = ⌊blocks of the cache / blocks of a sequence⌋, whole blocks; none where the weights do not fit."""
    capacity = fit.capacity
    block = modelled(
        "bytes of a block",
        capacity.block_bytes,
        "bytes",
        f"{capacity.block_tokens} tokens of all layers on one chip",
    )
    blocks = floor("blocks of the cache", quotient("blocks", _pool(fit), block, "count"))
    each = modelled(
        "blocks of a sequence",
        capacity.blocks(fit.context),
        "count",
        f"whole blocks of {fit.context:,} tokens",
    )
    held = floor("sequences held at once", quotient("sequences", blocks, each, "count"))
    if held.value >= 0:
        return held
    none = assumed("none", 0.0, "count", "memory that is lacking holds nothing")
    return maximum("sequences held at once", (none, held.named("room for sequences")))


def _pool(fit: Fit) -> Breakdown:
    """Memory for the cache, as the engine divides it at start."""
    capacity, engine = fit.capacity, fit.replica.engine
    memory = seen_figure(fit.chip)
    share = assumed("the engine's share", engine.memory_fraction, "fraction", engine.title, engine.source)
    rest = [
        modelled(
            "weights", capacity.weight_bytes, "bytes", f"of one chip of {fit.tp}, {fit.replica.model.name}"
        ),
        *(
            [modelled("adapters", capacity.adapter_bytes, "bytes", "resident ones")]
            if capacity.adapter_bytes
            else []
        ),
        modelled("activations", capacity.activation_bytes, "bytes", "the largest step that the engine tries"),
        assumed("reserved", capacity.reserved_bytes, "bytes", "context, graphs and buffers", engine.source),
    ]
    if engine.fraction_of_free:
        free = difference("memory that is free", memory, *rest)
        return product("memory for the cache", (share, free), "bytes")
    taken = product("memory that the engine takes", (share, memory), "bytes")
    return difference("memory for the cache", taken, *rest)


def parts_of(fit: Fit) -> dict[str, float]:
    """Where the memory of one chip goes, by name [B]."""
    capacity = fit.capacity
    kept = capacity.memory_bytes - capacity.usable_bytes
    return {
        "weights": capacity.weight_bytes,
        **({"adapters": capacity.adapter_bytes} if capacity.adapter_bytes else {}),
        "activations": capacity.activation_bytes,
        "context, graphs and buffers": capacity.reserved_bytes,
        "cache": max(capacity.pool_bytes, 0.0),
        "kept back": max(0.0, min(kept, capacity.memory_bytes - capacity.weight_bytes)),
    }


def shares_of(fit: Fit) -> dict[str, float]:
    """The same parts as shares of the chip's memory."""
    return {name: size / fit.capacity.memory_bytes for name, size in parts_of(fit).items()}
