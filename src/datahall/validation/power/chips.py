"""Phases on one chip that the driver read while one thing ran: idle, a matrix product, a prefill, decodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.power.activity import IDLE, Activity, kernels_activity
from datahall.power.chip import chip_power_w
from datahall.power.constants import band_of, basis_of
from datahall.scenario.words import PHASES
from datahall.silicon.kernel import scalar, time_operators
from datahall.validation.inference.names import chip_of
from datahall.validation.measurement import Row, RowError
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.workload.forward import forward_pass
from datahall.workload.operator import Gemm, Operator, gemm_flop

PHASE_POWER = "power of a phase"
BF16_BYTES = 2.0
PREFILL_TOKENS, DECODE_CONTEXT = 4096.0, 1024.0  # of the runs, which repeat one pass from a captured graph
MODELS = {"8B": "llama-3-8b"}


def predict_phase(row: Row) -> Iterator[Prediction | Unsupported]:
    """The power of a chip that does one thing."""
    chip = chip_of(row.text("accelerator"))
    drawn_w = chip_power_w(chip, activity_of(row.text("phase"), chip))
    low, high = band_of("chip", chip)
    yield Prediction(
        source=row.text("source").split(",")[0],
        hardware=chip.name,
        model=row.text("phase"),
        label=f"{row.text('phase')} on {row.text('system')}",
        where=row.where,
        measured=row.positive("power_w_per_accel"),
        predicted=drawn_w,
        low=drawn_w * low,
        high=drawn_w * high,
        unit="w",
        metric=PHASE_POWER,
        basis=basis_of(chip),
    )


def activity_of(phase: str, chip: Chip) -> Activity:
    """What a chip does in a phase that is named, one pass after another."""
    if phase == "idle":
        return IDLE
    if found := re.match(r"GEMM (\d+)", phase):
        return _repeated(chip, (_square(float(found[1])),))
    model = next((name for words, name in MODELS.items() if words in phase), "")
    if not model or not phase.startswith(PHASES):
        raise RowError(f'what ran is not stated: "{phase}"')
    batch = re.search(r"batch (\d+)", phase)
    query, past = (1.0, DECODE_CONTEXT) if phase.startswith("decode") else (PREFILL_TOKENS, 0.0)
    return _repeated(
        chip,
        forward_pass(load().model(model), batch=float(batch[1]) if batch else 1.0, query=query, past=past),
    )


def _repeated(chip: Chip, operators: tuple[Operator, ...]) -> Activity:
    kernels = time_operators(chip, operators).kernels
    return kernels_activity(chip, kernels, sum(scalar(one.total_s) for one in kernels))


def _square(size: float) -> Operator:
    moved = BF16_BYTES * size * size
    return Operator(
        name="gemm", shape=Gemm(size, size, size), precision="bf16", weight_precision="bf16",
        flop=gemm_flop(size, size, size), read_bytes=2.0 * moved, write_bytes=moved, weight_bytes=moved,
    )  # fmt: skip
