"""Options of serving engines, as their own parsers declare them: configuration classes of each, and command lines."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from option import of_argparse, of_click
from syntax import UNREAD, Sources, keys, option

Options = dict[str, dict[str, Any]]


def vllm(root: Path) -> Options:
    """`vllm serve`: what `add_cli_args` makes of the fields of configuration classes, and those of its front end."""
    sources = Sources(
        root, ("vllm/config/*.py", "vllm/engine/arg_utils.py", "vllm/entrypoints/**/cli_args.py", "vllm/entrypoints/cli/serve.py",
               "vllm/model_executor/layers/quantization/__init__.py"),
    )  # fmt: skip
    tables = _tables(sources)
    found: Options = {}
    for call in sources.calls("add_argument", within="arg_utils.py"):
        flags = [one.value for one in call.args if isinstance(one, ast.Constant)]
        made = next((word.value for word in call.keywords if word.arg is None), None)
        field = _looked_up(made, tables)
        if field is not None and flags:
            found[flags[0]] = {**_of_field(field, sources), **({"aliases": flags[1:]} if flags[1:] else {})}
        elif (one := of_argparse(call, sources)) is not None:
            found[one[0]] = one[1]
    found |= keys("SpeculativeConfig", "--speculative-config.", sources, 0)
    for field in sources.fields("FrontendArgs"):
        assert isinstance(field.target, ast.Name)
        found["--" + field.target.id.replace("_", "-")] = _of_field(field, sources)
    for file in ("cli_args.py", "cli/serve.py"):
        found |= dict(
            one for call in sources.calls("add_argument", within=file) if (one := of_argparse(call, sources))
        )
    return found


def _tables(sources: Sources) -> dict[str, dict[str, ast.AnnAssign]]:
    """The fields behind names as in `model_kwargs = get_kwargs(ModelConfig)`."""
    found: dict[str, dict[str, ast.AnnAssign]] = {}
    for node in ast.walk(sources.trees["vllm/engine/arg_utils.py"]):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        called, target = node.value.func, node.targets[0]
        if isinstance(called, ast.Name) and called.id == "get_kwargs" and isinstance(target, ast.Name):
            of = node.value.args[0]
            assert isinstance(of, ast.Name)
            found[target.id] = {one.target.id: one for one in sources.fields(of.id)}  # type: ignore[union-attr]
    return found


def _looked_up(made: ast.expr | None, tables: dict[str, dict[str, ast.AnnAssign]]) -> ast.AnnAssign | None:
    """The field behind `**model_kwargs["dtype"]`, also where something is put beside it."""
    for node in ast.walk(made) if made is not None else ():
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and isinstance(node.slice, ast.Constant)
        ):
            field = tables.get(node.value.id, {}).get(node.slice.value)  # type: ignore[arg-type]
            if field is not None:
                return field
    return None


def _of_field(field: ast.AnnAssign, sources: Sources) -> dict[str, Any]:
    kind, words, is_open = sources.kind(field.annotation)
    default = sources.value(field.value) if field.value is not None else UNREAD
    return option("switch" if kind == "flag" else kind, words, default, is_open=is_open)


def sglang(root: Path) -> Options:
    """`python -m sglang.launch_server`: every field that is annotated with its help or an `Arg`."""
    sources = Sources(
        root,
        ("sglang/srt/arg_groups/**/*.py", "sglang/srt/server_args.py", "sglang/srt/speculative/spec_info.py"),
    )
    found: Options = {}
    for path, tree in sources.trees.items():
        if "/fields/" in path:
            for node in ast.walk(tree):
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    found |= _of_arg(node, node.target.id, sources)
    found |= dict(
        one
        for call in sources.calls("add_argument", within="server_args.py")
        if (one := of_argparse(call, sources))
    )
    words = [
        node.targets[0].id
        for node in sources.classes["SpeculativeAlgorithm"].body
        if isinstance(node, ast.Assign)
    ]  # type: ignore[union-attr]
    found["--speculative-algorithm"]["known"] = words
    return found


def _of_arg(node: ast.AnnAssign, name: str, sources: Sources) -> Options:
    hint = node.annotation
    if not (isinstance(hint, ast.Subscript) and isinstance(hint.value, ast.Name) and hint.value.id == "A"):
        return {}
    assert isinstance(hint.slice, ast.Tuple)
    inner, *about = hint.slice.elts
    said: dict[str | None, ast.expr] = {}
    for one in about:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            if one.func.id == "Derived":
                return {}
            said |= {word.arg: word.value for word in one.keywords}
    if sources.value(said.get("no_cli")) is True:
        return {}
    kind, words, is_open = sources.kind(inner)
    chosen = sources.value(said["choices"]) if "choices" in said else UNREAD
    words, is_open = (chosen, False) if isinstance(chosen, list) else (words, is_open)
    action = sources.value(said.get("action"))
    if "action" in said:
        kind = "flag" if action in ("store_true", "store_false") else "switch" if kind == "flag" else kind
    named = sources.value(said.get("cli_name"))
    aliases = sources.value(said.get("aliases"))
    flag = named if isinstance(named, str) else "--" + name.replace("_", "-")
    default = sources.value(node.value) if node.value is not None else UNREAD
    return {flag: option(kind, words, default, aliases if isinstance(aliases, list) else [], is_open=is_open)}


def trtllm(root: Path) -> Options:
    """`trtllm-serve serve`, and the keys of the file behind its `--config`: those of the PyTorch backend."""
    sources = Sources(root, ("tensorrt_llm/llmapi/llm_args.py", "tensorrt_llm/lora_helper.py"))
    found = keys("TorchLlmArgs", "", sources, 2)
    drafting = "speculative_config."
    private = {name for name in found if "_" in {part[0] for part in name.split(".")}}
    found = {
        name: one for name, one in found.items() if not name.startswith(drafting) and name not in private
    }
    kinds = _dispatched(sources, "DecodingBaseConfig")
    for name in kinds.values():
        more = keys(name, drafting, sources, 0)
        found |= {key: one for key, one in more.items() if not key.startswith(f"{drafting}_")}
    found[f"{drafting}decoding_type"] = option("text", list(kinds), None)
    commands = Sources(root, ("tensorrt_llm/commands/serve.py",))
    served = commands.functions["serve"]
    return found | dict(
        one for call in served.decorator_list if (one := of_click(call, commands)) is not None
    )


def _dispatched(sources: Sources, name: str) -> dict[str, str]:
    """The class behind each word by which one of several is chosen, as `from_dict` of their base has them."""
    for node in ast.walk(sources.classes[name]):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return {
                word.value: one.id
                for word, one in pairs
                if isinstance(word, ast.Constant) and isinstance(one, ast.Name)
            }
    raise SystemExit(f"{name} chooses among no classes")
