"""The time of a pass as a figure: operators from their arithmetic and bytes, the chip's facts, one fitted share each.

    operator = runs · kernel
    kernel   = bound / efficiency                   where arithmetic or memory binds
             = launch gap + bound / efficiency      where the gap from kernel to kernel does
    bound    = max(arithmetic / dense peak, bytes / memory bandwidth)
    bytes that the kernel before left in L2 move at its rate

`efficiency` is what the kernel model, fitted on measured kernels, expects for this very shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from datahall.breakdown import (
    Breakdown,
    Source,
    assumed,
    derived,
    difference,
    fact,
    fitted,
    maximum,
    product,
    quotient,
    total,
)
from datahall.catalog.entries.chip import Chip
from datahall.silicon.calibration import Calibration
from datahall.silicon.kernel import KernelTime, PassTimes, kept_bytes, roofline_precision, scalar
from datahall.silicon.stream import stream_rates
from datahall.workload.operator import Gemm, Operator, Stream

KINDS = {
    "gemm": "matrix products", "grouped_gemm": "matrix products of experts", "attention": "attention",
    "stream": "work between them",
}  # fmt: skip


def pass_figure(name: str, times: PassTimes, shapes: Source) -> Breakdown:
    """The time of one pass by kind of kernel and operator; `shapes` is where the sizes of the model are from."""
    low, high = times.calibration.constants.bands["pass"]
    made = total(name, kernel_groups(times.chip, times.kernels, times.calibration, shapes))
    fitted_on, floor = times.calibration.constants.fitted_on, times.roofline_s
    return made.with_band(low, high, fitted_on, floor=floor).with_note(basis=times.level)


def kernel_groups(
    chip: Chip, kernels: Sequence[KernelTime], calibration: Calibration, shapes: Source
) -> list[Breakdown]:
    """The time of each kind of kernel, all runs of its operators added up."""
    return [
        total(words, [operator_figure(chip, one, calibration, shapes) for one in mine])
        for kind, words in KINDS.items()
        if (mine := [one for one in kernels if one.kind == kind])
    ]


def operator_figure(chip: Chip, kernel: KernelTime, calibration: Calibration, shapes: Source) -> Breakdown:
    """The time of all runs of one operator."""
    runs = _counted("runs", kernel.operator.count, "count", shapes, "once a layer of its kind")
    each = kernel_figure(chip, kernel, calibration, shapes)
    return product(kernel.operator.name.replace("_", " "), (runs, each), "s", note=f"{kernel.bound}-bound")


def kernel_figure(chip: Chip, kernel: KernelTime, calibration: Calibration, shapes: Source) -> Breakdown:
    """The time of one run of one kernel (first row of a column)."""
    host_s = scalar(kernel.host_s)
    if not host_s:
        return _inside_graph(chip, kernel, calibration, shapes, scalar(kernel.time_s))
    inside = _inside_graph(chip, kernel, calibration, shapes, scalar(kernel.replayed_s))
    return maximum(
        "one run", (inside.named("on the chip"), _constant("launch from the host", host_s, "s", calibration))
    )


def _inside_graph(
    chip: Chip, kernel: KernelTime, calibration: Calibration, shapes: Source, time_s: float
) -> Breakdown:
    bound = bound_figure(chip, kernel.operator, calibration, shapes)
    gap_s = scalar(kernel.launch_s) if kernel.bound == "launch" else 0.0
    if not bound.value or time_s <= gap_s:
        return _constant("one run", time_s, "s", calibration)
    efficiency = _constant("efficiency", bound.value / (time_s - gap_s), "fraction", calibration)
    if not gap_s:
        return quotient("one run", bound, efficiency, "s")
    return total(
        "one run",
        (_constant("launch gap", gap_s, "s", calibration), quotient("work", bound, efficiency, "s")),
    )


def bound_figure(chip: Chip, operator: Operator, calibration: Calibration, shapes: Source) -> Breakdown:
    """The least time of one run (first row of a column), where what the kernel before left in L2 is read there."""
    kept, shape = scalar(kept_bytes(operator, calibration)), operator.shape
    if isinstance(shape, Gemm):
        inside = derived("of which in L2", kept, "bytes", "what it keeps of activations")
        outside = difference("bytes of main memory", _traffic(operator, shapes), inside)
        return _bounded(chip, operator, shapes, _from_memory(chip, outside))
    if not isinstance(shape, Stream) or not kept:
        return _bounded(chip, operator, shapes, _from_memory(chip, _traffic(operator, shapes)))
    rate = stream_rates(shape, calibration.constants.stream, chip.memory_bytes_per_s)[1]
    outgrown = scalar(operator.read_bytes + operator.write_bytes) - kept
    inside = _counted("bytes in L2", kept, "bytes", shapes, "left by the kernel before")
    reading = quotient(
        "moving its bytes", inside, _constant("rate of L2", rate, "bytes_per_s", calibration), "s"
    )
    if outgrown:
        others = _counted("other bytes", outgrown, "bytes", shapes, "each operand once")
        parts = reading.named("moving those in L2"), _from_memory(chip, others).named("moving the others")
        reading = total("moving its bytes", parts)
    return _bounded(chip, operator, shapes, reading)


def _traffic(operator: Operator, shapes: Source) -> Breakdown:
    weights = f", weights in {operator.weight_precision}" if scalar(operator.weight_bytes) else ""
    moved_bytes = scalar(operator.read_bytes + operator.write_bytes)
    return _counted("bytes moved", moved_bytes, "bytes", shapes, f"each operand once{weights}")


def _from_memory(chip: Chip, moved: Breakdown) -> Breakdown:
    bandwidth = chip_fact(chip, "memory_bytes_per_s", "memory bandwidth")
    return quotient("moving its bytes", moved, bandwidth, "s")


def _bounded(chip: Chip, operator: Operator, shapes: Source, reading: Breakdown) -> Breakdown:
    """The longer of an operator's arithmetic at the peak and of moving its bytes."""
    name = roofline_precision(chip, operator)
    if not scalar(operator.flop) or not name:
        return reading.named("bound")
    peak = chip_fact(chip, f"peak.{name}", f"dense {name.upper()} peak")
    return maximum("bound", (quotient("its arithmetic", _arithmetic(operator, shapes), peak, "s"), reading))


