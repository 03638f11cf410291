"""What a model takes on a chip as a figure: from the sizes its makers state to bytes of weights and of cache."""

from __future__ import annotations

from collections.abc import Callable

from datahall.breakdown import (
    Breakdown,
    Source,
    assumed,
    derived,
    fact,
    given,
    maximum,
    minimum,
    product,
    quotient,
    total,
)
from datahall.catalog.entries.model import Layer, Model
from datahall.catalog.number_formats import bytes_per_value
from datahall.counted import counted
from datahall.workload.memory.kv_cache import recurrent_state_bytes
from datahall.workload.parameters import ATTENTION, LATENT, Part, count_parameters
from datahall.workload.precision import Precision, attention_stays_wide

SPREAD = {
    "sharded": "cut by tensor parallelism",
    "replicated": "whole on each chip",
    "expert": "cut by expert parallelism",
    "embedding": "cut by vocabulary",
    "head": "cut by vocabulary",
}
_CUT = ("sharded", "expert", "embedding", "head")
_KIND = {
    "full": "layers that attend to all",
    "window": "layers with a window",
    "mla": "layers with a latent cache",
}


def derived_from(model: Model) -> Source:
    """Where a number is from that follows from the sizes of a model."""
    stated = next((one.source for one in model.facts.values()), None)
    if stated is None:
        return Source(f"the sizes of {model.title or model.name}, stated by hand", "undated", "estimate")
    return Source(f"from the sizes in: {stated.title}", stated.date, "derived")


def memory_figure(
    model: Model, precision: Precision, *, name: str, context: int, batch: int, tp: int = 1
) -> Breakdown:
    """Weights of a model and cache of some sequences on each of `tp` chips that share its layers [B]."""
    return total(
        name,
        (
            weights_figure(model, precision, tp=tp),
            cache_figure(model, precision, context=context, batch=batch, tp=tp),
        ),
    )


def weights_figure(
    model: Model, precision: Precision, *, tp: int, name: str = "weights", chips: Breakdown | None = None
) -> Breakdown:
    """Weights on each of `tp` chips, part by part [B]: linear layers in their format, tables and norms wide.

    `chips` is the leaf that says where `tp` is from; without it it was derived.
    """
    shared = chips or derived("chips that share it", tp, "count")
    return total(name, [_held(model, part, precision, shared) for part in count_parameters(model).parts])


def cache_figure(model: Model, precision: Precision, *, context: int, batch: int, tp: int) -> Breakdown:
    """What some sequences of one length leave on each of `tp` chips [B]."""
    sequences = given("sequences", batch, "count", field="batch")
    return product(
        "KV cache", (sequence_figure(model, precision, context=context, tp=tp), sequences), "bytes"
    )


def sequence_figure(model: Model, precision: Precision, *, context: int, tp: int) -> Breakdown:
    """What one sequence leaves on each of `tp` chips: keys and values, latents, states of a fixed size [B]."""
    name = f"cache of a sequence of {counted(context, 'token')}"
    parts = [
        _layers_cache(model, layer, count, precision, context, tp)
        for layer, count in model.layer_groups()
        if layer.mixer in _KIND
    ]
    states = float(recurrent_state_bytes(model, precision, float(tp)))
    if states:
        note = "a state and a short convolution per recurrent layer, whatever the length"
        parts.append(_counted(model, "recurrent states", states, "bytes", note))
    return parts[0].named(name) if len(parts) == 1 else total(name, parts)


def token_figure(model: Model, layer: Layer, count: int, precision: Precision, chips: Breakdown) -> Breakdown:
    """What one token leaves in so many layers of one kind on each of some chips that share them [B]."""
    return product("cache of a token", _token_factors(model, layer, count, precision, chips), "bytes")


def _held(model: Model, part: Part, precision: Precision, shared: Breakdown) -> Breakdown:
    """Bytes of one part on one chip."""
    narrow = part.sharding in ("sharded", "expert") or part.name == LATENT
    narrow = narrow and not (part.name in (ATTENTION, LATENT) and attention_stays_wide(model, precision))
    form = precision.weights if narrow else precision.wide
    each = assumed(
        "bytes of a parameter", bytes_per_value(form), "bytes", f"{form}, by definition of the format"
    )
    parameters = _parameters(model, part)
    if shared.value > 1 and part.sharding in _CUT:
        parameters = quotient(f"{part.name} on one chip", parameters, shared, "parameters")
    return product(part.name, (parameters, each), "bytes", note=SPREAD[part.sharding])


def _parameters(model: Model, part: Part) -> Breakdown:
    """The parameters of a part from the sizes of the model; a part with biases or gates as they were counted."""
    name = f"{part.name} parameters"
    chain = _CHAINS.get(part.name)
    made = chain(model, name) if chain else None
    if made is not None and made.value == part.count:
        return made
    return _counted(model, name, part.count, "parameters")


def size_figure(model: Model, key: str, value: float, label: str) -> Breakdown:
    """A size that the makers state, or one that follows from those."""
    known = model.facts.get(key)
    if known is not None and known.value == value:
        return fact(label, value, "count", known.source)
    return _counted(model, label, value, "count")


def _counted(model: Model, name: str, value: float, unit: str, how: str = "") -> Breakdown:
    """What follows from the sizes of a model."""
    return derived(name, value, unit, how).with_note(sources=(derived_from(model),))


