"""The way between two chips of a fabric that are far apart: its latency and the port at its ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.fabric.design.design import Design
from datahall.fabric.routing.paths import route
from datahall.fabric.topology.graph import Fabric, Ints

SAMPLES = 4096  # pairs of chips that a median is taken over


class Path(NamedTuple):
    """A usual way through a fabric."""

    latency_s: float  # one way, cables and switches alone
    port_bytes_per_s: float
    num_links: float
    note: str

    @property
    def round_trip_s(self) -> float:
        """There and back, without the hosts [s]."""
        return 2.0 * self.latency_s


def usual_path(made: Design, rng: np.random.Generator) -> Path:
    """The median way between chips that the network joins, those of one scale-up domain left out."""
    fabric = made.fabric
    source, target = pairs(fabric, rng)
    paths = route(fabric, source, target)
    latency_s = np.bincount(paths.owners(), fabric.link_latency_s[paths.links], source.size)
    links = np.diff(paths.offsets)
    return Path(
        float(np.median(latency_s)),
        made.injection_bytes_per_s,
        float(np.median(links)),
        f"over {np.median(links):.0f} links, the median of pairs",
    )


def pairs(fabric: Fabric, rng: np.random.Generator, most: int = SAMPLES) -> tuple[Ints, Ints]:
    """Pairs of chips in two domains, drawn at random; all chips send once where there are no more than `most`."""
    num = fabric.num_hosts
    source = rng.permutation(num)[:most].astype(np.int32)
    target = ((source + rng.integers(1, num, source.size)) % num).astype(np.int32)
    apart = fabric.domain[source] != fabric.domain[target]
    return source[apart], target[apart]
