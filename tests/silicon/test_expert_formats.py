"""Experts in fewer bits: where their weights are what is streamed, half the bytes take less time under every engine."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.silicon.kernel_case import CATALOG, passed

from datahall.catalog.entries.chip import Chip
from datahall.silicon.calibration import Constants, calibrate, constant_sets, num_sms
from datahall.silicon.experts import expert_times
from datahall.silicon.kernel import scalar
from datahall.workload.operator import GroupedGemm

ROWS = Path(__file__).parents[2] / "calibration/h200/expert_formats.csv"
SERVED = [name for name, one in constant_sets().items() if one.experts]
BYTES = {"bf16": 2.0, "fp8": 1.0}


def product_s(
    chip: Chip, constants: Constants, form: str, experts: float, n: float, k: float, rows: float
) -> float:
    """One product of experts that have so many rows each."""
    own = constants.expert(form)
    assert own is not None
    return scalar(expert_times(
        GroupedGemm(experts * rows, experts, n, k), experts, own, num_sms=num_sms(chip),
        peak_flop_per_s=chip.peak(form), memory_bytes_per_s=chip.memory_bytes_per_s,
        weight_bytes=BYTES[form], activation_bytes=BYTES[form],
        output_bytes=2.0,
    ).time_s)  # fmt: skip


@pytest.mark.parametrize("name", [name for name in SERVED if "a100" not in name])
@pytest.mark.parametrize(("experts", "n", "k"), [(128, 1536, 2048), (128, 4096, 1536), (8, 28672, 4096)])
def test_half_the_bytes_of_an_expert_take_less_time(name: str, experts: int, n: int, k: int) -> None:
    constants = constant_sets()[name]
    chip = CATALOG.chip(constants.chip)
    for rows in (4, 16):
        bf16_s, fp8_s = (product_s(chip, constants, form, experts, n, k, rows) for form in ("bf16", "fp8"))
        assert fp8_s < 0.8 * bf16_s


def test_formats_of_experts_are_as_far_apart_as_on_our_h200() -> None:
    """The measured kernels have no launches around them and do nothing but multiply, so their ratio is compared."""
    chip = CATALOG.chip("h200-sxm")
    constants = calibrate(chip, stack="vllm").constants
    found: dict[tuple[float, ...], dict[str, tuple[float, float]]] = {}
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            shape = tuple(float(row[key]) for key in ("num_experts", "n", "k", "rows_each"))
            experts, n, k, rows = shape
            predicted_s = product_s(chip, constants, row["format"], experts, n, k, rows)
            found.setdefault(shape, {})[row["format"]] = (float(row["us"]) * 1e-6, predicted_s)
    assert len(found) == 28
    for shape, forms in found.items():
        measured, predicted = (forms["fp8"][at] / forms["bf16"][at] for at in (0, 1))
        assert 0.8 < predicted / measured < 1.4, shape
        assert all(predicted_s > measured_s for measured_s, predicted_s in forms.values())


@pytest.mark.parametrize("chip", ["h100-sxm", "h200-sxm", "h800-sxm", "gh200"])
def test_a_decode_of_mixtral_is_no_slower_in_fp8(chip: str) -> None:
    bf16, fp8 = (
        scalar(passed(chip, "mixtral-8x7b", batch=64, precision=precision, stack="vllm").total_s)
        for precision in ("bf16", "fp8")
    )
    assert fp8 < 0.8 * bf16
