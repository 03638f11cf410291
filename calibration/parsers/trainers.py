"""Options of training frameworks: Megatron-LM's arguments, torchtitan's job file, DeepSpeed's configuration."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from option import of_argparse
from syntax import UNREAD, Sources, keys, option

Options = dict[str, dict[str, Any]]


def megatron(root: Path) -> Options:
    """`pretrain_gpt.py`: what stands in `arguments.py`, and the fields of the classes that it makes arguments of."""
    sources = Sources(
        root, ("megatron/training/arguments.py", "megatron/training/config/*.py", "megatron/core/transformer/transformer_config.py",
               "megatron/core/model_parallel_config.py", "megatron/core/**/*config.py", "megatron/core/transformer/enums.py",
               "megatron/core/fault_injector.py"),
    )  # fmt: skip
    found: Options = {}
    for node in ast.walk(sources.trees["megatron/training/arguments.py"]):
        if isinstance(node, ast.FunctionDef):
            left_out = next(
                (sources.value(one.value) for one in ast.walk(node) if isinstance(one, ast.Assign) and _is_named(one, "exclude")), []
            )  # fmt: skip
            for call in (
                one for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
            ):
                if call.func.id == "ArgumentGroupFactory":  # type: ignore[attr-defined]
                    said = {word.arg: word.value for word in call.keywords}
                    excluded = said.get("exclude")
                    without = left_out if isinstance(excluded, ast.Name) else sources.value(excluded) or []
                    assert isinstance(call.args[0], ast.Name)
                    found |= _group(call.args[0].id, without, sources)
    own = (of_argparse(call, sources) for call in sources.calls("add_argument", within="arguments.py"))
    return found | dict(one for one in own if one is not None)


def _is_named(node: ast.Assign, name: str) -> bool:
    return isinstance(node.targets[0], ast.Name) and node.targets[0].id == name


def _group(name: str, without: list[str], sources: Sources) -> Options:
    found: Options = {}
    for field in sources.fields(name):
        assert isinstance(field.target, ast.Name)
        attribute = field.target.id
        if attribute in without:
            continue
        kind, words, is_open = sources.kind(field.annotation)
        default = sources.value(field.value) if field.value is not None else UNREAD
        flag = "--" + attribute.replace("_", "-")
        if kind == "flag":
            flags = (
                [flag]
                if not default or default is UNREAD
                else [flag.replace("--", "--no-"), flag.replace("--", "--disable-")]
            )
        else:
            flags = [flag]
        meta = _meta(field.value, sources)
        flags = meta.get("arg_names", flags)
        if isinstance(meta.get("choices"), list):
            words, is_open = meta["choices"], False
        if meta.get("nargs") in ("+", "*"):
            kind = "list"
        if meta.get("action") in ("store_true", "store_false"):
            kind = "flag"
        found[flags[0]] = option(
            kind, words, UNREAD if kind == "flag" else default, flags[1:], is_open=is_open
        )
    return found


def _meta(node: ast.expr | None, sources: Sources) -> dict[str, Any]:
    """What a field says of its argument beside its type."""
    said = {word.arg: word.value for word in node.keywords} if isinstance(node, ast.Call) else {}
    inner = said.get("metadata")
    if not isinstance(inner, ast.Dict):
        return {}
    made = dict(zip((sources.value(key) for key in inner.keys), inner.values, strict=True)).get(
        "argparse_meta"
    )
    if not isinstance(made, ast.Dict):
        return {}
    return {
        sources.value(key): sources.value(value) for key, value in zip(made.keys, made.values, strict=True)
    }


def torchtitan(root: Path) -> tuple[Options, dict[str, Any]]:
    """The job file, by section and key; and the models it has by name, each with its sizes."""
    sources = Sources(root, ("torchtitan/config/job_config.py",))
    models = Sources(root, ("torchtitan/models/*/__init__.py",))
    flavours: dict[str, Any] = {}
    for path, tree in models.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                flavours |= _flavours(node, Path(path).parent.name)
    return keys("JobConfig", "", sources), flavours


def _flavours(table: ast.Dict, model: str) -> dict[str, Any]:
    found = {}
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Call):
            sizes = {
                word.arg: word.value.value for word in value.keywords if isinstance(word.value, ast.Constant)
            }
            if {"dim", "n_layers"} <= set(sizes):
                kept = (
                    "dim",
                    "n_layers",
                    "n_heads",
                    "n_kv_heads",
                    "vocab_size",
                    "hidden_dim",
                    "inter_dim",
                    "attn_type",
                )
                found[f"{model}/{key.value}"] = {name: sizes[name] for name in kept if name in sizes}
    return found


TABLES = {
    "zero_optimization": "DeepSpeedZeroConfig", "bf16": "DeepSpeedBF16Config", "fp16": "DeepSpeedFP16Config",
    "tensor_parallel": "TPTrainingConfig",
}  # fmt: skip


def deepspeed(root: Path) -> Options:
    """The configuration file: tables that are classes, and what the reader looks up by name in the rest."""
    sources = Sources(
        root, ("deepspeed/runtime/config.py", "deepspeed/runtime/constants.py", "deepspeed/runtime/zero/*config.py",
               "deepspeed/runtime/precision_config.py", "deepspeed/runtime/tensor_parallel/config.py",
               "deepspeed/runtime/activation_checkpointing/config.py", "deepspeed/runtime/zenflow/*config.py"),
    )  # fmt: skip
    found: Options = {}
    for table, name in TABLES.items():
        found |= keys(name, f"{table}.", sources, 1)
    for file, before in (
        ("runtime/config.py", ""),
        ("activation_checkpointing/config.py", "activation_checkpointing."),
    ):
        for path, tree in sources.trees.items():
            if path.endswith(file):
                found |= _looked_up(tree, before, sources)
    return found


def _looked_up(tree: ast.Module, before: str, sources: Sources) -> Options:
    """`get_scalar_param(table, NAME, DEFAULT)`: keys of the table that the file itself is."""
    found: Options = {}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id == "get_scalar_param" and len(call.args) == 3:
            table, key, default = call.args[0], sources.value(call.args[1]), sources.value(call.args[2])
            whole = isinstance(table, ast.Name) and table.id == (
                "param_dict" if not before else "act_chkpt_config_dict"
            )
            if whole and isinstance(key, str):
                kinds = {bool: "flag", int: "int", float: "float", str: "text"}
                found[f"{before}{key}"] = option(kinds.get(type(default), "any"), [], default)
    return found
