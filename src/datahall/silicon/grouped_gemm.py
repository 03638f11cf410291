"""How long the experts of a mixture take: one GEMM per expert in one kernel.

    memory  = weights of the experts hit / (bandwidth · efficiency)
    compute = 2 · padded rows · n · k / (peak · power_efficiency)
    time    = launch + (memory^p + compute^p)^(1/p)

A kernel handles each expert's rows in blocks of `tile_rows`, so a few tokens per expert cost a whole
block; blocks
smaller than that also stream weights at a lower rate.
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.silicon.attention import smooth_max
from datahall.silicon.roofline import BoundTimes
from datahall.workload.operator import GroupedGemm, Number


class GroupedConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a grouped or batched GEMM."""

    launch_s: float
    memory_efficiency: float  # weights streamed for full blocks of rows
    small_memory_efficiency: float  # and for less than a block per expert
    power_efficiency: float
    tile_rows: float
    pad_rows: float  # rows of one expert are padded to a multiple of this
    ridge_sharpness: float


def grouped_times(
    shape: GroupedGemm,
    experts_hit: Number,
    constants: GroupedConstants,
    *,
    peak_flop_per_s: float,
    memory_bytes_per_s: float,
    weight_bytes: float,
    activation_bytes: float,
    output_bytes: float,
) -> BoundTimes:
    """Times of a grouped GEMM whose rows reach `experts_hit` of its experts."""
    hit = np.maximum(1.0, experts_hit)
    rows_each = np.asarray(shape.rows) / hit
    padded = np.ceil(rows_each / constants.pad_rows) * constants.pad_rows * hit
    full = rows_each >= constants.tile_rows
    efficiency = np.where(full, constants.memory_efficiency, constants.small_memory_efficiency)
    moved = hit * shape.n * shape.k * weight_bytes + shape.rows * (
        shape.k * activation_bytes + shape.n * output_bytes
    )
    memory_s = moved / (memory_bytes_per_s * efficiency)
    compute_s = 2.0 * padded * shape.n * shape.k / (peak_flop_per_s * constants.power_efficiency)
    return BoundTimes(
        constants.launch_s + smooth_max(compute_s, memory_s, constants.ridge_sharpness), compute_s, memory_s
    )
