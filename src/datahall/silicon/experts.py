"""How long the experts of a mixture take under a serving engine: one product per expert hit, in one kernel.

The kernel cuts each expert's rows into blocks of one height out of a short menu and takes the one that ends first;
a block loads its weights whatever rows it holds, and uneven rows leave half a block empty per expert:

    blocks  = hit · max(1, rows each / height + ½)
    tiles   = blocks · ⌈n / 128⌉
    compute = max(tiles / num_sms, 1) · (k · max(math, feed) + tile_s)
    memory  = (weights of the experts hit + rows in and out) / (bandwidth · efficiency)
    time    = launch + (memory^p + compute^p)^(1/p)

Some libraries pick another kernel once an expert has `tile_rows` rows, which streams weights at another rate.
Routing is uneven: from half as many rows in the mean to twice as many, ever more experts have them.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from datahall.silicon.attention import smooth_max
from datahall.silicon.grouped_gemm import moved_bytes, streamed_fraction
from datahall.silicon.roofline import BoundTimes
from datahall.workload.operator import GroupedGemm, Number

FULL_IF_UNEVEN = 2.0  # tiles, in rows of the mean expert: routers feed them unevenly
HEIGHTS = (16.0, 32.0, 64.0, 128.0, 256.0)
TILE_COLUMNS = 128.0


class ExpertConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What limits the experts' kernel of one engine in one number format."""

    launch_s: float  # of each of the two products, what surrounds them included
    memory_efficiency: float  # of weights streamed for experts with `tile_rows` rows
    small_memory_efficiency: float  # and with fewer
    tile_rows: float
    power_efficiency: float
    feed_bytes_per_s: float  # operands into one multiprocessor
    tile_s: float  # start and end of one tile
    ridge_sharpness: float


def expert_times(
    shape: GroupedGemm,
    experts_hit: Number,
    constants: ExpertConstants,
    *,
    num_sms: float,
    peak_flop_per_s: float,
    memory_bytes_per_s: float,
    weight_bytes: float,
    activation_bytes: float,
    output_bytes: float,
) -> BoundTimes:
    """Times of one product over the `experts_hit` experts that some row reaches."""
    hit = np.maximum(1.0, experts_hit)
    rows_each = np.asarray(shape.rows, dtype=np.float64) / hit
    moved = moved_bytes(shape, hit, weight_bytes, activation_bytes, output_bytes)
    memory_s = moved / (memory_bytes_per_s * streamed_fraction(rows_each, constants, until=FULL_IF_UNEVEN))
    across = np.ceil(np.asarray(shape.n) / TILE_COLUMNS)
    operand_bytes = max(weight_bytes, activation_bytes)
    compute_s: Number = math.inf
    for height in HEIGHTS:
        blocks = hit * np.where(rows_each <= height / 2.0, 1.0, np.maximum(1.0, rows_each / height + 0.5))
        math_s = 2.0 * height * TILE_COLUMNS * num_sms / (peak_flop_per_s * constants.power_efficiency)
        feed_s = (height * activation_bytes + TILE_COLUMNS * operand_bytes) / constants.feed_bytes_per_s
        waves = np.maximum(blocks * across / num_sms, 1.0)
        compute_s = np.minimum(compute_s, waves * (shape.k * max(math_s, feed_s) + constants.tile_s))
    time_s = constants.launch_s + smooth_max(compute_s, memory_s, constants.ridge_sharpness)
    return BoundTimes(time_s, compute_s, memory_s)
