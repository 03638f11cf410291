"""The memory of a replica's chip as a figure that adds up: from the chip's capacity to the sequences held at once."""

from __future__ import annotations

from math import isclose

from datahall.breakdown import (
    SAME,
    Breakdown,
    assumed,
    ceiling,
    derived,
    difference,
    fact,
    floor,
    given,
    maximum,
    modelled,
    product,
    quotient,
)
from datahall.inference.memory.fit import Fit
from datahall.inference.memory.room import seen_figure
from datahall.workload.memory.figure import derived_from, weights_figure


def sequences_figure(fit: Fit) -> Breakdown:
    """sequences = ⌊blocks of the cache / blocks of a sequence⌋, whole blocks; none where the weights do not fit."""
    blocks = floor("blocks of the cache", quotient("blocks", _pool(fit), _block(fit), "count"))
    each = _blocks_of_a_sequence(fit)
    held = floor("sequences held at once", quotient("sequences", blocks, each, "count"))
    if held.value >= 0:
        return held
    none = assumed("none", 0.0, "count", "memory that is lacking holds nothing")
    return maximum("sequences held at once", (none, held.named("room for sequences")))


def _block_tokens(fit: Fit) -> Breakdown:
    engine = fit.replica.engine
    return assumed("tokens of a block", fit.capacity.block_tokens, "tokens", engine.title, engine.source)


def _block(fit: Fit) -> Breakdown:
    """Bytes of a block on one chip."""
    capacity = fit.capacity
    if not capacity.grows:
        by = "no layer keeps every token: the windows or states of a sequence"
        return modelled("bytes of a block", capacity.block_bytes, "bytes", by, *_model(fit))
    token_bytes = capacity.block_bytes / capacity.block_tokens
    by = "what a token leaves in the layers that keep every token, on one chip of the heaviest stage"
    token = modelled("bytes of a token", token_bytes, "bytes", by, *_model(fit))
    return product("bytes of a block", (_block_tokens(fit), token), "bytes")


def _blocks_of_a_sequence(fit: Fit) -> Breakdown:
    """Whole blocks of its tokens, and what windows and states hold beside them."""
    capacity, context = fit.capacity, given("tokens of a sequence", fit.context, "tokens")
    paged = quotient("tokens over those of a block", context, _block_tokens(fit), "count")
    if capacity.grows and not capacity.sequence_blocks:
        return ceiling("blocks of a sequence", paged)
    by = "whole blocks of its tokens, and in blocks what windows and recurrent states hold"
    return modelled("blocks of a sequence", capacity.blocks(fit.context), "count", by, paged)


def _model(fit: Fit) -> tuple[Breakdown, ...]:
    """What is cut, and over how many chips."""
    replica = fit.replica
    source = derived_from(replica.model)
    return (
        fact("layers", replica.model.num_layers, "count", source),
        derived("chips that share a layer", fit.tp or replica.tp, "count"),
    )


def _weights(fit: Fit) -> Breakdown:
    """Weights of one chip, part by part where nothing but tensor parallelism cuts them."""
    replica, held = fit.replica, fit.capacity.weight_bytes
    whole = weights_figure(replica.model, replica.precision, tp=replica.tp)
    if isclose(whole.value, held, rel_tol=SAME):
        return whole
    by = f"of one chip of the heaviest stage of {replica.model.name}, a draft's included"
    return modelled("weights", held, "bytes", by, *_model(fit))


def shortage_figure(fit: Fit, num_sequences: int) -> Breakdown:
    """What each chip lacks for some sequences; below zero it is what is left [B]."""
    each = modelled(
        "cache of a sequence", fit.sequence_bytes, "bytes", f"whole blocks of {fit.context:,} tokens"
    )
    asked = product("cache of the sequences", (given("sequences", num_sequences, "count"), each), "bytes")
    return difference("missing on each chip", asked, _pool(fit))


def _pool(fit: Fit) -> Breakdown:
    """Memory for the cache, as the engine divides it at start."""
    capacity, engine = fit.capacity, fit.replica.engine
    memory = seen_figure(fit.chip)
    share = assumed("the engine's share", engine.memory_fraction, "fraction", engine.title, engine.source)
    rest = [
        _weights(fit),
        *([_adapters(fit)] if capacity.adapter_bytes else []),
        _activations(fit),
        assumed("reserved", capacity.reserved_bytes, "bytes", "context, graphs and buffers", engine.source),
    ]
    if engine.fraction_of_free:
        free = difference("memory that is free", memory, *rest)
        return product("memory for the cache", (share, free), "bytes")
    taken = product("memory that the engine takes", (share, memory), "bytes")
    return difference("memory for the cache", taken, *rest)


def _adapters(fit: Fit) -> Breakdown:
    adapters = fit.replica.adapters
    assert adapters is not None
    resident = given("resident adapters", adapters.resident, "count")
    return modelled(
        "adapters", fit.capacity.adapter_bytes, "bytes", "low-rank matrices on one chip", resident
    )


def _activations(fit: Fit) -> Breakdown:
    engine = fit.replica.engine
    budget = assumed("tokens of a step", engine.token_budget, "tokens", engine.title, engine.source)
    by = "the largest step that the engine tries at its start"
    return modelled("activations", fit.capacity.activation_bytes, "bytes", by, budget)


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
