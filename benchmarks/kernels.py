"""How fast kernel times are computed: compiled, interpreted, and against a bare NumPy roofline."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from clock import best_s
from numpy.typing import NDArray
from table import Line

from datahall.catalog import load
from datahall.compiled import Bare
from datahall.silicon import gemm
from datahall.silicon.calibration import calibrate, num_sms
from datahall.silicon.gemm import GemmTimes, gemm_times
from datahall.silicon.kernel import time_operators
from datahall.silicon.roofline import roofline_time
from datahall.validation import validate
from datahall.workload.forward import forward_pass
from datahall.workload.operator import Operator
from datahall.workload.sharding import Sharding

SHAPES = 100_000
INTERPRETED = 500
LAYOUTS = 100_000
Columns = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def shapes(count: int) -> Columns:
    """Products from one row of a small layer to a prompt through a large one."""
    random = np.random.default_rng(0)
    m, n, k = (np.floor(2.0 ** random.uniform(low, high, count)) for low, high in ((0, 14), (8, 16), (8, 16)))
    return m, n, k


def kernel_lines() -> list[Line]:
    """Shapes per second, one way and the other."""
    columns = shapes(SHAPES)
    m, n, k = columns
    chip = load().chip("h200-sxm")
    peak, bandwidth = chip.peak("bf16"), chip.memory_bytes_per_s
    compiled_s = best_s(_gemm(columns, interpret=False))
    interpreted_s = best_s(_gemm(shapes(INTERPRETED), interpret=True), 3) / INTERPRETED * SHAPES
    floor_s = best_s(lambda: roofline_time(2 * m * n * k, 2 * (m * k + n * k + m * n), peak, bandwidth))
    rate = SHAPES / compiled_s
    return [
        Line("GEMM, 100,000 shapes, compiled", compiled_s, "s", budget=0.2),
        Line("  shapes per second", rate, "/s"),
        Line("  against the same function interpreted", interpreted_s / compiled_s, "× faster"),
        Line("  against a bare NumPy roofline", compiled_s / floor_s, "× its time"),
    ]


def _gemm(columns: Columns, *, interpret: bool) -> Callable[[], GemmTimes]:
    chip = load().chip("h200-sxm")
    constants = calibrate(chip).constants.gemm_for("bf16")
    below = len(columns[0]) + 1 if interpret else 0

    def run() -> GemmTimes:
        usual, gemm.INTERPRET_BELOW = gemm.INTERPRET_BELOW, below
        loaded = gemm.search_tiles
        if interpret:
            gemm.search_tiles = Bare(
                loaded.interpreted
            )  # nothing loaded and nothing done, so work is interpreted
        try:
            return gemm_times(
                *columns,
                num_sms=num_sms(chip),
                peak_flop_per_s=chip.peak("bf16"),
                memory_bytes_per_s=chip.memory_bytes_per_s,
                constants=constants,
                weight_bytes=2.0,
                activation_bytes=2.0,
                output_bytes=2.0,
            )
        finally:
            gemm.INTERPRET_BELOW, gemm.search_tiles = usual, loaded

    return run


def pass_lines() -> list[Line]:
    """Whole passes described and timed as columns, and the ledger row by row."""
    random = np.random.default_rng(0)
    model, chip = load().model("llama-3.1-70b"), load().chip("h200-sxm")
    tp = np.exp2(random.integers(0, 4, LAYOUTS).astype(float))
    batch = np.floor(2.0 ** random.uniform(0, 9, LAYOUTS))
    past = np.floor(2.0 ** random.uniform(5, 15, LAYOUTS))

    def describe() -> tuple[Operator, ...]:
        return forward_pass(model, batch=batch, query=1.0, past=past, sharding=Sharding(tp=tp))

    described_s = best_s(describe)
    timed_s = best_s(lambda: time_operators(chip, describe()), 3)
    rows = validate("kernels").rows
    ledger_s = best_s(lambda: validate("kernels"), 3)
    return [
        Line("forward_pass, 100,000 layouts of a 70B model", described_s, "s"),
        Line("  layouts described per second", LAYOUTS / described_s, "/s"),
        Line("  layouts timed per second", LAYOUTS / timed_s, "/s", budget=1e5, more_is_better=True),
        Line("validate kernels, rows per second", rows / ledger_s, "/s"),
    ]
