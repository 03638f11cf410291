"""The time of operators on one chip: which kernel model answers, what binds, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, get_args

import msgspec
import numpy as np

from datahall.basis import Basis
from datahall.catalog.entries.chip import Chip
from datahall.catalog.number_formats import bytes_per_value
from datahall.errors import UnsupportedError
from datahall.silicon.attention import DecodeConstants, decode_times, prefill_times
from datahall.silicon.calibration import Calibration, calibrate, num_sms
from datahall.silicon.experts import expert_times
from datahall.silicon.gemm import gemm_times, times_of_each
from datahall.silicon.grouped_gemm import grouped_times
from datahall.silicon.kernel_formats import kernel_format
from datahall.silicon.roofline import BoundTimes, roofline_time
from datahall.silicon.stream import outgrown_fraction, stream_times
from datahall.workload.operator import Attention, Gemm, GroupedGemm, Number, Operator, Stream

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
    launch_s: Number  # from the kernel before to this one inside a graph, part of the time
    host_s: Number = 0.0  # least time of a launch from the host; 0 where a graph is replayed
    replayed_s: Number = 0.0  # the time inside a graph, where the host launches it

    @property
    def bound(self) -> Bound:
        """What most of the time goes to (first row of a column)."""
        time, compute, memory = (scalar(x) for x in (self.time_s, self.compute_s, self.memory_s))
        if max(compute, memory) < 0.5 * time:
            return "launch"
        return "compute" if compute >= memory else "memory"

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
    def roofline_s(self) -> float:
        """The least time that the datasheet allows, which nothing measured goes below (first row of a column)."""
        return sum(kernel.operator.count * scalar(kernel.roofline_s) for kernel in self.kernels)

    @property
    def heaviest(self) -> int:
        """The place of the kernel that takes the most time (first row of a column)."""
        return max(range(len(self.kernels)), key=lambda place: scalar(self.kernels[place].total_s))

    def shares(self) -> dict[Bound, float]:
        """What part of the time each bound takes (first row of a column)."""
        whole, found = scalar(self.total_s), dict.fromkeys(get_args(Bound), 0.0)
        for kernel in self.kernels:
            found[kernel.bound] += scalar(kernel.total_s) / whole
        return found

    def merged(self) -> PassTimes:
        """The same operator of different kinds of layer as one that runs more often."""
        kernels: list[KernelTime] = []
        for kernel in self.kernels:
            twin = next((place for place, seen in enumerate(kernels) if _alike(seen, kernel)), None)
            if twin is None:
                kernels.append(kernel)
                continue
            count = kernels[twin].operator.count + kernel.operator.count
            operator = msgspec.structs.replace(kernel.operator, count=count)
            kernels[twin] = msgspec.structs.replace(kernel, operator=operator)
        return msgspec.structs.replace(self, kernels=tuple(kernels))

    @property
    def level(self) -> Basis:
        return self.calibration.level


def scalar(number: Number) -> float:
    """The first value of a number that may be a column."""
    return float(np.ravel(number)[0])


def _alike(one: KernelTime, other: KernelTime) -> bool:
    return one.operator.name == other.operator.name and scalar(one.time_s) == scalar(other.time_s)


def time_operators(
    chip: Chip,
    operators: Sequence[Operator],
    *,
    level: str | None = None,
    stack: str | None = None,
    graph: bool = True,
    sustained: bool = True,
    block_scaled: bool = False,
    warm: bool = False,
) -> PassTimes:
    """Time each operator of a pass on one chip.

    `graph` replays a captured pass; without it every kernel is launched from the host.  `sustained` passes
    follow one another, so that the clock settles at what the power limit allows.  `stack` names the software
    whose kernels are meant, where a chip was measured with several.  `block_scaled` FP8 has a scale per
    128 × 128 block of weights (DeepSeek, Qwen3), which is another kernel than one scale per tensor or channel.
    `warm` finds the cache of decode attention in L2 where it fits, as a benchmark that repeats one kernel does.
    """
    calibration = calibrate(chip, level, stack)
    kernels = kernel_times(chip, operators, calibration, sustained, block_scaled, warm)
    if not graph:
        kernels = tuple(_launched_from_host(one, calibration, block_scaled) for one in kernels)
    return PassTimes(chip=chip, calibration=calibration, kernels=kernels, graph=graph)


def kernel_times(
    chip: Chip,
    operators: Sequence[Operator],
    calibration: Calibration,
    sustained: bool,
    block_scaled: bool,
    warm: bool,
) -> tuple[KernelTime, ...]:
    """Products of one format are timed in one go: a pass has twenty of them and two formats."""
    found: dict[int, KernelTime] = {}
    products: dict[tuple[str, str], list[int]] = {}
    for index, one in enumerate(operators):
        match one.shape:
            case Gemm():
                products.setdefault((one.precision, one.weight_precision), []).append(index)
            case Attention():
                found[index] = _attention(chip, one, one.shape, calibration, sustained, warm)
            case GroupedGemm():
                if calibration.serving and not one.shape.batched:
                    kernel = kernel_format(one.precision, one.weight_precision, block_scaled=block_scaled)
                    found[index] = _experts(chip, one, one.shape, calibration, sustained, kernel)
                else:
                    found[index] = _grouped(chip, one, one.shape, calibration, sustained)
            case Stream():
                found[index] = _stream(chip, one, one.shape, calibration, block_scaled)
    for formats, places in products.items():
        kernel = kernel_format(*formats, block_scaled=block_scaled)
        alike = [operators[index] for index in places]
        found |= zip(places, _gemms(chip, alike, calibration, sustained, kernel), strict=True)
    return tuple(found[index] for index in range(len(operators)))


def memory_bandwidth(chip: Chip) -> float:
    """The bandwidth of main memory [B/s]; without it no kernel has a time."""
    if not np.isfinite(chip.memory_bytes_per_s):
        raise UnsupportedError(
            f"the memory bandwidth of {chip.title} is not published", hint="no kernel time without it"
        )
    return chip.memory_bytes_per_s


def roofline_precision(chip: Chip, operator: Operator) -> str:
    """The format whose peak bounds an operator: its own, or the fastest where the chip has none for it."""
    peaks = chip.peak_flop_per_s
    own = operator.precision
    return own if own in peaks else max(peaks, key=lambda name: peaks[name], default="")


def kept_bytes(operator: Operator, calibration: Calibration) -> Number:
    """What of an operator's bytes the kernel before left in L2, or the next one finds there [B]."""
    moved, constants = operator.read_bytes + operator.write_bytes, calibration.constants
    match operator.shape:
        case Gemm():
            return np.minimum(moved - operator.weight_bytes, constants.gemm.l2_keep_bytes)
        case Stream():
            return (1.0 - outgrown_fraction(moved, constants.stream)) * moved
    return 0.0