def _hidden(model: Model) -> Breakdown:
    return size_figure(model, "hidden", model.hidden, "hidden width")


def _times(model: Model, does: Callable[[Layer], bool], label: str) -> Breakdown:
    count = sum(does(layer) for layer in model.layers)
    return size_figure(model, "num_layers", count, label if count != model.num_layers else "layers")


def _matrices(model: Model) -> Breakdown:
    words = "gate, up and down" if model.gated_mlp else "up and down"
    return assumed("matrices", 3.0 if model.gated_mlp else 2.0, "count", f"an MLP has {words}")


def _table(model: Model, name: str) -> Breakdown:
    rows = size_figure(model, "vocab", model.vocab, "rows of the token table")
    return product(name, (rows, _hidden(model)), "parameters")


def _attention(model: Model, name: str) -> Breakdown:
    two = "a query is read and its value written back"
    heads = total(
        "heads in and out",
        (
            product(
                "query heads, in and out",
                (
                    assumed("both", 2.0, "count", two),
                    size_figure(model, "num_heads", model.num_heads, "query heads"),
                ),
                "count",
            ),
            product(
                "keys and values",
                (
                    assumed("both", 2.0, "count", "a key and a value"),
                    size_figure(model, "num_kv_heads", model.num_kv_heads, "key-value heads"),
                ),
                "count",
            ),
        ),
    )
    width = size_figure(model, "head_dim", model.head_dim, "head width")
    layers = _times(model, lambda layer: layer.mixer in ("full", "window"), "layers with attention")
    return product(name, (layers, _hidden(model), width, heads), "parameters")


def _mlp(model: Model, name: str) -> Breakdown:
    layers = _times(model, lambda layer: layer.mlp == "dense", "layers with a dense MLP")
    width = size_figure(model, "ffn", model.ffn, "MLP width")
    return product(name, (layers, _matrices(model), _hidden(model), width), "parameters")


def _expert_layers(model: Model) -> Breakdown:
    return _times(model, lambda layer: layer.mlp == "moe", "layers with experts")


def _experts(model: Model, name: str) -> Breakdown | None:
    if model.moe is None:
        return None
    experts = size_figure(model, "moe.num_experts", model.moe.num_experts, "routed experts")
    width = size_figure(model, "moe.expert_ffn", model.moe.expert_ffn, "width of an expert")
    return product(
        name, (_expert_layers(model), experts, _matrices(model), _hidden(model), width), "parameters"
    )


def _shared_experts(model: Model, name: str) -> Breakdown | None:
    if model.moe is None:
        return None
    width = size_figure(model, "moe.shared_ffn", model.moe.shared_ffn, "width of all shared experts")
    return product(name, (_expert_layers(model), _matrices(model), _hidden(model), width), "parameters")


def _norms(model: Model, name: str) -> Breakdown:
    layers = size_figure(model, "num_layers", model.num_layers, "layers")
    each = size_figure(model, "norms_per_layer", model.norms_per_layer, "norms per layer")
    return product(name, (layers, each, _hidden(model)), "parameters")


_CHAINS: dict[str, Callable[[Model, str], Breakdown | None]] = {
    "token table": _table,
    "head": _table,
    ATTENTION: _attention,
    "mlp": _mlp,
    "experts": _experts,
    "shared experts": _shared_experts,
    "norms": _norms,
}


def _layers_cache(
    model: Model, layer: Layer, count: int, precision: Precision, context: int, tp: int
) -> Breakdown:
    """Keys and values, or latents, of one kind of layer."""
    tokens = given("tokens", context, "tokens", field="context")
    if layer.mixer == "window":
        window = fact("attention window", layer.window, "tokens", derived_from(model))
        tokens = minimum("tokens kept", (tokens, window))
    chips = given("chips that share it", tp, "count", field="tp")
    values, layers, each = _token_factors(model, layer, count, precision, chips)
    return product(_KIND[layer.mixer], (values, layers, tokens, each), "bytes")


def _token_factors(
    model: Model, layer: Layer, count: int, precision: Precision, chips: Breakdown
) -> tuple[Breakdown, Breakdown, Breakdown]:
    """Values of a token in a layer, layers of its kind, bytes of a value."""
    each = assumed(
        "bytes of a value", precision.kv_bytes_per_value, "bytes", f"{precision.kv}, by definition"
    )
    values = _values(model, layer, chips)
    layers = size_figure(
        model, "num_layers", count, _KIND[layer.mixer] if count != model.num_layers else "layers"
    )
    return values, layers, each


def _values(model: Model, layer: Layer, chips: Breakdown) -> Breakdown:
    """Values that one token stores in one layer of one chip."""
    if layer.mixer == "mla" and model.mla is not None:
        return total(
            "latent values",
            (
                size_figure(model, "mla.kv_rank", model.mla.kv_rank, "rank of keys and values"),
                size_figure(model, "mla.rope_head_dim", model.mla.rope_head_dim, "head width with position"),
            ),
        )
    heads = size_figure(model, "num_kv_heads", model.num_kv_heads, "key-value heads")
    if chips.value > 1:
        share = quotient("key-value heads over chips", heads, chips, "count")
        heads = maximum(
            "key-value heads on one chip", (share, assumed("least", 1.0, "count", "a head is not cut"))
        )
    width = size_figure(model, "head_dim", model.head_dim, "head width")
    return product(
        "values of a token", (assumed("both", 2.0, "count", "a key and a value"), heads, width), "count"
    )
