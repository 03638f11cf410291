"""A measured rate reaches every kernel that runs at it, and the launch of a product holds what one row adds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.silicon.kernel_case import CATALOG, product

from datahall.silicon import kernel as kernels
from datahall.silicon.calibration import Calibration, calibrate
from datahall.silicon.kernel import KernelTime, time_operators
from datahall.workload.operator import GroupedGemm, Operator, gemm_flop

H200 = CATALOG.chip("h200-sxm")


def compute_s(measured_fraction: float | None, *, batched: bool) -> float:
    """Eight products of 8,192³ on a chip whose best one was measured at a fraction of its peak of 1 PFLOP/s."""
    side = 8192.0
    operator = Operator(
        name="heads", shape=GroupedGemm(8 * side, 8.0, side, side, batched), precision="bf16", weight_precision="bf16",
        flop=8 * gemm_flop(side, side, side), read_bytes=32 * side * side, write_bytes=16 * side * side,
        weight_bytes=16 * side * side,
    )  # fmt: skip
    measured = {} if measured_fraction is None else {"bf16": measured_fraction * 1e15}
    chip = replace(H200, peak_flop_per_s={"bf16": 1e15}, measured_peak_flop_per_s=measured)
    found = time_operators(chip, [operator], level="datasheet", sustained=False)
    return kernels.scalar(found.kernels[0].compute_s)


@pytest.mark.parametrize("batched", [True, False])
def test_heads_and_experts_slow_down_as_the_measured_product_does(batched: bool) -> None:
    full, half, quarter = (compute_s(share, batched=batched) for share in (0.6, 0.3, 0.15))
    assert half == pytest.approx(2 * full)
    assert quarter == pytest.approx(4 * full)


@pytest.mark.parametrize("batched", [True, False])
def test_a_product_measured_where_the_usual_chip_stands_changes_nothing(batched: bool) -> None:
    usual = calibrate(replace(H200, measured_peak_flop_per_s={}), "datasheet").constants.path("bf16")
    assert compute_s(usual.power_efficiency, batched=batched) == pytest.approx(
        compute_s(None, batched=batched)
    )


@pytest.mark.parametrize("batched", [True, False])
def test_no_measurement_lets_a_product_run_above_the_peak(batched: bool) -> None:
    least_s = 8 * 2 * 8192**3 / 1e15
    assert compute_s(1.9, batched=batched) == pytest.approx(least_s)


def test_what_one_row_adds_is_part_of_its_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(rows: float, single_row_s: float) -> KernelTime:
        usual = calibrate(H200).constants
        path = replace(usual.paths["bf16"], single_row_s=single_row_s)
        found = Calibration(replace(usual, paths={"bf16": path}), "measured")
        monkeypatch.setattr(kernels, "calibrate", lambda *_: found)
        return time_operators(H200, [product(rows, 4096.0, 4096.0, "bf16")]).kernels[0]

    for rows, more_s in ((1.0, 3.0), (2.0, 0.0)):
        slow, quick = timed(rows, 3.0), timed(rows, 0.0)
        assert slow.time_s - quick.time_s == pytest.approx(more_s)
        assert slow.launch_s - quick.launch_s == pytest.approx(more_s)
        assert quick.launch_s == timed(64.0, 3.0).launch_s