def least_time(chip: Chip, operator: Operator, calibration: Calibration) -> Number:
    """What one run takes at the datasheet's peak and bandwidth: its arithmetic, or what crosses main memory [s]."""
    peak = chip.peak_flop_per_s.get(roofline_precision(chip, operator), np.inf)
    moved = operator.read_bytes + operator.write_bytes - kept_bytes(operator, calibration)
    return roofline_time(operator.flop, moved, peak, chip.memory_bytes_per_s)


def _wide_bytes(operator: Operator) -> float:
    """Bytes of one value that is handed on: two, or four where products are not of 16 bits or fewer [B]."""
    return max(2.0, bytes_per_value(operator.precision))


def _gemms(
    chip: Chip, operators: Sequence[Operator], calibration: Calibration, sustained: bool, kernel: str
) -> Iterator[KernelTime]:
    """Products whose operands have the same formats, and so the same constants."""
    first = operators[0]
    weight_bytes = bytes_per_value(first.weight_precision)
    constants = calibration.constants.gemm_for(kernel, sustained=sustained)
    single_row_s = calibration.constants.path(kernel).single_row_s
    shapes = [(one.shape.m, one.shape.n, one.shape.k) for one in operators if isinstance(one.shape, Gemm)]
    times_of = partial(
        gemm_times,
        num_sms=num_sms(chip),
        peak_flop_per_s=chip.peak(first.precision),
        memory_bytes_per_s=memory_bandwidth(chip),
        constants=constants,
        weight_bytes=weight_bytes,
        activation_bytes=max(weight_bytes, bytes_per_value(first.precision)),
        output_bytes=_wide_bytes(first),
    )
    found = times_of_each(shapes, times_of)
    for one, (rows, _, _), times in zip(operators, shapes, found, strict=True):
        alone_s = np.where(np.asarray(rows) < 2, single_row_s, 0.0)
        yield KernelTime(
            operator=one,
            kind="gemm",
            time_s=times.time_s + alone_s,
            compute_s=np.maximum(times.compute_s, times.power_s),
            memory_s=times.memory_s,
            roofline_s=least_time(chip, one, calibration),
            launch_s=constants.launch_s + alone_s,
        )


