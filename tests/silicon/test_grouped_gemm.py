"""Experts of a mixture in one kernel."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.silicon.calibration import calibrate
from datahall.silicon.grouped_gemm import GroupedConstants, grouped_times
from datahall.silicon.kernel import time_operators
from datahall.silicon.roofline import BoundTimes
from datahall.workload.forward import forward_pass
from datahall.workload.operator import GroupedGemm, Number
from datahall.workload.precision import Precision

CATALOG = Catalog(user=False)
CHIPS = ("h200-sxm", "a100-sxm-80gb", "b200-sxm", "mi300x", "tpu-v5p")

few = settings(max_examples=60, deadline=None)
chips = st.sampled_from(CHIPS)
rows = st.integers(1, 100_000).map(float)
experts = st.sampled_from([1.0, 8.0, 64.0, 256.0])
widths = st.integers(64, 20_000).map(float)


def timed(
    chip: str,
    num_rows: Number,
    num_experts: float,
    n: Number,
    k: Number,
    hit: Number,
    weight_bytes: float = 2.0,
) -> BoundTimes:
    machine = CATALOG.chip(chip)
    return grouped_times(
        GroupedGemm(num_rows, num_experts, n, k),
        hit,
        calibrate(machine).constants.grouped,
        peak_flop_per_s=machine.peak("bf16"),
        memory_bytes_per_s=machine.memory_bytes_per_s,
        weight_bytes=weight_bytes,
        activation_bytes=2.0,
        output_bytes=2.0,
    )


@few
@given(chips, rows, experts, widths, widths)
def test_no_mixture_beats_its_arithmetic_or_its_weights(
    chip: str, num_rows: float, num_experts: float, n: float, k: float
) -> None:
    machine, hit = CATALOG.chip(chip), min(num_rows, num_experts)
    time_s = timed(chip, num_rows, num_experts, n, k, hit).time_s
    assert time_s >= 2 * num_rows * n * k / machine.peak("bf16")
    assert time_s >= 2 * hit * n * k / machine.memory_bytes_per_s


@few
@given(chips, rows, st.integers(1, 5000).map(float), experts, widths, widths)
def test_more_rows_are_never_faster_on_the_same_side_of_a_full_block(
    chip: str, num_rows: float, more: float, num_experts: float, n: float, k: float
) -> None:
    """A kernel of full blocks streams its weights better, so only on the way to it may more rows be faster."""
    hit = min(num_rows, num_experts)
    tile_rows = calibrate(CATALOG.chip(chip)).constants.grouped.tile_rows
    assume(num_rows / hit >= tile_rows or (num_rows + more) / hit <= tile_rows / 2)
    now, then = (timed(chip, count, num_experts, n, k, hit).time_s for count in (num_rows, num_rows + more))
    assert then >= now * (1 - 1e-12)


@few
@given(chips, rows, experts, widths, widths)
def test_wider_experts_are_never_faster(
    chip: str, num_rows: float, num_experts: float, n: float, k: float
) -> None:
    hit = min(num_rows, num_experts)
    now = timed(chip, num_rows, num_experts, n, k, hit).time_s
    assert timed(chip, num_rows, num_experts, 2 * n, k, hit).time_s > now
    assert timed(chip, num_rows, num_experts, n, 2 * k, hit).time_s > now


def test_an_expert_costs_a_whole_block_and_then_as_many_rows_as_it_has() -> None:
    pad = calibrate(CATALOG.chip("h200-sxm")).constants.grouped.pad_rows
    one, full, more = (
        timed("h200-sxm", 8 * count, 8.0, 4096.0, 4096.0, 8.0).compute_s for count in (1.0, pad, 1.5 * pad)
    )
    assert one == full
    assert more == pytest.approx(1.5 * full)


@few
@given(chips, st.floats(0.5, 4000.0), experts, widths, widths)
def test_a_row_more_is_no_leap(chip: str, each: float, num_experts: float, n: float, k: float) -> None:
    """Blocks and tiles are thresholds of one expert; of many the means cross them little by little."""
    near = [
        timed(chip, num_experts * rows, num_experts, n, k, num_experts).time_s for rows in (each, each + 1e-6)
    ]
    assert near[1] == pytest.approx(near[0], rel=1e-4)


def test_only_the_experts_that_a_token_reaches_are_read() -> None:
    few_hit, all_hit = (timed("h200-sxm", 64.0, 256.0, 4096.0, 7168.0, hit) for hit in (8.0, 64.0))
    assert all_hit.memory_s / few_hit.memory_s == pytest.approx(8.0, rel=0.05)


def test_narrow_weights_are_read_faster() -> None:
    wide, narrow = (timed("h200-sxm", 64.0, 64.0, 4096.0, 7168.0, 64.0, size) for size in (2.0, 0.5))
    assert narrow.memory_s < 0.3 * wide.memory_s


@pytest.mark.parametrize("model", ["mixtral-8x7b", "deepseek-v3", "qwen3-235b-a22b"])
def test_a_small_batch_of_a_mixture_is_held_back_by_memory(model: str) -> None:
    step = forward_pass(CATALOG.model(model), batch=4.0, query=1.0, past=1000.0)
    experts_of = [one for one in step if isinstance(one.shape, GroupedGemm) and "expert" in one.name]
    assert experts_of
    assert {kernel.bound for kernel in time_operators(CATALOG.chip("h200-sxm"), experts_of).kernels} == {
        "memory"
    }


def test_fp8_experts_are_faster_than_bf16_ones() -> None:
    def seconds(precision: str) -> float:
        step = forward_pass(
            CATALOG.model("mixtral-8x7b"),
            batch=64.0,
            query=1.0,
            past=1000.0,
            precision=Precision.named(precision),
        )
        products = [one for one in step if isinstance(one.shape, GroupedGemm)]
        return float(time_operators(CATALOG.chip("h200-sxm"), products).total_s)

    assert seconds("fp8") < 0.7 * seconds("bf16")


def test_a_column_holds_what_each_shape_alone_gives() -> None:
    random = np.random.default_rng(0)
    counts, n = np.floor(2.0 ** random.uniform(0, 14, 20)), np.floor(2.0 ** random.uniform(6, 14, 20))
    hit = np.minimum(counts, 64.0)
    together = timed("h200-sxm", counts, 64.0, n, 4096.0, hit).time_s
    alone = [
        float(timed("h200-sxm", *row[:1], 64.0, row[1], 4096.0, row[2]).time_s)
        for row in zip(counts, n, hit, strict=True)
    ]
    assert together == pytest.approx(alone, rel=1e-12)


TOY = GroupedConstants(
    launch_s=100.0, memory_efficiency=0.5, small_memory_efficiency=0.25, power_efficiency=0.5, tile_rows=8.0,
    pad_rows=4.0, ridge_sharpness=1.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("num_rows", "hit", "widths", "padded", "moved", "share"),
    [
        # 2 experts of 10 × 16 weights; a row is 10 values in and 16 of two bytes out
        (16.0, 2.0, (2.0, 2.0), 16, 2 * 320 + 16 * (20 + 32), 0.5),
        # 7 rows each: of every octave below a full tile log2(7/8) is missing
        (14.0, 2.0, (2.0, 2.0), 14, 2 * 320 + 14 * (20 + 32), 1 / (2 - 2 * log2(7 / 8))),
        (8.0, 2.0, (2.0, 2.0), 8, 2 * 320 + 8 * (20 + 32), 0.25),
        (18.0, 2.0, (2.0, 2.0), 18, 2 * 320 + 18 * (20 + 32), 0.5),
        (16.0, 2.0, (1.0, 1.0), 16, 2 * 160 + 16 * (10 + 32), 0.5),
        (16.0, 2.0, (0.5, 2.0), 16, 2 * 80 + 16 * (20 + 32), 0.5),
        (3.0, 0.5, (2.0, 2.0), 4, 320 + 3 * (20 + 32), 0.25),  # some row reaches one expert at least
    ],
)
def test_a_mixture_by_hand(
    num_rows: float, hit: float, widths: tuple[float, float], padded: float, moved: float, share: float
) -> None:
    found = grouped_times(
        GroupedGemm(num_rows, 8.0, 16.0, 10.0), hit, TOY, peak_flop_per_s=64.0, memory_bytes_per_s=1000.0,
        weight_bytes=widths[0], activation_bytes=widths[1],
        output_bytes=2.0,
    )  # fmt: skip
    assert found.compute_s == pytest.approx(2 * padded * 160 / 32)
    assert found.memory_s == pytest.approx(moved / (1000 * share))
    assert found.time_s == pytest.approx(100 + found.compute_s + found.memory_s)
