"""TOML of tables whose values are plain."""

from __future__ import annotations

import json

from datahall.planner.artefacts.options import Value


def toml(tables: dict[str, Value]) -> str:
    """Tables as a file.

    >>> print(toml({"a": {"x": 1, "y": ["b"], "z": True}, "c": {"d": {"e": "f"}}}), end="")
    [a]
    x = 1
    y = ["b"]
    z = true
    <BLANKLINE>
    [c.d]
    e = "f"
    """
    return "\n".join(_table("", tables)).lstrip("\n") + "\n"


def _table(name: str, table: dict[str, Value]) -> list[str]:
    own = [f"{key} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, dict)]
    lines = ["", f"[{name}]", *own] if own else []
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _table(f"{name}.{key}" if name else key, value)
    return lines
