"""Options set for a tool, each looked up in what its release declares: a wrong one is our error, not the user's."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from datahall.catalog.entries.tool import Tool, ToolOption


class Shell(str):
    """A value that the shell computes, such as "$MODEL", written as it is."""


Value: TypeAlias = "str | int | float | bool | Sequence[Value] | Mapping[str, Value]"
Options: TypeAlias = "Mapping[str, Value | None]"  # None: as the tool has it anyway

TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float, int), "text": (str,), "flag": (bool,), "switch": (bool,), "list": (list,),
    "json": (dict,), "optional": (str, bool), "any": (str, int, float, bool, list, dict),
}  # fmt: skip


class UnknownOption(RuntimeError):
    """An option that the stated release does not have, or not so: the facts changed, or we are wrong."""


def checked(tool: Tool, name: str, value: Value) -> ToolOption:
    """The declaration of an option that may have this value."""
    known = tool.options.get(name)
    if known is None:
        raise UnknownOption(f"{tool.title} {tool.release} has no {name}")
    is_number = isinstance(value, bool) and known.type in ("int", "float")
    if not isinstance(value, Shell) and (is_number or not isinstance(value, TYPES[known.type])):
        raise UnknownOption(f"{name} of {tool.title} {tool.release} is {known.type}, not {value!r}")
    if known.words and not isinstance(value, Shell | list) and value not in known.words:
        raise UnknownOption(f"{name} of {tool.title} {tool.release} is one of {known.words}, not {value!r}")
    return known


def words_of(tool: Tool, options: Options) -> list[str]:
    """Options as a shell has them, one to a line.

    >>> from datahall.catalog.entries.tool import tool
    >>> words_of(tool("vllm"), {"--tensor-parallel-size": 4, "--enable-prefix-caching": False, "--dtype": None})
    ['--tensor-parallel-size 4', '--no-enable-prefix-caching']
    """
    return [
        word for name, value in options.items() if value is not None and (word := _word(tool, name, value))
    ]


def _word(tool: Tool, name: str, value: Value) -> str:
    known = checked(tool, name, value)
    if isinstance(value, bool):
        negated = f"--no-{name.removeprefix('--')}" if known.type == "switch" else ""
        return name if value else negated
    return f"{name} {_text(value)}"


def _text(value: Value) -> str:
    if isinstance(value, Shell):
        return value
    if isinstance(value, list):
        return " ".join(shlex.quote(str(one)) for one in value)
    if isinstance(value, dict):
        return shlex.quote(json.dumps(value))
    return shlex.quote(str(value))


def tables_of(tool: Tool, options: Options) -> dict[str, Value]:
    """Options of a file, whose names are keys joined by dots, as tables within tables."""
    whole: dict[str, Value] = {}
    for name, value in options.items():
        if value is None:
            continue
        checked(tool, name, value)
        table = whole
        *path, last = name.split(".")
        for key in path:
            inner = table.setdefault(key, {})
            assert isinstance(inner, dict)
            table = inner
        table[last] = value
    return whole
