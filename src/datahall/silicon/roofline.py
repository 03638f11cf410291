"""The roofline: no operator runs faster than its arithmetic at peak or its bytes at full bandwidth."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.workload.operator import Number


class BoundTimes(msgspec.Struct, frozen=True):
    """The time of a kernel, and what its arithmetic and its traffic alone would take, as columns."""

    time_s: Number
    compute_s: Number
    memory_s: Number


def roofline_time(
    flop: Number, moved_bytes: Number, peak_flop_per_s: float, memory_bytes_per_s: float
) -> Number:
    """Least time of an operator on one chip [s].

    Parameters: flop, its arithmetic [FLOP]; moved_bytes, its traffic to main memory [B];
    peak_flop_per_s [FLOP/s] and memory_bytes_per_s [B/s], the chip's datasheet.

        t = max(flop / peak, bytes / bandwidth)

    Reference: Williams, Waterman, Patterson (2009), Roofline.

    >>> round(roofline_time(2 * 16 * 6144 * 4096, 6144 * 4096 * 2, 989.4e12, 4.8e12) * 1e6, 3)
    10.486
    """
    time: Number = np.maximum(flop / peak_flop_per_s, moved_bytes / memory_bytes_per_s)
    return float(time) if isinstance(time, np.float64) else time


def ridge_intensity(peak_flop_per_s: float, memory_bytes_per_s: float) -> float:
    """Arithmetic per byte above which a chip is limited by its arithmetic [FLOP/B].

    >>> round(ridge_intensity(989.4e12, 4.8e12))
    206
    """
    return peak_flop_per_s / memory_bytes_per_s
