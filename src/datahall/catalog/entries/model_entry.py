"""Read a `[model."NAME"]` table of the catalogue into a `Model`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast, get_args

import msgspec

from datahall.catalog.document import Table, Value
from datahall.catalog.entries import layer_pattern
from datahall.catalog.entries.layer_pattern import LayerKeys
from datahall.catalog.entries.model import (
    Layer,
    Mla,
    Model,
    Moe,
    Norm,
    Position,
    PublishedBasis,
    QkNorm,
    Quantisation,
    Recurrent,
)
from datahall.catalog.fact import Entry, Fact, Field, read_fields
from datahall.catalog.number_formats import PACKED


def _count(key: str, label: str, *, required: bool = False, at_least: float | None = None) -> Field:
    return Field(key, key, label, "count", required=required, at_least=at_least)


def _text(key: str, label: str, choices: tuple[str, ...] = (), *, required: bool = False) -> Field:
    return Field(key, key, label, "text", required=required, choices=choices)


def _flag(key: str, label: str) -> Field:
    return Field(key, key, label, "flag")


MODEL_FIELDS: tuple[Field, ...] = (
    _text("title", "name in full", required=True),
    _text("family", "family", required=True),
    _count("year", "year of publication", required=True),
    _count("num_layers", "layers", required=True),
    _count("hidden", "hidden width", required=True),
    _count("num_heads", "query heads", required=True),
    _count("num_kv_heads", "key-value heads"),
    _count("head_dim", "head width"),
    _count("ffn", "MLP width", at_least=0),
    _count("vocab", "rows of the token table", required=True),
    _count("max_context", "longest context", required=True),
    _flag("gated_mlp", "gated MLP (three matrices)"),
    _text("norm", "norm", get_args(Norm)),
    _count("norms_per_layer", "norms per layer", at_least=0),
    _text("qk_norm", "norm of queries and keys", get_args(QkNorm)),
    _text("position", "positions", get_args(Position)),
    _count("num_positions", "rows of the position table"),
    _flag("tied_embeddings", "head shares the token table"),
    _flag("embedding_norm", "norm after the token table"),
    _flag("qkv_bias", "bias of query, key and value"),
    _flag("output_bias", "bias of the attention output"),
    _flag("mlp_bias", "bias of the MLP"),
    _flag("head_bias", "bias of the head"),
    _flag("parallel_block", "attention and MLP side by side"),
    _flag("attention_sinks", "learned sink per head"),
    _flag("attention_gate", "gate on the attention output"),
    _count("num_mtp_layers", "layers of multi-token prediction", at_least=0),
    Field("published_parameters", "published_parameters", "published parameters", required=True),
    Field("published_active_parameters", "published_active_parameters", "published active parameters"),
    _text("published_basis", "what the published parameters count", get_args(PublishedBasis)),
    _text("published_active_basis", "what the published active parameters count", get_args(PublishedBasis)),
    Field("aliases", "aliases", "other names", "texts"),
    _text("note", "note"),
)

LAYER_FIELDS: tuple[Field, ...] = (
    _count("window", "attention window in tokens"),
    _count("global_every", "every n-th layer sees all"),
    _count("attention_every", "every n-th layer attends, the others are recurrent"),
    _count("first_dense_layers", "leading layers without experts", at_least=0),
    _count("moe_every", "every n-th layer has experts"),
    _text("pattern", "one letter per layer"),
)

MOE_FIELDS: tuple[Field, ...] = (
    _count("num_experts", "routed experts", required=True),
    _count("top_k", "experts per token", required=True),
    _count("expert_ffn", "width of an expert", required=True),
    _count("num_shared_experts", "shared experts", at_least=0),
    _count("shared_ffn", "width of all shared experts", at_least=0),
    _flag("shared_gate", "gate on the shared expert"),
    _flag("expert_bias", "bias of the experts"),
    _flag("router_bias", "bias of the router"),
    _count("num_groups", "groups of experts"),
    _count("num_groups_per_token", "groups a token may use"),
)

MLA_FIELDS: tuple[Field, ...] = (
    _count("q_rank", "rank of the queries (0: direct)", required=True, at_least=0),
    _count("kv_rank", "rank of keys and values", required=True),
    _count("nope_head_dim", "head width without position", required=True),
    _count("rope_head_dim", "head width with position", required=True),
    _count("value_head_dim", "value head width", required=True),
)

RECURRENT_FIELDS: tuple[Field, ...] = (
    _count("num_heads", "value heads", required=True),
    _count("head_dim", "value head width", required=True),
    _count("num_key_heads", "key heads (groups)", required=True),
    _count("key_dim", "key head width (state)", required=True),
    _count("conv_width", "convolution taps"),
)

QUANTISATION_FIELDS: tuple[Field, ...] = (_text("format", "number format", PACKED, required=True),)

LABELS = {field.key: field.label for field in MODEL_FIELDS} | {
    f"{part}.{field.key}": field.label
    for part, fields in (("moe", MOE_FIELDS), ("mla", MLA_FIELDS), ("recurrent", RECURRENT_FIELDS))
    for field in fields
}

_CHECKPOINTS = ("quantisation", "fp8_checkpoint")
_SUBTABLES = ("moe", "mla", "recurrent", *_CHECKPOINTS)
_LAYER_KEYS = tuple(field.key for field in LAYER_FIELDS)

Part = TypeVar("Part", bound=msgspec.Struct)


def read_model(entry: Entry, name: str, table: Table) -> Model | None:
    """Read one model; problems are recorded in `entry` and then there is no model."""
    before = len(entry.problems)
    if "source" not in table:
        entry.problem("the entry has no source", hint='source = { title = "…", date = "2025-04" }')
    read_fields(entry, table, (*MODEL_FIELDS, *LAYER_FIELDS), also=(*_SUBTABLES, "global_layers"))
    global_layers = _indices(entry, table.get("global_layers", []))
    moe = _part(entry, table, "moe", MOE_FIELDS, Moe)
    mla = _part(entry, table, "mla", MLA_FIELDS, Mla)
    recurrent = _part(entry, table, "recurrent", RECURRENT_FIELDS, Recurrent)
    checkpoints = {key: _checkpoint(entry, table, key) for key in _CHECKPOINTS}
    if len(entry.problems) > before:
        return None
    values = dict(entry.values) | checkpoints
    keys = LayerKeys(
        **{key: values.pop(key) for key in ("num_layers", *_LAYER_KEYS) if key in values},  # type: ignore[arg-type]
        global_layers=global_layers, has_moe=moe is not None, has_mla=mla is not None,
    )  # fmt: skip
    values |= {"num_layers": keys.num_layers, "name": name, "moe": moe, "mla": mla, "recurrent": recurrent}
    layer_pattern.check(entry, keys, has_recurrent=recurrent is not None)
    _fill_heads(entry, values, mla)
    if len(entry.problems) > before:
        return None
    layers = layer_pattern.expand(keys)
    _check_mlp(entry, values, layers, moe)
    if len(entry.problems) > before:
        return None
    values.setdefault("ffn", 0)
    return Model(**values, layers=layers, facts=dict(entry.facts))  # type: ignore[arg-type]


def _part(entry: Entry, table: Table, key: str, fields: Iterable[Field], shape: type[Part]) -> Part | None:
    """Read a nested table; its facts take the source of the entry."""
    raw = table.get(key)
    if raw is None:
        return None
    if not isinstance(raw, dict):
        entry.problem(f'"{key}" must be a table', key)
        return None
    part = Entry(entry.document, (*entry.path, key), entry.sources, {}, {}, [])
    read_fields(part, raw, fields)
    entry.problems.extend(part.problems)
    if part.problems:
        return None
    source = next((fact.source for fact in entry.facts.values()), None)
    for field in fields:
        value = part.values.get(field.attribute)
        if field.form == "count" and isinstance(value, int) and source is not None:
            entry.facts[f"{key}.{field.attribute}"] = Fact(field.label, float(value), "count", source)
    return shape(**part.values)


def _checkpoint(entry: Entry, table: Table, key: str) -> Quantisation | None:
    """Read `{ format = "fp8", block = [128, 128], source = … }`; its block is a fact with its own source."""
    raw = table.get(key)
    if raw is None:
        return None
    if not isinstance(raw, dict):
        entry.problem(f'"{key}" must be a table', key, hint='{ format = "fp8", block = [128, 128] }')
        return None
    part = entry.below(key)
    read_fields(part, raw, QUANTISATION_FIELDS, also=("block",))
    block = raw.get("block", [0, 0])
    if not (
        isinstance(block, list) and len(block) == 2 and all(type(side) is int and side >= 0 for side in block)
    ):
        part.problem(
            '"block" must be two whole numbers, rows and columns', "block", hint="block = [128, 128]"
        )
        return None
    if "format" not in part.values or part.source is None:
        return None
    for word, side in zip(("rows", "columns"), cast("list[int]", block), strict=True):
        if side:
            label = f"{word} of weights under one scale"
            entry.facts[f"{key}.{word}"] = Fact(label, float(side), "count", part.source)
    return Quantisation(format=cast(str, part.values["format"]), block=cast("tuple[int, int]", tuple(block)))


def _indices(entry: Entry, raw: Value) -> tuple[int, ...]:
    if not isinstance(raw, list) or not all(type(item) is int and item >= 0 for item in raw):
        entry.problem('"global_layers" must be a list of layer numbers from 0', "global_layers")
        return ()
    return tuple(cast("list[int]", raw))


def _fill_heads(entry: Entry, values: dict[str, object], mla: Mla | None) -> None:
    """Fill the head counts and width that follow from the others, and check that they fit."""
    hidden, num_heads = cast(int, values["hidden"]), cast(int, values["num_heads"])
    num_kv_heads = cast(int, values.setdefault("num_kv_heads", num_heads))
    if num_heads % num_kv_heads:
        entry.problem(f"{num_kv_heads} key-value heads do not divide {num_heads} heads", "num_kv_heads")
    if mla is not None:
        values.setdefault("head_dim", mla.nope_head_dim + mla.rope_head_dim)
    elif "head_dim" not in values and hidden % num_heads:
        entry.problem(f"{num_heads} heads do not divide width {hidden}", "num_heads", hint="write head_dim")
    values.setdefault("head_dim", hidden // num_heads)


def _check_mlp(entry: Entry, values: dict[str, object], layers: tuple[Layer, ...], moe: Moe | None) -> None:
    """Check that the layers with an MLP have a width and that the router has enough experts."""
    if any(layer.mlp == "dense" for layer in layers) and not values.get("ffn"):
        entry.problem('"ffn" is missing: some layers have a dense MLP', hint="write ffn, the MLP width")
    if moe is not None and moe.top_k > moe.num_experts:
        entry.problem(f"{moe.top_k} experts per token of {moe.num_experts}", "moe", "top_k")
    if moe is not None and bool(moe.num_shared_experts) != bool(moe.shared_ffn):
        entry.problem("num_shared_experts and shared_ffn (all of them together) need each other", "moe")
