"""A chip that has no less of anything than a relative is no slower, where both rest on their datasheets."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest
from tests.silicon.kernel_case import CATALOG, passed

from datahall.catalog.entries.chip import Chip
from datahall.errors import UnsupportedError
from datahall.silicon.calibration import calibrate
from datahall.silicon.kernel import scalar
from datahall.workload.precision import PRESETS


def no_less(chip: Chip, other: Chip) -> bool:
    """Whether a chip has every format of another, at its rate or more, and no less bandwidth or cores."""
    peaks, others = chip.peak_flop_per_s, other.peak_flop_per_s
    return (
        chip.family == other.family
        and chip.num_sms == other.num_sms
        and chip.memory_bytes_per_s >= other.memory_bytes_per_s
        and set(others) <= set(peaks)
        and all(peaks[name] >= rate for name, rate in others.items())
    )


BARE = [chip for chip in CATALOG.chips() if calibrate(chip).level == "datasheet only"]
PAIRS = [(chip.name, other.name) for chip, other in permutations(BARE, 2) if no_less(chip, other)]


def test_there_are_such_chips() -> None:
    assert {("mi355x", "mi350x"), ("mi325x", "mi300x")} <= set(PAIRS)


@pytest.mark.parametrize(("better", "other"), PAIRS)
@pytest.mark.parametrize("precision", PRESETS)
@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b"])
def test_a_chip_with_no_less_of_anything_is_no_slower(
    better: str, other: str, precision: str, model: str
) -> None:
    for query, batch in ((4096, 8), (1, 8), (1, 256)):
        try:
            times = [
                scalar(passed(chip, model, query=query, batch=batch, precision=precision).total_s)
                for chip in (better, other)
            ]
        except UnsupportedError:
            return
        assert times[0] <= times[1] * (1 + 1e-9), (query, batch)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b"])
def test_what_was_measured_of_one_format_moves_no_other(model: str) -> None:
    """But fp16, which runs on the same units at the same rate."""
    measured = CATALOG.chip("mi355x")
    slower = msgspec.structs.replace(
        measured, measured_peak_flop_per_s={"bf16": 0.5 * measured.measured_peak_flop_per_s["bf16"]}
    )
    for precision in ("bf16", "fp16", "fp32"):
        first, second = (
            scalar(passed(chip, model, query=4096, precision=precision).total_s)
            for chip in (measured, slower)
        )
        assert (second > 1.2 * first) == (precision != "fp32")
        assert (second == first) == (precision == "fp32")


def test_experts_keep_to_what_was_measured_of_their_format() -> None:
    """Half the bf16 rate: products of bf16 experts take nearly twice as long, those of fp8 experts what they took."""
    measured = CATALOG.chip("mi355x")
    slower = msgspec.structs.replace(
        measured, measured_peak_flop_per_s={"bf16": 0.5 * measured.measured_peak_flop_per_s["bf16"]}
    )
    for precision, expected in (("bf16", 2.0), ("fp8", 1.0)):
        found = []
        for chip in (measured, slower):
            timed = passed(chip, "qwen3-30b-a3b", batch=64, query=4096, past=0, precision=precision)
            experts = [kernel for kernel in timed.kernels if kernel.kind == "grouped_gemm"]
            found.append(sum(scalar(kernel.compute_s) for kernel in experts))
        assert found[1] / found[0] == pytest.approx(expected)
