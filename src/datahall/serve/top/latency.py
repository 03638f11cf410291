"""A latency as a histogram has it: how many lie below each bound, and where some share of them ends."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from datahall.serve.top.page import Sample


class Latency(msgspec.Struct, frozen=True):
    """How many observations are at most each bound, in the order of the bounds, of which the last is endless."""

    num_below: tuple[tuple[float, float], ...] = ()  # bound in seconds, count

    @classmethod
    def of(cls, buckets: Iterable[Sample]) -> Latency:
        """Put histograms of several labels together."""
        counts: dict[float, float] = {}
        for labels, count in buckets:
            bound_s = float(labels["le"])
            counts[bound_s] = counts.get(bound_s, 0.0) + count
        return cls(tuple(sorted(counts.items())))

    def since(self, before: Latency) -> Latency:
        """What was observed after another look."""
        was = dict(before.num_below)
        return Latency(tuple((bound_s, count - was.get(bound_s, 0.0)) for bound_s, count in self.num_below))

    @property
    def num(self) -> float:
        return self.num_below[-1][1] if self.num_below else 0.0

    def at(self, fraction: float) -> float | None:
        """Where a share of the observations ends, taken to lie evenly between two bounds.

        Beyond the last bound that has an end it is that bound, as nothing is known of it but that it is more.

        >>> Latency(((0.1, 0.0), (0.2, 10.0), (float("inf"), 10.0))).at(0.5)
        0.15000000000000002
        """
        if self.num <= 0:
            return None
        rank = fraction * self.num
        for (low_s, fewer), (high_s, more) in pairwise(((0.0, 0.0), *self.num_below)):
            if more >= rank and more > fewer:
                if high_s == float("inf"):
                    return low_s
                return low_s + (high_s - low_s) * (rank - fewer) / (more - fewer)
        return None
