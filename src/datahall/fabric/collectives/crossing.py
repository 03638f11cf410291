"""The least bytes that a collective moves out of a part of its ranks, and the time that the way out needs for them.

    T ≥ bytes that leave / bandwidth out

n ranks, of which m are in the part, k parts.  No algorithm that adds at the ranks moves less: an all-reduce
makes k − 1 partial sums leave their part and k − 1 copies of the result come back, 2(k−1)/k · S a part.

Reference: Patarasuk and Yuan, 2009 (all-reduce); the others count what has to be on the other side in the end.
"""

from __future__ import annotations

import numpy as np

from datahall.fabric.collectives.algorithms.bus import Floats, Number
from datahall.fabric.collectives.system import System
from datahall.fabric.topology.cuts import Cut
from datahall.scenario.words import Collective


def crossing_share(collective: Collective, num_ranks: int, cut: Cut) -> float:
    """Return the bytes that leave a part of the ranks, over the size of the array.

    >>> half = Cut(name="half", num_below=512, num_full=512, bytes_per_s=1e12, link_bytes_per_s=50e9)
    >>> [crossing_share(kind, 1024, half) for kind in ("all-reduce", "all-to-all", "all-gather", "broadcast")]
    [1.0, 256.0, 0.5, 1.0]
    """
    below, full = min(cut.num_below, num_ranks), min(cut.num_full, num_ranks)
    outside = (num_ranks - below) / num_ranks
    if collective == "barrier" or outside == 0.0:
        return 0.0
    if collective == "all-reduce":
        parts = -(-num_ranks // full)
        return 2.0 * (parts - 1) / parts
    if collective == "all-to-all":
        return below * outside
    return outside if collective in {"all-gather", "reduce-scatter"} else 1.0


def crossed(system: System, num_ranks: int) -> tuple[Cut, ...]:
    """The narrow places that a group of so many ranks crosses."""
    return tuple(cut for cut in system.cuts if cut.num_full < num_ranks)


def crossing_s(collective: Collective, size_bytes: Number, num_ranks: int, cut: Cut) -> Number:
    """Return the time [s] that the bytes which must leave a part need.

    >>> leaf = Cut(name="leaf", num_below=63, num_full=63, bytes_per_s=50e9, link_bytes_per_s=50e9)
    >>> round(crossing_s("all-reduce", 1e9, 1024, leaf) * 1e3, 1)
    37.6
    """
    return crossing_share(collective, num_ranks, cut) * size_bytes / cut.bytes_per_s


def least_s(system: System, collective: Collective, size_bytes: Floats, num_ranks: int) -> Floats:
    """Return the time [s] that no algorithm on this machine can go below."""
    least = np.zeros(np.shape(size_bytes))
    for cut in crossed(system, num_ranks):
        least = np.maximum(least, crossing_s(collective, size_bytes, num_ranks, cut))
    return least


def leaving_bytes_per_s(system: System, num_ranks: int) -> float:
    """What each rank gets of the network when all send evenly to all outside their domains [B/s]: its port, or less.

    Of what n ranks in domains of d send over the network, (n − m)/(n − d) leaves a part of m of them.  Ranks of
    several domains that no network joins are an `InfeasibleError`.
    """
    inside, _ = system.shape(num_ranks)
    network = num_ranks - inside
    rates = [system.nic_bytes_per_s]
    for cut in crossed(system, num_ranks):
        leaving = cut.num_below * (num_ranks - cut.num_below) / network if network else 0.0
        rates += [cut.bytes_per_s / leaving] if leaving > 0 else []
    return min(rates)
