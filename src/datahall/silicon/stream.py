"""How long memory-bound work takes: additions, norms, activations, casts, copies.

    time = kernels · kernel_s + max(bytes / rate, width · row_element_s for norms)

What fits in L2 was left there by the kernel before and moves at L2's rate; what does not moves at the share of
memory bandwidth that its access pattern reaches.
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.workload.operator import Number, Stream


class StreamConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What limits element-wise kernels."""

    kernel_s: float  # from one small kernel to the next inside a graph
    eager_kernel_s: float  # the same launched one by one from the host
    memory_efficiency: float  # plain element-wise work, vectorised
    row_efficiency: float  # norms: a reduction along each row, then a second pass
    row_element_s: float  # time of one row per element of its width, when rows are few
    strided_bytes_per_s: float  # halves of a fused projection, read element by element
    cast_bytes_per_s: float  # a scale found and applied: the input is read twice
    l2_bytes_per_s: float
    l2_keep_bytes: float
    served_kernel_s: float = 0.0  # `kernel_s` of an engine's compiled kernels; 0: the same
    served_row_element_s: float = 0.0  # `row_element_s` of its norms, vectorised over one row; 0: the same

    @property
    def served(self) -> StreamConstants:
        """The constants under a serving engine."""
        return msgspec.structs.replace(
            self,
            kernel_s=self.served_kernel_s or self.kernel_s,
            row_element_s=self.served_row_element_s or self.row_element_s,
        )


def outgrown_fraction(moved_bytes: Number, constants: StreamConstants) -> Number:
    """The share of so many bytes that lies in main memory: from one to one and a half times what L2 keeps it grows."""
    return np.clip((np.asarray(moved_bytes) / constants.l2_keep_bytes - 1.0) * 2.0, 0.0, 1.0)


def stream_rates(shape: Stream, constants: StreamConstants, memory_bytes_per_s: float) -> tuple[float, float]:
    """What main memory and L2 give to such a kernel [B/s]; no cache is slower than what it caches."""
    efficiency = constants.row_efficiency if shape.pattern == "rows" else constants.memory_efficiency
    memory_rate = memory_bytes_per_s * efficiency
    return memory_rate, max(constants.l2_bytes_per_s, memory_rate)


def stream_times(
    shape: Stream, moved_bytes: Number, constants: StreamConstants, *, memory_bytes_per_s: float
) -> tuple[Number, Number]:
    """Time and memory part of so many bytes in so many kernels [s]."""
    moved = np.asarray(moved_bytes, dtype=np.float64)
    outgrown = outgrown_fraction(moved, constants)
    memory_rate, l2_rate = stream_rates(shape, constants, memory_bytes_per_s)
    memory_s = outgrown * moved / memory_rate + (1.0 - outgrown) * moved / l2_rate
    limits = {"strided": constants.strided_bytes_per_s, "cast": constants.cast_bytes_per_s}
    if shape.pattern in limits:
        memory_s = np.maximum(memory_s, moved / limits[shape.pattern])
    latency_s = shape.num_kernels * constants.kernel_s
    if shape.pattern == "rows":
        memory_s = np.maximum(memory_s, shape.row_width * constants.row_element_s)
    return latency_s + memory_s, memory_s
