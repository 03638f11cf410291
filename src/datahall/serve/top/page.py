"""A page of metrics in the text format of Prometheus, read into numbers by name and labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


class Sample(NamedTuple):
    """A number with its labels."""

    labels: Mapping[str, str]
    value: float


Page: TypeAlias = Mapping[str, list[Sample]]


def read_page(text: str) -> Page:
    r"""Every number of a page by its name; lines that are none are passed over.

    >>> read_page('# TYPE up gauge\nup{job="a \\"b\\""} 1\n')
    {'up': [Sample(labels={'job': 'a "b"'}, value=1.0)]}
    """
    page: dict[str, list[Sample]] = {}
    for name, sample in _samples(text):
        page.setdefault(name, []).append(sample)
    return page


def _samples(text: str) -> Iterator[tuple[str, Sample]]:
    for line in text.split("\n"):
        found = None if line.startswith("#") else _SAMPLE.fullmatch(line.rstrip("\r"))
        if found is None:
            continue
        name, labels, said = found.groups()
        try:
            value = float(said)
        except ValueError:
            continue
        yield name, Sample({key: _plain(label) for key, label in _LABEL.findall(labels or "")}, value)


def _plain(label: str) -> str:
    return re.sub(r'\\[\\"n]', lambda found: _ESCAPED[found[0]], label)
