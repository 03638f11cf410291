"""The memory of a chip as an engine divides it at start: weights, activations, what is reserved, blocks of cache.

    pool   = fraction · memory − weights − activations − reserved          vLLM
           = fraction · memory − weights                                   SGLang: activations live outside the fraction
           = fraction · (memory − weights − activations − reserved)        TensorRT-LLM
    blocks = ⌊pool / bytes of a block⌋

A block holds `block_tokens` tokens of all layers that keep every token.  Window layers and recurrent states hold a
fixed amount for each sequence beside it; vLLM allots layers of several kinds in groups of one size, the last of a kind
padded.  Everything is per chip of one attention (dp) rank, and of the heaviest pipeline stage.
Reference: vLLM, hybrid KV cache manager (2025).
"""

from __future__ import annotations

from math import ceil, floor, isfinite

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Layer, Model
from datahall.inference.engine.adapters import resident_bytes
from datahall.inference.engine.replica import Replica
from datahall.inference.engine.speculation import draft_model, shares_tables
from datahall.inference.memory.activation_peak import activation_peak_bytes
from datahall.workload.memory.kv_cache import kv_values_per_token, recurrent_state_bytes
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.parameters import ParameterCount, count_parameters

# What the runtime sees is less than what the driver's tool prints: 0.5 GB on H100 (79.2 of 79.65 GiB), 0.67 GB on RTX
# PRO 6000, 0.45 GB on RTX 4090, from vLLM's start-up logs.
DRIVER_BYTES = 0.55e9


class KvCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """The cache of one rank; bytes are those of one chip."""

    num_blocks: int
    block_tokens: int
    block_bytes: float  # of all layers that keep every token; where there are none, of all windows or states
    grows: bool  # some layers keep every token
    window_blocks: tuple[tuple[int, float], ...]  # (window, blocks that hold one token of each of its layers)
    state_blocks: float  # what a sequence's recurrent states take, in blocks
    max_context: int  # tokens of the longest sequence accepted
    memory_bytes: float  # that the runtime sees
    usable_bytes: float  # of it, what the engine takes for everything
    weight_bytes: float
    activation_bytes: float
    reserved_bytes: float
    pool_bytes: float  # left for the cache
    adapter_bytes: float  # resident ones

    @property
    def tokens(self) -> int:
        """Tokens that the cache holds, counted as vLLM prints it: sequences of the longest context times its length."""
        return self.held_tokens(self.max_context)

    def held_tokens(self, context: float) -> int:
        """Tokens that the cache holds when every sequence has so many: windows and states make short ones dearer."""
        return floor(self.num_blocks / self.blocks(context) * context)

    def blocks(self, context: float) -> float:
        """Blocks that one sequence of so many tokens holds."""
        growing = ceil(context / self.block_tokens) if self.grows else 0
        held = sum(self._window_tokens(context, window) * each for window, each in self.window_blocks)
        return max(growing + held + self.state_blocks, 1e-9)

    def num_sequences(self, context: float) -> int:
        """Sequences of so many tokens that are held at once."""
        return floor(self.num_blocks / self.blocks(context) + 1e-9)

    def _window_tokens(self, context: float, window: int) -> float:
        """A window needs the blocks that it touches: one more than it fills."""
        touched = min(context, window + self.block_tokens)
        return ceil(touched / self.block_tokens) * self.block_tokens


