"""One model: its parameters, arithmetic and bytes per token, its cache, and what it fits on."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answer import Answer, Cell
from datahall.answers.bounds import find_model, opened, whole
from datahall.answers.model.model_table import (
    SPREAD,
    charts,
    fit_table,
    parts_table,
    precision_table,
    token_table,
)
from datahall.breakdown import Breakdown, Source
from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.inference.memory.fit import COMMON, Fit, best, fit
from datahall.units import fmt
from datahall.workload.flops import forward_flop_per_token, training_flop_per_token
from datahall.workload.forward import forward_pass
from datahall.workload.memory.kv_cache import kv_bytes, kv_bytes_per_token
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.operator import total_bytes
from datahall.workload.parameters import ParameterCount, count_parameters
from datahall.workload.precision import Precision


def show_model(
    name: str,
    *,
    seq: int | str = 8192,
    batch: int | str = 1,
    precision: str = "bf16",
    chips: Sequence[str] = (),
    catalog: Catalog | None = None,
) -> Answer:
    """What a model is made of and what it needs: `name` is a catalogue entry or a path to a config.json."""
    shelf = opened(catalog)
    length, sequences, formats = whole("seq", seq), whole("batch", batch), Precision.named(precision)
    model = find_model(name, shelf)
    counts = count_parameters(model)
    fits = [
        fit(model, shelf.chip(chip), seq=length, batch=sequences, precision=formats)
        for chip in chips or COMMON
    ]
    memory = _memory(model, counts, formats, precision, length, sequences)
    tokens = _per_token(model, formats, length)
    return Answer(
        kind="model",
        inputs={
            "model": model.name,
            "seq_tokens": length,
            "batch_sequences": sequences,
            "precision": precision,
        },
        headline=_headline(model, counts, memory, precision, length),
        binding=_binding(fits, sequences, length, precision),
        results=_results(counts, memory, tokens),
        tables=(
            fit_table(fits, sequences, length, precision, len(shelf.chips())),
            parts_table(counts),
            token_table(tokens, length),
            precision_table(model, counts, length),
        ),
        figure=memory,
        charts=charts(fits, sequences),
        notes=_notes(model, counts, length),
        next_commands=(
            f"datahall show roofline h200-sxm --model {name} --phase decode --batch 32 --context {length}",
            f"datahall explain show model {name} --seq {length}",
        ),
    )


def _headline(model: Model, counts: ParameterCount, memory: Breakdown, precision: str, seq: int) -> str:
    active = f", {fmt(counts.active, 'parameters')} active per token" if counts.active < counts.total else ""
    weights, cache = (fmt(part.value, "bytes") for part in memory.parts)
    each = fmt(memory.parts[1].parts[0].value, "bytes")
    sequences = int(memory.parts[1].parts[1].value)
    held = (
        f"a sequence of {seq:,} tokens {each}"
        if sequences == 1
        else f"{sequences:,} sequences of {seq:,} tokens {cache}"
    )
    return (
        f"{model.title or model.name} has {fmt(counts.total, 'parameters')} parameters{active}: "
        f"in {precision} its weights take {weights} and {held} of cache."
    )


def _binding(fits: Sequence[Fit], batch: int, seq: int, precision: str) -> str:
    row = best(fits)
    if row is None:
        return f"No group of up to 64 of these chips holds it in {precision}."
    one = fits[row]
    asked = f"{batch:,} sequences" if batch > 1 else "one sequence"
    return (
        f"Memory decides: the smallest group that holds it and {asked} is {one.tp} × {one.chip.name}, with "
        f"room for {one.num_sequences:,} of {seq:,} tokens."
    )


def _memory(
    model: Model, counts: ParameterCount, formats: Precision, precision: str, seq: int, batch: int
) -> Breakdown:
    """Weights and cache of one copy of the model, before it is cut over chips."""
    source = _sources(model)
    parts = tuple(
        Breakdown(name=part.name, value=float(part.count), unit="parameters", note=SPREAD[part.sharding])
        for part in counts.parts
    )
    parameters = Breakdown(
        name="parameters",
        value=float(counts.total),
        unit="parameters",
        formula="sum of the parts",
        parts=parts,
        sources=source,
    )
    narrow, wide = formats.weight_bytes_per_value, formats.wide_bytes_per_value
    weights = Breakdown(
        name="weights",
        value=float(serving_weight_bytes(model, counts, formats)),
        unit="bytes",
        formula=f"linear layers × {narrow:g} B, the rest × {wide:g} B",
        parts=(parameters,),
    )
    each = float(kv_bytes(model, seq, formats))
    one = Breakdown(
        name=f"cache of a sequence of {seq:,} tokens",
        value=each,
        unit="bytes",
        formula=_cache_formula(model, formats, seq),
        sources=source,
    )
    num = Breakdown(name="sequences", value=float(batch), unit="count")
    cache = Breakdown(
        name="KV cache",
        value=each * batch,
        unit="bytes",
        formula="cache of a sequence × sequences",
        parts=(one, num),
    )
    return Breakdown(
        name=f"memory of one copy in {precision}",
        value=weights.value + cache.value,
        unit="bytes",
        formula="weights + KV cache",
        parts=(weights, cache),
    )


def _cache_formula(model: Model, formats: Precision, seq: int) -> str:
    kinds = {layer.mixer for layer in model.layers}
    if kinds == {"full"}:
        return (
            f"2 × {model.num_kv_heads} KV heads × {model.head_dim} × {model.num_layers} layers × {seq:,} "
            f"tokens × {formats.kv_bytes_per_value:g} B"
        )
    if kinds == {"mla"} and model.mla is not None:
        width = model.mla.kv_rank + model.mla.rope_head_dim
        each = f"{formats.kv_bytes_per_value:g} B"
        return f"{width} latent values × {model.num_layers} layers × {seq:,} tokens × {each}"
    return "sum over layers: min(tokens, window) × values per token, and recurrent states"


def _sources(model: Model) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(fact.source for fact in model.facts.values()))[:1]


def _per_token(model: Model, formats: Precision, seq: int) -> dict[str, float]:
    decode = forward_pass(model, batch=1.0, query=1.0, past=float(seq - 1), precision=formats)
    return {
        "forward_flop": float(forward_flop_per_token(model, seq)),
        "training_flop": float(training_flop_per_token(model, seq)),
        "matmul_flop": float(forward_flop_per_token(model, seq, "matmul")),
        "decode_bytes": float(total_bytes(decode)),
        "kv_bytes": float(kv_bytes_per_token(model, formats)),
    }


def _results(counts: ParameterCount, memory: Breakdown, tokens: dict[str, float]) -> dict[str, Cell]:
    return {
        "num_parameters": counts.total,
        "num_active_parameters": counts.active,
        "weight_bytes": memory.at("weights").value,
        "kv_cache_bytes": memory.at("KV cache").value,
        "kv_bytes_per_token": tokens["kv_bytes"],
        "forward_flop_per_token": tokens["forward_flop"],
        "training_flop_per_token": tokens["training_flop"],
        "decode_bytes_per_token": tokens["decode_bytes"],
    }


def _notes(model: Model, counts: ParameterCount, seq: int) -> tuple[str, ...]:
    lines = [
        "memory is divided as vLLM does it at start: 90 % of what the runtime sees, less activations and buffers",
        "groups are powers of two that the heads divide by; where KV heads are fewer they are repeated",
    ]
    if model.published_parameters:
        counted = counts.as_published(model.published_basis)
        off = counted / model.published_parameters - 1
        lines.append(
            f"its maker says {fmt(model.published_parameters, 'parameters')}; our count is {off:+.2%} off"
        )
    if seq > model.max_context:
        lines.append(f"{seq:,} tokens is beyond the {model.max_context:,} it was made for")
    if model.note:
        lines.append(model.note)
    return tuple(lines)
