"""Values of 32 bits are handed on at four bytes each: every byte of a kernel on a chip of round numbers, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.silicon.kernel_case import CATALOG

from datahall.silicon import kernel as kernels
from datahall.silicon.calibration import Calibration, constant_sets
from datahall.silicon.experts import ExpertConstants
from datahall.silicon.kernel import KernelTime, time_operators
from datahall.workload.operator import Attention, Gemm, GroupedGemm, Operator, Shape

ENDLESS = 1e30
SPILL_FREE_BYTES = 1e6
CHIP = replace(
    CATALOG.chip("h200-sxm"), num_sms=16, memory_bytes_per_s=1e6, peak_flop_per_s={"fp32": ENDLESS, "bf16": ENDLESS}
)  # fmt: skip
FORMATS = pytest.mark.parametrize(("precision", "width"), [("fp32", 4), ("bf16", 2)])
Timed = Callable[..., KernelTime]


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Timed:
    """One operator on a chip that reaches its bandwidth of 1 MB/s, and takes 1 s to write 65,536 bytes of a tile."""
    whole = {"memory_efficiency": 1.0, "small_memory_efficiency": 1.0}
    found = constant_sets()["generic"]
    toy = replace(
        found,
        gemm=replace(
            found.gemm, memory_efficiency=1.0, feed_bytes_per_s=ENDLESS, epilogue_bytes_per_s=65536.0,
            sm_stream_bytes_per_s=ENDLESS, l2_keep_bytes=SPILL_FREE_BYTES, tiles="coarse",
        ),
        decode=replace(found.decode, memory_efficiency=1.0),
        grouped=replace(found.grouped, **whole),
        batched=replace(found.batched, **whole),
        experts={
            "bf16": ExpertConstants(
                launch_s=0.0, tile_rows=64.0, power_efficiency=1.0, feed_bytes_per_s=ENDLESS, tile_s=0.0,
                ridge_sharpness=4.0, **whole,
            )
        },
    )  # fmt: skip

    def one(
        shape: Shape, precision: str, weights: str, *, weight_bytes: float = 0.0, serving: bool = False
    ) -> KernelTime:
        monkeypatch.setattr(kernels, "calibrate", lambda *_: Calibration(toy, "measured", serving))
        operator = Operator(
            name="one", shape=shape, precision=precision, weight_precision=weights, flop=1.0, read_bytes=1.0,
            write_bytes=1.0, weight_bytes=weight_bytes,
        )  # fmt: skip
        return time_operators(CHIP, [operator]).kernels[0]

    return one


@FORMATS
def test_a_product_writes_and_spills_its_result_at_full_width(
    timed: Timed, precision: str, width: int
) -> None:
    found = timed(Gemm(1024.0, 1024.0, 64.0), precision, precision)
    weights, inputs, results = 1024 * 64 * width, 1024 * 64 * width, 1024 * 1024 * width
    assert found.memory_s == pytest.approx((weights + inputs + results - SPILL_FREE_BYTES) / 1e6)
    # every tile of the menu divides 1,024 both ways, into a multiple of 16: each multiprocessor writes a 16th
    assert found.compute_s == pytest.approx(results / 16 / 65536)


@FORMATS
def test_prefill_reads_queries_and_writes_the_output_at_full_width(
    timed: Timed, precision: str, width: int
) -> None:
    found = timed(Attention(2.0, 256.0, 256.0, 4.0, 2.0, 64.0, 32.0), precision, "bf16")
    queries, output = 2 * 256 * 4 * 64 * width, 2 * 256 * 4 * 32 * width
    cache = 2 * 256 * 2 * (64 + 32) * 2
    assert found.memory_s == pytest.approx((queries + output + cache) / 1e6)


@FORMATS
def test_decode_reads_queries_and_writes_the_output_at_full_width(
    timed: Timed, precision: str, width: int
) -> None:
    found = timed(Attention(8.0, 1.0, 16.0, 64.0, 2.0, 128.0, 128.0), precision, "bf16")
    queries, output = 8 * 64 * 128 * width, 8 * 64 * 128 * width
    cache = 8 * 16 * 2 * (128 + 128) * 2
    assert found.memory_s == pytest.approx((queries + output + cache) / 1e6)


@FORMATS
@pytest.mark.parametrize(("batched", "serving"), [(False, True), (False, False), (True, False)])
def test_experts_write_their_rows_at_full_width(
    timed: Timed, precision: str, width: int, batched: bool, serving: bool
) -> None:
    weights = 3 * 256 * 64 * width  # of the three experts hit, out of eight
    shape = GroupedGemm(600.0, 8.0, 256.0, 64.0, batched)
    found = timed(shape, precision, precision, weight_bytes=weights, serving=serving)
    inputs, results = 600 * 64 * width, 600 * 256 * width
    assert found.memory_s == pytest.approx((weights + inputs + results) / 1e6)
