"""Counters, gauges and histograms in the text format of Prometheus.

A child is bound to its labels once, and counting is an addition to it: no look-up, no lock, no call where one number
is added.  A family has so many children and no more; who comes later is counted as "other".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

Labels: TypeAlias = tuple[str, ...]
Sample: TypeAlias = tuple[Labels, float]
OTHER = "other"
MOST_CHILDREN = 1000
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Count:
    """A number that a family shows; who counts adds to `value`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Distribution:
    """How many observations lie below each bound."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


class Family:
    """What all metrics of one name have in common."""

    kind: Literal["counter", "gauge", "histogram"]

    def __init__(self, name: str, about: str, labels: Labels = ()) -> None:
        self.name = name
        self.about = about
        self.labels = labels

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def _line(self, labels: Labels, value: float, suffix: str = "", more: str = "") -> str:
        said = ",".join(
            [f'{name}="{_escaped(label)}"' for name, label in zip(self.labels, labels, strict=True)]
            + ([more] if more else [])
        )
        return (
            f"{self.name}{suffix}{{{said}}} {_number(value)}"
            if said
            else f"{self.name}{suffix} {_number(value)}"
        )


class Counter(Family):
    """What only grows; `unit` is what one of its whole numbers is worth."""

    kind = "counter"

    def __init__(
        self, name: str, about: str, labels: Labels = (), unit: float = 1.0, most: int = MOST_CHILDREN
    ) -> None:
        super().__init__(name, about, labels)
        self._unit = unit
        self._most = most
        self._children: dict[Labels, Count] = {}

    def of(self, *labels: str) -> Count:
        """The child of some labels, or that of all others where there are too many."""
        child = self._children.get(labels)
        if child is None:
            if len(self._children) >= self._most:
                labels = (OTHER,) * len(labels)
            child = self._children.setdefault(labels, Count())
        return child

    def lines(self) -> Iterator[str]:
        for labels, child in self._children.items():
            yield self._line(labels, child.value * self._unit if self._unit != 1.0 else child.value)


class Histogram(Family):
    """How something is distributed, between bounds."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        about: str,
        bounds: Sequence[float],
        labels: Labels = (),
        most: int = MOST_CHILDREN,
    ) -> None:
        super().__init__(name, about, labels)
        self._bounds = tuple(bounds)
        self._most = most
        self._children: dict[Labels, Distribution] = {}

    def of(self, *labels: str) -> Distribution:
        """The child of some labels, or that of all others where there are too many."""
        child = self._children.get(labels)
        if child is None:
            if len(self._children) >= self._most:
                labels = (OTHER,) * len(labels)
            child = self._children.setdefault(labels, Distribution(self._bounds))
        return child

    def lines(self) -> Iterator[str]:
        for labels, child in self._children.items():
            below = 0
            for bound, count in zip((*self._bounds, float("inf")), child.counts, strict=True):
                below += count
                yield self._line(labels, below, "_bucket", f'le="{_number(bound)}"')
            yield self._line(labels, child.total, "_sum")
            yield self._line(labels, below, "_count")


class Read(Family):
    """What somebody else counts, asked when it is shown."""

    def __init__(
        self,
        name: str,
        about: str,
        read: Callable[[], Iterable[Sample]],
        labels: Labels = (),
        kind: Literal["counter", "gauge"] = "gauge",
    ) -> None:
        super().__init__(name, about, labels)
        self.kind = kind
        self._read = read

    def lines(self) -> Iterator[str]:
        for labels, value in self._read():
            yield self._line(labels, value)


def exposed(families: Iterable[Family]) -> bytes:
    """All of some families as a scraper reads them."""
    lines: list[str] = []
    for family in families:
        lines += (
            f"# HELP {family.name} {family.about}",
            f"# TYPE {family.name} {family.kind}",
            *family.lines(),
        )
    return ("\n".join(lines) + "\n").encode()


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(value) if isinstance(value, int) else repr(value)