def _arithmetic(operator: Operator, shapes: Source) -> Breakdown:
    flop, shape = scalar(operator.flop), operator.shape
    if isinstance(shape, Gemm) and flop == 2 * scalar(shape.m) * scalar(shape.n) * scalar(shape.k):
        parts = (
            assumed("operations", 2.0, "count", "a multiplication and an addition per term"),
            derived("rows", scalar(shape.m), "count", "tokens of the pass"),
            _counted("columns", scalar(shape.n), "count", shapes, "of this chip"),
            _counted("depth", scalar(shape.k), "count", shapes, "of this chip"),
        )
        return product("arithmetic", parts, "flop")
    return _counted(
        "arithmetic", flop, "flop", shapes, "of the part that is not masked, two operations a term"
    )


def _counted(name: str, value: float, unit: str, shapes: Source, how: str) -> Breakdown:
    """What follows from the rows of a pass and a chip's share of the model's shapes."""
    return derived(name, value, unit, how).with_note(sources=(shapes,))


def chip_fact(chip: Chip, key: str, name: str) -> Breakdown:
    """A value of a chip with its source."""
    known = chip.facts.get(key)
    if known is not None:
        return fact(name, known.value, known.unit, known.source, note=known.note)
    table, _, precision = key.partition(".")
    value = chip.peak_flop_per_s[precision] if table == "peak" else getattr(chip, key)
    unit = "flop_per_s" if table == "peak" else "bytes_per_s"
    return assumed(name, value, unit, f"{chip.title} was made by hand, without a source")


def _constant(name: str, value: float, unit: str, calibration: Calibration) -> Breakdown:
    constants = calibration.constants
    return fitted(name, value, unit, constants.fitted_on, constants.source, basis=calibration.level)
