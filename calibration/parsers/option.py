"""One option as a release of a tool declares it, and the facts file that holds them."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from syntax import Sources, option

SHIPPED = Path(__file__).parents[2] / "src/datahall/catalog/data/tools"
OF_ARGPARSE = {"int": "int", "float": "float", "str": "text", "bool": "text"}


def of_argparse(call: ast.Call, sources: Sources) -> tuple[str, dict[str, Any]] | None:
    """A call of `add_argument` whose words stand in the source; None where they are positional or made elsewhere."""
    flags = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    long = [flag for flag in flags if flag.startswith("--")]
    if not long:
        return None
    said = {word.arg: word.value for word in call.keywords if word.arg}
    action = sources.value(said["action"]) if "action" in said else ""
    typed = said["type"].id if isinstance(said.get("type"), ast.Name) else "str"
    kind = OF_ARGPARSE.get(typed, "text")
    if action in ("store_true", "store_false", "store_const", "count"):
        kind = "flag"
    elif isinstance(said.get("action"), ast.Attribute) and said["action"].attr == "BooleanOptionalAction":  # type: ignore[attr-defined]
        kind = "switch"
    elif "nargs" in said and sources.value(said["nargs"]) in ("+", "*"):
        kind = "list"
    words = sources.value(said.get("choices")) if "choices" in said else []
    default = sources.value(said.get("default"))
    others = [flag for flag in flags if flag != long[0]]
    return long[0], option(kind, words if isinstance(words, list) else [], default, others)


def of_click(call: ast.expr, sources: Sources) -> tuple[str, dict[str, Any]] | None:
    """A decorator `@click.option(…)`; None where it is another one, or a positional argument."""
    if not (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "option"
    ):
        return None
    flags = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    long = [flag for flag in flags if flag.startswith("--")]
    if not long:
        return None
    said = {word.arg: word.value for word in call.keywords if word.arg}
    typed = said.get("type")
    kind = OF_ARGPARSE.get(typed.id, "text") if isinstance(typed, ast.Name) else "text"
    if sources.value(said.get("is_flag")) is True:
        kind = "flag"
    elif sources.value(said.get("multiple")) is True:
        kind = "list"
    words = sources.value(typed.args[0]) if isinstance(typed, ast.Call) and typed.args else []
    default = sources.value(said["default"]) if "default" in said else None
    return long[0], option(kind, words if isinstance(words, list) else [], default, long[1:])


def write(
    name: str,
    title: str,
    release: str,
    parser: str,
    date: str,
    options: dict[str, dict[str, Any]],
    **more: Any,
) -> None:
    """The facts file of a tool, an option a line."""
    head = {
        "name": name,
        "title": title,
        "release": release,
        "source": {"title": parser, "date": date},
        **more,
    }
    lines = [f'  "{key}": {json.dumps(value)},' for key, value in head.items()]
    inner = [f"    {json.dumps(key)}: {json.dumps(options[key])}" for key in sorted(options)]
    text = "\n".join(["{", *lines, '  "options": {', ",\n".join(inner), "  }", "}", ""])
    SHIPPED.mkdir(parents=True, exist_ok=True)
    (SHIPPED / f"{name}.json").write_text(text)
    print(f"{name} {release}: {len(options)} options")
