"""Passes and single operators, for the tests of kernel times."""

from __future__ import annotations

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.silicon.kernel import PassTimes, time_operators
from datahall.workload.forward import forward_pass
from datahall.workload.operator import Gemm, Operator, Stream, gemm_flop
from datahall.workload.precision import Precision

CATALOG = Catalog(user=False)


def passed(
    chip: Chip | str,
    model: str = "llama-3.1-8b",
    *,
    batch: float = 8.0,
    query: float = 1.0,
    past: float = 1000.0,
    precision: str = "bf16",
    **options: object,
) -> PassTimes:
    machine = CATALOG.chip(chip) if isinstance(chip, str) else chip
    step = forward_pass(
        CATALOG.model(model), batch=batch, query=query, past=past, precision=Precision.named(precision)
    )
    return time_operators(machine, step, **options)  # type: ignore[arg-type]


def product(m: float, n: float, k: float, precision: str, weights: str | None = None) -> Operator:
    return Operator(
        name="gemm", shape=Gemm(m, n, k), precision=precision, weight_precision=weights or precision,
        flop=gemm_flop(m, n, k), read_bytes=2.0 * (m * k + n * k), write_bytes=2.0 * m * n,
    )  # fmt: skip


def stream(moved_bytes: float, precision: str = "bf16", flop: float = 0.0) -> Operator:
    return Operator(
        name="add", shape=Stream(), precision=precision, weight_precision=precision, flop=flop,
        read_bytes=moved_bytes, write_bytes=0.0,
    )  # fmt: skip