def _attention(
    chip: Chip, operator: Operator, shape: Attention, calibration: Calibration, sustained: bool, warm: bool
) -> KernelTime:
    constants = calibration.constants
    kv_bytes = bytes_per_value(operator.weight_precision)
    droop = constants.sustained if sustained else 1.0
    latent = calibration.serving and _is_latent(shape)
    own_prefill = constants.latent_prefill if latent and constants.latent_prefill else constants.prefill
    own_decode = constants.latent_decode if latent and constants.latent_decode else constants.decode
    prefill = msgspec.structs.replace(own_prefill, power_efficiency=own_prefill.power_efficiency * droop)
    peak_flop_per_s = chip.peak(operator.precision)
    decodes = bool(np.all(np.asarray(shape.q_len) == 1))
    if decodes:
        times = decode_times(
            shape,
            own_decode,
            num_sms=num_sms(chip),
            memory_bytes_per_s=memory_bandwidth(chip),
            kv_bytes=kv_bytes,
            value_bytes=_wide_bytes(operator),
            peak_flop_per_s=peak_flop_per_s * prefill.power_efficiency,
            warm_bytes=warm_bytes(chip, own_decode) if warm else 0.0,
        )
    else:
        times = prefill_times(
            shape,
            prefill,
            num_sms=num_sms(chip),
            peak_flop_per_s=peak_flop_per_s,
            memory_bytes_per_s=memory_bandwidth(chip),
            kv_bytes=kv_bytes,
            value_bytes=_wide_bytes(operator),
        )
    return KernelTime(
        operator=operator,
        kind="attention",
        time_s=times.time_s,
        compute_s=times.compute_s,
        memory_s=times.memory_s,
        roofline_s=least_time(chip, operator, calibration),
        launch_s=own_decode.launch_s if decodes else prefill.launch_s,
    )


def warm_bytes(chip: Chip, constants: DecodeConstants) -> float:
    """What the L2 of a chip keeps between two runs, where its rate was measured [B]."""
    l2 = next((level.capacity_bytes for level in chip.levels if level.name == "l2"), 0.0)
    return l2 if np.isfinite(l2) and np.isfinite(constants.l2_bytes_per_s) else 0.0


def _is_latent(shape: Attention) -> bool:
    """Latent attention: keys are wider than values, for the part that carries positions."""
    return bool(np.all(np.asarray(shape.value_dim) < np.asarray(shape.head_dim)))


def _experts(
    chip: Chip, operator: Operator, shape: GroupedGemm, calibration: Calibration, sustained: bool, kernel: str
) -> KernelTime:
    constants = calibration.constants
    found = constants.expert(kernel)
    if found is None:
        return _grouped(chip, operator, shape, calibration, sustained)
    weight_bytes = bytes_per_value(operator.weight_precision)
    droop = constants.sustained if sustained else 1.0
    times = expert_times(
        shape,
        operator.weight_bytes / (shape.n * shape.k * weight_bytes),
        msgspec.structs.replace(found, power_efficiency=found.power_efficiency * droop),
        num_sms=num_sms(chip),
        peak_flop_per_s=chip.peak(operator.precision),
        memory_bytes_per_s=memory_bandwidth(chip),
        weight_bytes=weight_bytes,
        activation_bytes=max(weight_bytes, bytes_per_value(operator.precision)),
        output_bytes=_wide_bytes(operator),
    )
    return _grouped_kernel(chip, operator, times, calibration, found.launch_s)


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
        output_bytes=_wide_bytes(operator),
    )
    return _grouped_kernel(chip, operator, times, calibration, grouped.launch_s)


def _grouped_kernel(
    chip: Chip, operator: Operator, times: BoundTimes, calibration: Calibration, launch_s: float
) -> KernelTime:
    return KernelTime(
        operator=operator,
        kind="grouped_gemm",
        time_s=times.time_s,
        compute_s=times.compute_s,
        memory_s=times.memory_s,
        roofline_s=least_time(chip, operator, calibration),
        launch_s=launch_s,
    )


def _stream(
    chip: Chip, operator: Operator, shape: Stream, calibration: Calibration, block_scaled: bool
) -> KernelTime:
    if block_scaled and shape.pattern == "cast":  # the scale of a block is found on the way
        shape = msgspec.structs.replace(shape, pattern="plain")
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
        roofline_s=least_time(chip, operator, calibration),
        launch_s=shape.num_kernels * calibration.constants.stream.kernel_s,
    )


def _launched_from_host(kernel: KernelTime, calibration: Calibration, block_scaled: bool) -> KernelTime:
    """No kernel ends sooner than the host can launch the next one."""
    operator, shape = kernel.operator, kernel.operator.shape
    num_kernels = shape.num_kernels if isinstance(shape, Stream) else 1.0
    floor_s = num_kernels * calibration.constants.stream.eager_kernel_s
    if isinstance(shape, Gemm):
        form = kernel_format(operator.precision, operator.weight_precision, block_scaled=block_scaled)
        floor_s = np.maximum(floor_s, calibration.constants.path(form).eager_s)
    return msgspec.structs.replace(
        kernel, time_s=np.maximum(kernel.time_s, floor_s), host_s=floor_s, replayed_s=kernel.time_s
    )
