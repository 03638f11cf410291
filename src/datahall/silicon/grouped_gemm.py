"""How long the experts of a mixture take: one GEMM per expert in one kernel.

    memory  = (weights of the experts hit + rows in and out) / (bandwidth · efficiency)
    compute = 2 · experts hit · max(rows each, pad_rows) · n · k / (peak · power_efficiency)
    time    = launch + (memory^p + compute^p)^(1/p)

A kernel handles each expert's rows in blocks, so a few tokens per expert cost a whole one of `pad_rows`, and experts
with fewer than `tile_rows` rows stream weights at another rate.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
import numpy as np

from datahall.silicon.attention import smooth_max
from datahall.silicon.roofline import BoundTimes
from datahall.workload.operator import GroupedGemm, Number

FULL_IF_EVEN = 1.0  # tiles, in rows of the mean expert: library calls are fed evenly


class GroupedConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a grouped or batched GEMM."""

    launch_s: float
    memory_efficiency: float  # weights streamed for full blocks of rows
    small_memory_efficiency: float  # and for less than a block per expert
    power_efficiency: float
    tile_rows: float
    pad_rows: float  # an expert that is hit costs as many rows at least
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
    padded = np.maximum(rows_each, constants.pad_rows) * hit
    moved = moved_bytes(shape, hit, weight_bytes, activation_bytes, output_bytes)
    memory_s = moved / (memory_bytes_per_s * streamed_fraction(rows_each, constants, until=FULL_IF_EVEN))
    compute_s = 2.0 * padded * shape.n * shape.k / (peak_flop_per_s * constants.power_efficiency)
    return BoundTimes(
        constants.launch_s + smooth_max(compute_s, memory_s, constants.ridge_sharpness), compute_s, memory_s
    )


def moved_bytes(
    shape: GroupedGemm, hit: Number, weight_bytes: float, activation_bytes: float, output_bytes: float
) -> Number:
    """Weights of the experts hit, and the rows in and out [B]."""
    rows = shape.rows * (shape.k * activation_bytes + shape.n * output_bytes)
    return hit * shape.n * shape.k * weight_bytes + rows


class Streamed(Protocol):
    """Constants of kernels that stream weights at another rate once an expert has so many rows."""

    @property
    def memory_efficiency(self) -> float: ...
    @property
    def small_memory_efficiency(self) -> float: ...
    @property
    def tile_rows(self) -> float: ...


def streamed_fraction(rows_each: Number, constants: Streamed, *, until: float) -> Number:
    """The share of the bandwidth that weights are streamed at for experts with so many rows in the mean.

    Ever more of them have the rows of a tile from half as many in the mean to `until` times as many.
    """
    many = (np.log2(np.clip(rows_each / constants.tile_rows, 0.5, until)) + 1.0) / (np.log2(until) + 1.0)
    slowness = many / constants.memory_efficiency + (1.0 - many) / constants.small_memory_efficiency
    return np.asarray(1.0 / slowness)