def divide_memory(replica: Replica) -> KvCapacity:
    """The cache of a replica's ranks, without judgement: the pool may be negative."""
    engine, model = replica.engine, replica.model
    memory = runtime_bytes(replica.chip)
    weights = weight_bytes(replica)
    inside = engine.activations_inside
    activations = activation_peak_bytes(replica) if inside else 0.0
    reserved = engine.reserved_bytes if inside else 0.0
    adapters = resident_bytes(replica)
    rest = weights + adapters + activations + reserved
    if engine.fraction_of_free:
        free = engine.memory_fraction * (memory - rest)
        usable = rest + free
    else:
        usable = engine.memory_fraction * memory
        free = usable - rest
    growing, windows, states = _held(replica)
    paged = growing or sum(each for _, each in windows)
    block = engine.block_tokens * paged if paged > 0 else max(states, 1.0)
    num_blocks = replica.kv_blocks or max(0, floor(free / block))
    context = replica.max_context or model.max_context
    if not replica.max_context:  # nobody asked for the model's longest: what is held bounds it
        context = max(engine.block_tokens, min(context, num_blocks * engine.block_tokens))
    return KvCapacity(
        num_blocks=num_blocks,
        block_tokens=engine.block_tokens,
        block_bytes=block,
        grows=growing > 0,
        window_blocks=tuple((window, each / block) for window, each in windows),
        state_blocks=states / block,
        max_context=context,
        memory_bytes=memory,
        usable_bytes=usable,
        weight_bytes=weights,
        adapter_bytes=adapters,
        activation_bytes=activations,
        reserved_bytes=reserved,
        pool_bytes=free,
    )


def runtime_bytes(chip: Chip) -> float:
    """Memory of a chip that a program sees [B]."""
    if isfinite(chip.visible_memory_bytes):
        return chip.visible_memory_bytes - DRIVER_BYTES
    return chip.memory_bytes


def weight_bytes(replica: Replica) -> float:
    """Weights on one chip of the heaviest stage, a draft's included [B].

    Experts are spread over all tp · dp chips of a stage, whether whole (ep) or in slices.
    """
    own = _weights(replica.model, count_parameters(replica.model), replica, replica.pp)
    return own + draft_bytes(replica)


def draft_bytes(replica: Replica) -> float:
    """Weights of what drafts on one chip; a layer of the model brings no tables of its own [B]."""
    draft = draft_model(replica)
    if draft is None:
        return 0.0
    counts = count_parameters(draft)
    if shares_tables(replica):
        kept = tuple(part for part in counts.parts if part.sharding not in ("embedding", "head"))
        counts = ParameterCount(kept)
    return _weights(draft, counts, replica, 1)


def _weights(model: Model, counts: ParameterCount, replica: Replica, pp: int) -> float:
    spread = replica.tp * replica.dp if model.moe is not None else replica.tp
    return float(serving_weight_bytes(model, counts, replica.precision, tp=replica.tp, pp=pp, ep=spread))


def _held(replica: Replica) -> tuple[float, tuple[tuple[int, float], ...], float]:
    """Bytes per token of what grows, (window, bytes per token) of what slides, bytes of the states of a sequence."""
    model = replica.model
    share = -(-model.num_layers // replica.pp) / model.num_layers
    growing, windows, states = _held_by(model, replica, share)
    draft = draft_model(replica)
    if draft is None:
        return growing, windows, states
    also, more, kept = _held_by(draft, replica, 1.0)
    return growing + also, (*windows, *more), states + kept


def _held_by(
    model: Model, replica: Replica, share: float
) -> tuple[float, tuple[tuple[int, float], ...], float]:
    kinds: dict[tuple[str, int], int] = {}
    for layer, count in model.layer_groups():
        if layer.mixer != "none":
            key = (layer.mixer, layer.window if layer.mixer == "window" else 0)
            kinds[key] = kinds.get(key, 0) + count
    size = min(kinds.values(), default=1)
    growing, windows = 0.0, []
    for (mixer, window), count in kinds.items():
        layers = ceil(count / size) * size  # groups of one size, the last one padded
        values = float(kv_values_per_token(model, _layer(model, mixer), float(replica.tp)))
        each = share * layers * values * replica.precision.kv_bytes_per_value
        if mixer == "window":
            windows.append((window, each))
        else:
            growing += each
    states = share * float(recurrent_state_bytes(model, replica.precision, float(replica.tp)))
    return growing, tuple(windows), states


def _layer(model: Model, mixer: str) -> Layer:
    return next(layer for layer in model.layers if layer.mixer == mixer)
