"""What a server shows in the text format of Prometheus, read again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


class Shown(NamedTuple):
    """One line: a number of a name, with its labels."""

    name: str
    labels: Mapping[str, str]
    value: float


def shown(text: str) -> Iterator[Shown]:
    """Every number of a page.

    >>> next(shown('up{job="a"} 1'))
    Shown(name='up', labels={'job': 'a'}, value=1.0)
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        found = _SAMPLE.fullmatch(line)
        assert found is not None, f"line {number} is no metric: {line[:80]!r}"
        name, labels, value = found.groups()
        yield Shown(name, {key: _plain(label) for key, label in _LABEL.findall(labels or "")}, float(value))


def _plain(label: str) -> str:
    return re.sub(r'\\[\\"n]', lambda found: _ESCAPED[found[0]], label)
