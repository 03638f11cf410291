"""Algorithm and bus bandwidth with the definitions of nccl-tests.

busbw = algbw · factor(collective, n), so that a perfect ring shows the speed of its slowest link whatever n is.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.scenario.words import COLLECTIVES, Collective

__all__ = [
    "COLLECTIVES", "Collective", "Floats", "Number", "algorithm_bandwidth", "bus_bandwidth", "bus_factor",
]  # fmt: skip

Floats: TypeAlias = NDArray[np.float64]
Number: TypeAlias = float | Floats


def bus_factor(collective: Collective, num_ranks: Number) -> Number:
    """Return bus bandwidth over algorithm bandwidth.

    all-reduce 2(n−1)/n; all-gather, reduce-scatter, all-to-all (n−1)/n; otherwise 1.

    Reference: nccl-tests, doc/PERFORMANCE.md.

    >>> bus_factor("all-reduce", 8.0), bus_factor("all-gather", 8.0), bus_factor("broadcast", 8.0)
    (1.75, 0.875, 1.0)
    """
    passes = MOVES[collective].num_bus_passes
    return passes * (num_ranks - 1.0) / num_ranks if passes else num_ranks / num_ranks


def algorithm_bandwidth(size_bytes: Number, time_s: Number) -> Number:
    """Return algbw [B/s], the size of the whole array over the time.

    >>> algorithm_bandwidth(1e9, 5e-3)
    200000000000.0
    """
    return size_bytes / time_s


def bus_bandwidth(collective: Collective, size_bytes: Number, time_s: Number, num_ranks: Number) -> Number:
    """Return busbw [B/s].

    >>> bus_bandwidth("all-reduce", 1e9, 5e-3, 8.0)
    350000000000.0
    """
    return algorithm_bandwidth(size_bytes, time_s) * bus_factor(collective, num_ranks)
