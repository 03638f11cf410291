"""The memory of a replica's chip as a figure that adds up: from the chip's capacity to the sequences held at once."""

from __future__ import annotations

from datahall.breakdown import (
    Breakdown,
    assumed,
    ceiling,
    chosen,
    difference,
    fact,
    floor,
    given,
    maximum,
    modelled,
    product,
    quotient,
    total,
)
from datahall.catalog.entries.model import Layer
from datahall.inference.engine.figure import option_leaf
from datahall.inference.engine.speculation import draft_model
from datahall.inference.memory.fit import Fit
from datahall.inference.memory.kv_pool import draft_bytes
from datahall.inference.memory.room import seen_figure
from datahall.workload.memory.figure import derived_from, token_figure, weights_figure

AS_ASKED = "the group that is asked about"


def sequences_figure(fit: Fit, why: str = AS_ASKED) -> Breakdown:
    """sequences = ⌊blocks of the cache / blocks of a sequence⌋, whole blocks; none where the weights do not fit.

    `why` this group of chips was chosen, unless somebody says how many.
    """
    found = _Figures(fit, why)
    blocks = floor("blocks of the cache", quotient("blocks", found.pool(), found.block(), "count"))
    held = floor("sequences held at once", quotient("sequences", blocks, found.sequence(), "count"))
    if held.value >= 0:
        return held
    none = assumed("none", 0.0, "count", "memory that is lacking holds nothing")
    return maximum("sequences held at once", (none, held.named("room for sequences")))


def shortage_figure(fit: Fit, num_sequences: int) -> Breakdown:
    """What each chip lacks for some sequences; below zero it is what is left [B]."""
    found = _Figures(fit, AS_ASKED)
    each = product("cache of a sequence", (found.sequence(), found.block()), "bytes")
    asked = product(
        "cache of the sequences", (given("sequences", num_sequences, "count", field="batch"), each), "bytes"
    )
    return difference("missing on each chip", asked, found.pool())


class _Figures:
    """The parts of the chain, for one group of chips."""

    def __init__(self, fit: Fit, why: str) -> None:
        self.fit, self.capacity, self.engine = fit, fit.capacity, fit.replica.engine
        self.chips = chosen("chips that share it", fit.tp, "count", why).unless_said("tp")
        self.block_tokens = option_leaf(self.engine, "block_tokens", "tokens of a block", "tokens")

    @property
    def paged(self) -> Layer | None:
        """The one kind of layer of a model whose whole cache grows by the token; None where it does not."""
        groups = self.fit.replica.model.layer_groups()
        kinds = {layer.mixer for layer, _ in groups}
        plain = len(kinds) == 1 and self.capacity.grows and draft_model(self.fit.replica) is None
        return groups[0][0] if plain else None

    def block(self) -> Breakdown:
        """One block of cache on one chip."""
        model, layer = self.fit.replica.model, self.paged
        if layer is None:
            how = "its tokens in all layers on one chip, kinds of layer in groups of one size"
            layers = fact("layers", model.num_layers, "count", derived_from(model))
            inputs = (self.block_tokens, layers, self.chips)
            return modelled("bytes of a block", self.capacity.block_bytes, "bytes", how, *inputs)
        token = token_figure(model, layer, model.num_layers, self.fit.replica.precision, self.chips)
        return product("bytes of a block", (self.block_tokens, token), "bytes")

    def sequence(self) -> Breakdown:
        """Whole blocks of one sequence."""
        tokens = given("tokens of a sequence", self.fit.context, "tokens", field="context")
        if self.paged is None:
            how = "whole blocks of what grows, windows and states beside them"
            return modelled(
                "blocks of a sequence", self.capacity.blocks(self.fit.context), "count", how, tokens
            )
        return ceiling("blocks of a sequence", quotient("blocks", tokens, self.block_tokens, "count"))

    def weights(self) -> Breakdown:
        """Weights on one chip, a draft's beside them."""
        replica = self.fit.replica
        own = weights_figure(replica.model, replica.precision, tp=self.fit.tp, chips=self.chips)
        if draft_model(replica) is None:
            return own
        assert replica.speculation is not None
        how = f"{replica.speculation.draft}, split alike"
        draft = modelled("weights of what drafts", draft_bytes(replica), "bytes", how, self.chips)
        return total("weights", (own.named("weights of the model"), draft))

    def adapters(self) -> Breakdown:
        """Adapters that stay on the chip."""
        adapters = self.fit.replica.adapters
        assert adapters is not None
        resident, by = (
            given("resident adapters", adapters.resident, "count", field="resident_adapters adapters"),
            "low-rank matrices on one chip",
        )
        return modelled("adapters", self.capacity.adapter_bytes, "bytes", by, resident)

    def pool(self) -> Breakdown:
        """Memory for the cache, as the engine divides it at start."""
        capacity, engine = self.capacity, self.engine
        memory = seen_figure(self.fit.chip)
        share = option_leaf(engine, "memory_fraction", "the engine's share", "fraction")
        rest = [self.weights()]
        if capacity.adapter_bytes:
            rest.append(self.adapters())
        if engine.activations_inside:
            largest = "the largest step that the engine tries at its start"
            budget = option_leaf(engine, "token_budget", "tokens of a step", "tokens")
            rest.append(modelled("activations", capacity.activation_bytes, "bytes", largest, budget))
            rest.append(option_leaf(engine, "reserved_bytes", "context, graphs and buffers", "bytes"))
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
