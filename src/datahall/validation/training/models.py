"""The hardware and the model that a row names."""

from __future__ import annotations

import re

import msgspec

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Layer, Model
from datahall.validation.collectives.testbed import chip_named
from datahall.validation.measurement import Row, RowError

# names that sources print, as the catalogue spells them; the first that is found
NAMES = (
    (r"deepseek[-_ ]?v3", "deepseek-v3"),
    (r"qwen3[-_ ]?235b", "qwen3-235b-a22b"),
    (r"qwen3[-_ ]?30b", "qwen3-30b-a3b"),
    (r"gpt[-_ ]?oss[-_ ]?120b", "gpt-oss-120b"),
    (r"gpt[-_ ]?oss[-_ ]?20b", "gpt-oss-20b"),
    (r"kimi[-_ ]?k2", "kimi-k2"),
    (r"llama[-_ ]?4[-_ ]?maverick", "llama-4-maverick"),
    (r"llama[-_ ]?4[-_ ]?scout", "llama-4-scout"),
    (r"llama[-_ ]?3(\.1)?[-_ ]?405b", "llama-3.1-405b"),
    (r"llama[-_ ]?3(\.[13])?[-_ ]?70b", "llama-3.1-70b"),
    (r"llama[-_ ]?3(\.1)?[-_ ]?8b", "llama-3.1-8b"),
    (r"llama[-_ ]?2[-_ ]?70b", "llama-2-70b"),
    (r"llama[-_ ]?2[-_ ]?13b", "llama-2-13b"),
    (r"llama[-_ ]?2[-_ ]?7b", "llama-2-7b"),
    (r"mixtral[-_ ]?8x7b", "mixtral-8x7b"),
    (r"mixtral[-_ ]?8x22b", "mixtral-8x22b"),
    (r"mistral[-_ ]?7b", "mistral-7b"),
    (r"gemma[-_ ]?3[-_ ]?12b", "gemma-3-12b"),
    (r"gemma[-_ ]?3[-_ ]?27b", "gemma-3-27b"),
    (r"grok[-_ ]?1", "grok-1"),
    (r"nemotron[-_ ]?h[-_ ]?56b", "nemotron-h-56b"),
    (r"nemotron[-_ ]?h[-_ ]?8b", "nemotron-h-8b"),
    (r"nemotron[-_ ]?3[-_ ]?nano", "nemotron-3-nano-30b-a3b"),
    (r"nemotron[-_ ]?4?[-_ ]?340b", "nemotron-4-340b"),
    (r"nemotron[-_ ]?4?[-_ ]?15b", "nemotron-4-15b"),
    (r"palm[-_ ]?540b", "palm-540b"),
    (r"gpt-?3?-175b(-| \()(maxtext|paxml)", "gpt-3-175b"),
)
VOCAB = 51200  # of GPT-2, padded, where a row of a GPT states none


def hardware(row: Row) -> Chip:
    """The chip that a row's hardware names."""
    words = row.text("hardware")
    if "Ampere" in words:
        return load().chip("a100-sxm-80gb")
    if "H200-NVL" in words:
        return load().chip("h200-nvl")
    if "H100-96GB" in words:
        return load().chip("h100-sxm-96gb-500w")
    if "Ironwood" in words or "TPU7x" in words:
        return load().chip("tpu-v7x")
    chip = chip_named(words)
    if chip is None:
        raise RowError(f'hardware "{words}" is not in the catalogue')
    return chip


def described(row: Row) -> Model:
    """The model from the catalogue by its name, or from the row's own dimensions."""
    name = row.text("model_name")
    known = next((entry for pattern, entry in NAMES if re.search(pattern, name.lower())), None)
    if known is None:
        return _from_dimensions(row)
    return _looking_ahead(_changed(load().model(known), row), row)


def _looking_ahead(model: Model, row: Row) -> Model:
    """With the layers that predict tokens further ahead, which are trained and not in the catalogue."""
    ahead = int(row.positive("num_ahead")) if row.text("num_ahead") else 0
    layers = (*model.layers, *(model.layers[-1],) * ahead)
    return msgspec.structs.replace(model, layers=layers, num_layers=len(layers)) if ahead else model


def _changed(model: Model, row: Row) -> Model:
    """A model of the catalogue with as many layers and KV heads as the row says.

    Where benchmarks take layers away they keep a single one of several dense ones at the start.
    """
    kv_heads = int(row.number("n_kv_heads")) if row.text("n_kv_heads") else model.num_kv_heads
    if kv_heads != model.num_kv_heads and model.mla is None:
        model = msgspec.structs.replace(model, num_kv_heads=kv_heads)
    layers = int(row.positive("n_layers")) if row.text("n_layers") else model.num_layers
    if layers >= model.num_layers:
        return model
    kept = (model.layers[0], *(model.layers[-1],) * (layers - 1))
    return msgspec.structs.replace(model, layers=kept, num_layers=layers)


def _from_dimensions(row: Row) -> Model:
    name = row.text("model_name")
    missing = [column for column in ("n_layers", "hidden", "n_heads") if not row.text(column)]
    if missing:
        raise RowError(f'the row does not state {", ".join(missing)} and "{name}" is not in the catalogue')
    if row.text("n_experts"):
        raise RowError(f'the row does not state how the experts of "{name}" are built')
    layers, hidden, heads = (int(row.positive(column)) for column in ("n_layers", "hidden", "n_heads"))
    gated = "lama" in name.lower() or row.text("gated") == "1"

    def count(column: str, usual: int) -> int:
        return int(row.number(column)) if row.text(column) else usual

    return Model(
        name=name,
        title=name,
        family="gpt",
        year=0,
        num_layers=layers,
        hidden=hidden,
        num_heads=heads,
        num_kv_heads=count("n_kv_heads", heads),
        head_dim=count("head_dim", hidden // heads),
        ffn=count("ffn_hidden", 4 * hidden),
        vocab=count("vocab", VOCAB),
        max_context=int(row.positive("seq_len")),
        layers=(Layer(mixer="full", mlp="dense"),) * layers,
        gated_mlp=gated,
        norm="rmsnorm" if gated else "layernorm",
        position="rope" if gated else "learned",
        tied_embeddings=not gated,
    )
