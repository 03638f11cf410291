"""YAML in blocks, with quotes around texts that could be read as something else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from datahall.planner.artefacts.options import Value

PLAIN = re.compile(r"[A-Za-z/][\w./-]*")
OTHER_THINGS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def yaml(value: Value | Mapping[str, Value | None]) -> str:
    """A value as a document; None is null.

    >>> print(yaml({"a": {"b": [1, "two words"], "c": True}, "d": [{"e": "on", "f": {}}]}), end="")
    a:
      b:
        - 1
        - "two words"
      c: true
    d:
      - e: "on"
        f: {}
    """
    return "\n".join(_lines(value)) + "\n"


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list) and inner:
                yield f"{_scalar(key)}:"
                yield from (f"  {line}" for line in _lines(inner))
            else:
                yield f"{_scalar(key)}: {_scalar(inner)}"
    elif isinstance(value, list):
        for inner in value:
            first, *others = _lines(inner)
            yield f"- {first}"
            yield from (f"  {line}" for line in others)
    else:
        yield _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in OTHER_THINGS:
        return value
    return json.dumps(value)
