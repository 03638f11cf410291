"""What a chip does in some span of time, as shares of what it could do: the cause of its power.

The kernels that give a pass its time give it its activity: their FLOPs over the peak, their bytes over the bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from datahall.catalog.entries.chip import Chip
from datahall.catalog.number_formats import bytes_per_value
from datahall.silicon.kernel import KernelTime, memory_bandwidth, roofline_precision, scalar
from datahall.workload.operator import Attention, GroupedGemm, Operator

WIDE_BYTES = 2.0  # of a value of 16 bits, in which scaled weights are counted
# Rows of an expert's tile where FP8 weights have a scale per block: the experts' rows are padded to it.
# Reference: DeepGEMM, contiguous layout of grouped products (get_m_alignment_for_contiguous_layout).
BLOCK_SCALED_ROWS = 128


class Activity(msgspec.Struct, frozen=True):
    """Means over some span of time, each at least 0 and what is used over what there is."""

    tensor_fraction: float = (
        0.0  # of the dense peak of the format that is multiplied, padding of tiles included
    )
    memory_fraction: float = 0.0  # of the bandwidth of main memory
    link_fraction: float = 0.0  # of the bandwidth of the scale-up links, one way
    busy_fraction: float = 0.0  # of the time in which kernels run
    cache_fraction: float = 0.0  # of that bandwidth: what decodes read of their caches
    scaled_fraction: float = (
        0.0  # weights unpacked outside the tensor cores, as 16-bit values over the bandwidth
    )

    def over(self, span_ratio: float) -> Activity:
        """The same work within a span so many times as long."""
        return Activity(*(getattr(self, name) / span_ratio for name in self.__struct_fields__))


class Phase(msgspec.Struct, frozen=True):
    """A span of time in which a chip does one thing."""

    name: str
    time_s: float
    activity: Activity


IDLE = Activity()  # a context is loaded and nothing runs
# Kernels that send occupy a few multiprocessors: NCCL takes up to 32 of 132 blocks on eight H100, and the others wait.
SENDING_BUSY_FRACTION = 0.25
# What is sent is read and what comes is written: at the full rate of the links 2 · 450 of 3,350 GB/s on an H100, and
# 2 · 900 of 8,000 on a B200.
SENDING_MEMORY_FRACTION = 0.25
# A stage that waits for the one before spins in the kernel that receives.
WAITING = Activity(busy_fraction=SENDING_BUSY_FRACTION)


def kernels_activity(
    chip: Chip, kernels: Sequence[KernelTime], time_s: float, *, block_scaled: bool = False
) -> Activity:
    """Activity of a chip that runs some kernels within so many seconds (first row of columns)."""
    busy_s = sum(scalar(one.total_s) for one in kernels)
    return work_activity(
        chip, (one.operator for one in kernels), time_s, busy_s=busy_s, block_scaled=block_scaled
    )


def work_activity(
    chip: Chip, operators: Iterable[Operator], time_s: float, *, busy_s: float, block_scaled: bool = False
) -> Activity:
    """Activity of a chip that does some work within so many seconds (first row of columns).

    Parameters: operators, each with how often it runs; time_s, their span with whatever passes between them [s];
    busy_s, how long kernels run in it [s]; block_scaled, whether FP8 weights have a scale per block.

        tensor = Σ FLOP / peak / t      memory = Σ bytes / bandwidth / t      busy = Σ kernel times / t
    """
    bandwidth = memory_bandwidth(chip)
    tensor_s = memory_s = cache_s = scaled_s = 0.0
    for one in operators:
        moved_s = one.count * scalar(one.read_bytes + one.write_bytes) / bandwidth
        tensor_s += one.count * _issued_flop(one, block_scaled) / _peak(chip, one)
        memory_s += moved_s
        cache_s += moved_s if _decodes(one) else 0.0
        scaled_s += one.count * _unpacked(one, block_scaled) * WIDE_BYTES / bandwidth
    spent = (tensor_s, memory_s, 0.0, busy_s, cache_s, scaled_s)
    return Activity(*(one / time_s for one in spent))


def _peak(chip: Chip, operator: Operator) -> float:
    return chip.peak_flop_per_s.get(roofline_precision(chip, operator), np.inf)


def _issued_flop(operator: Operator, block_scaled: bool) -> float:
    """Arithmetic that the tensor cores are given: with rows that only fill the tiles of experts."""
    flop = scalar(operator.flop)
    if not block_scaled or not isinstance(operator.shape, GroupedGemm) or operator.shape.batched:
        return flop
    return max(flop, 2.0 * BLOCK_SCALED_ROWS * _values(operator))


def _decodes(operator: Operator) -> bool:
    return isinstance(operator.shape, Attention) and scalar(operator.shape.q_len) == 1.0


def _unpacked(operator: Operator, block_scaled: bool) -> float:
    """Weights stored narrower than they are multiplied: ordinary arithmetic widens each."""
    narrow = operator.weight_precision != operator.precision and not block_scaled
    return _values(operator) if narrow else 0.0


def _values(operator: Operator) -> float:
    """Weights that one run reads."""
    return scalar(operator.weight_bytes) / bytes_per_value(operator.weight_precision)


def mean_activity(phases: Sequence[Phase]) -> Activity:
    """Activity over several phases, weighted by their times.

    >>> mean_activity((Phase("work", 3.0, Activity(0.5, 0.25, 0.0, 1.0)), Phase("rest", 1.0, IDLE))).tensor_fraction
    0.375
    """
    whole_s = sum(one.time_s for one in phases)
    if not whole_s > 0:
        return IDLE
    names = Activity.__struct_fields__
    return Activity(
        *(sum(getattr(one.activity, name) * one.time_s for one in phases) / whole_s for name in names)
    )


def communication_activity(link_fraction: float = 1.0) -> Activity:
    """Exchange that no kernel hides, at so much of the links' bandwidth."""
    return Activity(
        memory_fraction=SENDING_MEMORY_FRACTION * link_fraction,
        link_fraction=link_fraction,
        busy_fraction=SENDING_BUSY_FRACTION,
    )


def checkpoint_activity(host_bytes_per_s: float, chip: Chip) -> Activity:
    """A chip whose state is copied to its host at so many bytes per second [B/s], while its kernels wait."""
    return Activity(memory_fraction=min(1.0, host_bytes_per_s / memory_bandwidth(chip)))
