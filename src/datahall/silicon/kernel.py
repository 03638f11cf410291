"""The time of operators on one chip: which kernel model answers, what binds, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from datahall.breakdown import Band, Basis
from datahall.catalog.chip import Chip
from datahall.errors import UnsupportedError
from datahall.silicon.attention import decode_times, prefill_times
from datahall.silicon.calibration import Calibration, calibrate, num_sms
from datahall.silicon.gemm import gemm_times
from datahall.silicon.grouped_gemm import grouped_times
from datahall.silicon.roofline import roofline_time
from datahall.silicon.stream import stream_times
from datahall.workload.operator import Attention, Gemm, GroupedGemm, Number, Operator, Stream
from datahall.workload.precision import bytes_per_value

Bound = Literal["compute", "memory", "launch"]
Kind = Literal["gemm", "attention", "grouped_gemm", "stream"]


class KernelTime(msgspec.Struct, frozen=True, kw_only=True):
    """One operator's time on a chip, for one execution; numbers are scalars or columns."""

    operator: Operator
    kind: Kind
    time_s: Number
    compute_s: Number
    memory_s: Number
    roofline_s: Number

    @property
    def bound(self) -> Bound:
        """What most of the time goes to (first row of a column)."""
        time, compute, memory = (float(np.ravel(x)[0]) for x in (self.time_s, self.compute_s, self.memory_s))
        if max(compute, memory) < 0.5 * time:
            return "launch"
        return "compute" if compute >= memory else "memory"

    @property
    def efficiency(self) -> Number:
        """Roofline time over predicted time."""
        return self.roofline_s / self.time_s

    @property
    def total_s(self) -> Number:
        """Time of all executions in a pass."""
        return self.operator.count * self.time_s


class PassTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The operators of one pass, each with its time, and what the answer rests on."""

    chip: Chip
    calibration: Calibration
    kernels: tuple[KernelTime, ...]
    graph: bool

    @property
    def total_s(self) -> Number:
        return sum((kernel.total_s for kernel in self.kernels), 0.0)

    @property
    def level(self) -> Basis:
        return self.calibration.level

    @property
    def band(self) -> Band:
        """The range in which eight of ten whole passes are expected."""
        low, high = self.calibration.constants.bands["pass"]
        total = float(np.ravel(self.total_s)[0])
        return Band(total * low, total * high, self.calibration.constants.fitted_on)


def time_operators(
    chip: Chip,
    operators: Sequence[Operator],
    *,
    level: str | None = None,
    stack: str | None = None,
    graph: bool = True,
    sustained: bool = True,
) -> PassTimes:
    """Time each operator of a pass on one chip.

    `graph` replays a captured pass; without it every kernel is launched from the host.  `sustained` passes
    follow one another, so that the clock settles at what the power limit allows.  `stack` names the
    software whose
    kernels are meant, where a chip was measured with several.
    """
    calibration = calibrate(chip, level, stack)
    kernels = tuple(_kernel_time(chip, one, calibration, sustained) for one in operators)
    if not graph:
        kernels = tuple(_launched_from_host(one, calibration) for one in kernels)
    return PassTimes(chip=chip, calibration=calibration, kernels=kernels, graph=graph)


def _kernel_time(chip: Chip, operator: Operator, calibration: Calibration, sustained: bool) -> KernelTime:
    match operator.shape:
        case Gemm():
            return _gemm(chip, operator, operator.shape, calibration, sustained)
        case Attention():
            return _attention(chip, operator, operator.shape, calibration, sustained)
        case GroupedGemm():
            return _grouped(chip, operator, operator.shape, calibration, sustained)
        case Stream():
            return _stream(chip, operator, operator.shape, calibration)


def memory_bandwidth(chip: Chip) -> float:
    """The bandwidth of main memory [B/s]; without it no kernel has a time."""
    if not np.isfinite(chip.memory_bytes_per_s):
        raise UnsupportedError(
            f"the memory bandwidth of {chip.title} is not published", hint="no kernel time without it"
        )
    return chip.memory_bytes_per_s


def _roofline(chip: Chip, operator: Operator) -> Number:
    peak = chip.peak_flop_per_s.get(operator.precision) or max(chip.peak_flop_per_s.values(), default=np.inf)
    moved = operator.read_bytes + operator.write_bytes
    return roofline_time(operator.flop, moved, peak, chip.memory_bytes_per_s)


def _gemm(
    chip: Chip, operator: Operator, shape: Gemm, calibration: Calibration, sustained: bool
) -> KernelTime:
    weight_bytes = bytes_per_value(operator.weight_precision)
    input_bytes = max(weight_bytes, bytes_per_value(operator.precision))
    times = gemm_times(
        shape.m,
        shape.n,
        shape.k,
        num_sms=num_sms(chip),
        peak_flop_per_s=chip.peak(operator.precision),
        memory_bytes_per_s=memory_bandwidth(chip),
        constants=calibration.constants.gemm_for(operator.precision, sustained=sustained),
        weight_bytes=weight_bytes,
        activation_bytes=input_bytes,
    )
    alone_s = np.where(
        np.asarray(shape.m) < 2, calibration.constants.path(operator.precision).single_row_s, 0.0
    )
    return KernelTime(
        operator=operator,
        kind="gemm",
        time_s=_like(times.time_s + alone_s, shape.m, shape.n, shape.k),
        compute_s=_like(np.maximum(times.compute_s, times.power_s), shape.m, shape.n, shape.k),
        memory_s=_like(times.memory_s, shape.m, shape.n, shape.k),
        roofline_s=_roofline(chip, operator),
    )


def _attention(
    chip: Chip, operator: Operator, shape: Attention, calibration: Calibration, sustained: bool
) -> KernelTime:
    constants = calibration.constants
    kv_bytes = bytes_per_value(operator.weight_precision)
    droop = constants.sustained if sustained else 1.0
    prefill = msgspec.structs.replace(
        constants.prefill, power_efficiency=constants.prefill.power_efficiency * droop
    )
    peak_flop_per_s = chip.peak(operator.precision)
    if np.all(np.asarray(shape.q_len) == 1):
        times = decode_times(
            shape,
            constants.decode,
            num_sms=num_sms(chip),
            memory_bytes_per_s=memory_bandwidth(chip),
            kv_bytes=kv_bytes,
            peak_flop_per_s=peak_flop_per_s * prefill.power_efficiency,
        )
    else:
        times = prefill_times(
            shape,
            prefill,
            num_sms=num_sms(chip),
            peak_flop_per_s=peak_flop_per_s,
            memory_bytes_per_s=memory_bandwidth(chip),
            kv_bytes=kv_bytes,
        )
    return KernelTime(
        operator=operator,
        kind="attention",
        time_s=times.time_s,
        compute_s=times.compute_s,
        memory_s=times.memory_s,
        roofline_s=_roofline(chip, operator),
    )


def _grouped(
    chip: Chip, operator: Operator, shape: GroupedGemm, calibration: Calibration, sustained: bool
) -> KernelTime:
    constants = calibration.constants
    weight_bytes = bytes_per_value(operator.weight_precision)
    grouped = constants.batched if shape.batched else constants.grouped
    path, bf16 = constants.path(operator.precision), constants.path("bf16")
    droop = constants.sustained if sustained else 1.0
    times = grouped_times(
        shape,
        operator.weight_bytes / (shape.n * shape.k * weight_bytes),
        msgspec.structs.replace(
            grouped,
            power_efficiency=grouped.power_efficiency * droop * path.power_efficiency / bf16.power_efficiency,
            memory_efficiency=grouped.memory_efficiency * path.memory_factor,
            small_memory_efficiency=grouped.small_memory_efficiency * path.memory_factor,
        ),
        peak_flop_per_s=chip.peak(operator.precision),
        memory_bytes_per_s=memory_bandwidth(chip),
        weight_bytes=weight_bytes,
        activation_bytes=max(weight_bytes, bytes_per_value(operator.precision)),
    )
    return KernelTime(
        operator=operator,
        kind="grouped_gemm",
        time_s=times.time_s,
        compute_s=times.compute_s,
        memory_s=times.memory_s,
        roofline_s=_roofline(chip, operator),
    )


def _stream(chip: Chip, operator: Operator, shape: Stream, calibration: Calibration) -> KernelTime:
    time_s, memory_s = stream_times(
        shape,
        operator.read_bytes + operator.write_bytes,
        calibration.constants.stream,
        memory_bytes_per_s=memory_bandwidth(chip),
    )
    # recurrent layers scan with matrix products: they run no faster than those
    compute_s = operator.flop / chip.peak(operator.precision) if np.any(operator.flop) else 0.0
    return KernelTime(
        operator=operator,
        kind="stream",
        time_s=np.maximum(time_s, compute_s),
        compute_s=compute_s,
        memory_s=memory_s,
        roofline_s=_roofline(chip, operator),
    )


def _launched_from_host(kernel: KernelTime, calibration: Calibration) -> KernelTime:
    """No kernel ends sooner than the host can launch the next one."""
    shape = kernel.operator.shape
    num_kernels = shape.num_kernels if isinstance(shape, Stream) else 1.0
    floor_s = num_kernels * calibration.constants.stream.eager_kernel_s
    return msgspec.structs.replace(kernel, time_s=np.maximum(kernel.time_s, floor_s))


def _like(column: Number, *shapes: Number) -> Number:
    """A scalar for scalar shapes, a column for columns."""
    if all(np.ndim(one) == 0 for one in shapes):
        return float(np.ravel(column)[0])
    return column
