"""The time of a pass as a figure that can be opened: kinds of kernel, operators, and the roofline of each."""

from __future__ import annotations

import numpy as np

from datahall.answers.chip.citation import figure
from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip, canonical_precision
from datahall.silicon.kernel import KernelTime, PassTimes
from datahall.units import fmt
from datahall.workload.operator import Number

KINDS = {
    "gemm": "matrix products", "grouped_gemm": "matrix products of experts", "attention": "attention",
    "stream": "work between them",
}  # fmt: skip


def pass_figure(name: str, times: PassTimes) -> Breakdown:
    """The time of one pass, by kind of kernel and operator, down to the facts of the chip."""
    groups = []
    for kind, words in KINDS.items():
        kernels = [one for one in times.kernels if one.kind == kind]
        if kernels:
            parts = tuple(_operator(times.chip, one) for one in kernels)
            total = sum(part.value for part in parts)
            groups.append(
                Breakdown(name=words, value=total, unit="s", formula="sum of its operators", parts=parts)
            )
    return Breakdown(
        name=name,
        value=scalar(times.total_s),
        unit="s",
        formula=" + ".join(group.name for group in groups),
        parts=tuple(groups),
        band=times.band,
        basis=times.level,
        sources=(times.calibration.constants.source,),
    )


def scalar(number: Number) -> float:
    """The first value of a number that may be a column."""
    return float(np.ravel(number)[0])


def _operator(chip: Chip, kernel: KernelTime) -> Breakdown:
    one, each = kernel.operator, scalar(kernel.time_s)
    return Breakdown(
        name=one.name.replace("_", " "),
        value=one.count * each,
        unit="s",
        formula=f"{one.count:g} × {fmt(each, 's')}",
        parts=(
            Breakdown(name="moving its bytes", value=scalar(kernel.memory_s), unit="s"),
            Breakdown(name="its arithmetic", value=scalar(kernel.compute_s), unit="s"),
            _roofline(chip, kernel),
        ),
        note=f"{kernel.bound}-bound",
    )


def _roofline(chip: Chip, kernel: KernelTime) -> Breakdown:
    """The least time the datasheet allows, from the operator's arithmetic and traffic."""
    one = kernel.operator
    peak = chip.facts.get(f"peak.{canonical_precision(one.precision)}")
    memory = chip.facts.get("memory_bytes_per_s")
    parts = [
        Breakdown(name="arithmetic", value=scalar(one.flop), unit="flop"),
        Breakdown(
            name="bytes read and written", value=scalar(one.read_bytes + one.write_bytes), unit="bytes"
        ),
    ]
    parts += [figure(fact) for fact in (peak, memory) if fact is not None]
    return Breakdown(
        name="roofline",
        value=scalar(kernel.roofline_s),
        unit="s",
        formula="max(arithmetic / dense peak, bytes / memory bandwidth)",
        parts=tuple(parts),
    )
