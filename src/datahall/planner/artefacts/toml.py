"""TOML of tables whose values are plain."""

from __future__ import annotations

import json
import re

from datahall.planner.artefacts.options import Value

BARE = re.compile(r"[A-Za-z0-9_-]+")  # keys that need no quotation marks


def toml(tables: dict[str, Value]) -> str:
    """Tables as a file.

    >>> print(toml({"a": {"x": 1, "y": [{"b": 2.5}], "z": True}, "c": {"d.e": {"f": "g"}}}), end="")
    [a]
    x = 1
    y = [{ b = 2.5 }]
    z = true
    <BLANKLINE>
    [c."d.e"]
    f = "g"
    """
    return "\n".join(_table("", tables)).lstrip("\n") + "\n"


def _table(name: str, table: dict[str, Value]) -> list[str]:
    own = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    lines = ["", f"[{name}]", *own] if own else []
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _table(f"{name}.{_key(key)}" if name else _key(key), value)
    return lines


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else json.dumps(key)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)
