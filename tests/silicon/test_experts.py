"""Experts under a serving engine: weights of the experts hit, tiles of uneven rows, a floor."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.silicon.calibration import Constants, constant_sets
from datahall.silicon.experts import ExpertConstants, expert_times
from datahall.silicon.kernel import time_operators
from datahall.silicon.kernel_formats import KERNELS, casts_input, experts_like, kernel_format
from datahall.silicon.roofline import BoundTimes
from datahall.workload.forward import forward_pass
from datahall.workload.operator import GroupedGemm, Number
from datahall.workload.precision import Precision

CATALOG = Catalog(user=False)
STACKS = ("vllm", "trtllm", "sglang")
SERVING = [one for one in constant_sets().values() if one.experts]

few = settings(max_examples=60, deadline=None)
sets = st.sampled_from(SERVING)
rows = st.integers(1, 100_000).map(float)
widths = st.integers(64, 20_000).map(float)


def timed(
    constants: Constants, num_rows: Number, hit: Number, n: Number = 4096.0, k: Number = 2048.0
) -> BoundTimes:
    chip = CATALOG.chip(constants.chip)
    return expert_times(
        GroupedGemm(num_rows, 256.0, n, k),
        hit,
        constants.experts["bf16"],
        num_sms=float(chip.num_sms),
        peak_flop_per_s=chip.peak("bf16"),
        memory_bytes_per_s=chip.memory_bytes_per_s,
        weight_bytes=2.0,
        activation_bytes=2.0,
        output_bytes=2.0,
    )


@few
@given(sets, rows, widths, widths)
def test_no_layer_beats_its_roofline(constants: Constants, num_rows: float, n: float, k: float) -> None:
    chip = CATALOG.chip(constants.chip)
    hit = min(num_rows, 256.0)
    got = timed(constants, num_rows, hit, n, k).time_s
    assert got >= hit * n * k * 2.0 / chip.memory_bytes_per_s
    assert got >= 2.0 * num_rows * n * k / chip.peak("bf16")


@few
@given(sets, rows)
def test_more_experts_hit_take_longer(constants: Constants, num_rows: float) -> None:
    one, all_of_them = timed(constants, num_rows, 1.0), timed(constants, num_rows, min(num_rows, 256.0))
    assert all_of_them.memory_s >= one.memory_s * 0.7  # a library may stream faster for few rows each


def test_columns_are_their_scalars() -> None:
    constants = SERVING[0]
    together = timed(constants, np.array([4.0, 400.0]), np.array([4.0, 200.0])).time_s
    apart = [timed(constants, 4.0, 4.0).time_s, timed(constants, 400.0, 200.0).time_s]
    assert np.allclose(together, np.ravel(apart))


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_times_its_own_experts(stack: str) -> None:
    model, chip = CATALOG.model("qwen3-30b-a3b"), CATALOG.chip("h100-sxm")
    experts = [
        one for one in forward_pass(model, batch=32, query=1, past=1000.0) if one.name == "expert_gate_up"
    ]
    own = time_operators(chip, experts, stack=stack).kernels[0].time_s
    shared = time_operators(chip, experts).kernels[0].time_s
    assert own != shared
    assert 0.3 < own / shared < 3.0


def test_block_scales_are_another_kernel_than_one_scale_per_tensor() -> None:
    model, chip = CATALOG.model("qwen3-30b-a3b"), CATALOG.chip("h100-sxm")
    passed = forward_pass(model, batch=32, query=1, past=1000.0, precision=Precision.named("fp8"))
    per_tensor, per_block = (
        time_operators(chip, passed, stack="vllm", block_scaled=scaled).total_s for scaled in (False, True)
    )
    assert per_block < per_tensor  # vLLM's per-tensor experts stream at a fifth of the bandwidth on Hopper


@pytest.mark.parametrize(
    ("precision", "weights", "block_scaled", "kernel"),
    [
        ("bf16", "bf16", False, "bf16"),
        ("bf16", "bf16", True, "bf16"),
        ("fp8", "fp8", True, "fp8-block"),
        ("bf16", "int4", False, "int4-bf16"),
        ("bf16", "mxfp4", False, "mxfp4-bf16"),
        ("fp8", "mxfp4", False, "mxfp4-fp8"),
        ("nvfp4", "nvfp4", False, "fp4"),
    ],
)
def test_the_kernel_follows_from_both_formats(
    precision: str, weights: str, block_scaled: bool, kernel: str
) -> None:
    assert kernel_format(precision, weights, block_scaled=block_scaled) == kernel


def test_a_format_that_was_not_measured_takes_the_nearest() -> None:
    constants = next(one for one in SERVING if "int4-bf16" not in one.experts)
    assert constants.expert("int4-bf16") is not None
    assert constants.expert("fp16") == constants.experts["bf16"]


# On 4 multiprocessors a block of h rows × 128 columns takes h/64 s of arithmetic for each step of k, or the feed of
# 2·(h + 128) bytes at 1,024 B/s; each tile starts in 1 s.  At a sharpness of 1 compute and memory add up.
TOY = ExpertConstants(
    launch_s=100.0, memory_efficiency=0.5, small_memory_efficiency=0.25, tile_rows=32.0, power_efficiency=0.5,
    feed_bytes_per_s=1024.0, tile_s=1.0, ridge_sharpness=1.0,
)  # fmt: skip


def by_hand(
    num_rows: float, hit: float, n: float, widths: tuple[float, float] = (2.0, 2.0), **changed: float
) -> BoundTimes:
    return expert_times(
        GroupedGemm(num_rows, 8.0, n, 10.0), hit, msgspec.structs.replace(TOY, **changed), num_sms=4.0,
        peak_flop_per_s=2.0**17, memory_bytes_per_s=1000.0, weight_bytes=widths[0], activation_bytes=widths[1],
        output_bytes=2.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("num_rows", "hit", "n", "widths", "compute_s"),
    [
        # blocks of 32 for 32 rows each: 1½ for each of 2 experts, 2 tiles across: 6 tiles are 1½ waves of 10 · ½ + 1 s
        # (of 16 they would be 2½ waves of 3.8125 s, of 64 one wave of 11 s)
        (64.0, 2.0, 256.0, (2.0, 2.0), 9.0),
        (64.0, 2.0, 129.0, (2.0, 2.0), 9.0),  # a column more is a tile more
        (64.0, 2.0, 128.0, (2.0, 2.0), 1.25 * 3.8125),  # 5 tiles of 16 rows
        (2.0, 2.0, 256.0, (2.0, 2.0), 3.8125),  # one row costs a block of 16, fed for 0.28125 s a step
        (2.0, 0.5, 256.0, (2.0, 2.0), 3.8125),  # no less than one expert
        (2.0, 2.0, 256.0, (1.0, 1.0), 2.5 + 1),  # half the feed: arithmetic binds
        (2.0, 2.0, 256.0, (0.5, 2.0), 3.8125),  # narrow weights are widened before they are fed
        (2.0, 2.0, 256.0, (2.0, 0.5), 10 * (16 * 0.5 + 256) / 1024 + 1),
        (2.0, 2.0, 64.0, (2.0, 2.0), 3.8125),  # less than a wave is a wave
        (16.0, 2.0, 1024.0, (2.0, 2.0), 4 * 3.8125),  # 8 rows each are half a block: one each is enough
        (17.0, 2.0, 1024.0, (2.0, 2.0), 2 * (17 / 2 / 16 + 0.5) * 8 / 4 * 3.8125),
    ],
)
def test_blocks_and_waves_by_hand(
    num_rows: float, hit: float, n: float, widths: tuple[float, float], compute_s: float
) -> None:
    assert by_hand(num_rows, hit, n, widths).compute_s == pytest.approx(compute_s)


def test_tall_blocks_serve_many_rows() -> None:
    """4,096 rows of one expert: 16½ blocks of 256 are never more than one and a half times the arithmetic at peak."""
    found = by_hand(4096.0, 1.0, 128.0, tile_s=0.0, feed_bytes_per_s=1e12)
    exact_s = 2 * 4096 * 128 * 10 / 2.0**16
    assert exact_s < found.compute_s < 1.01 * exact_s  # half a block of 16 rows more
    start_s = by_hand(4096.0, 1.0, 128.0, tile_s=100.0, feed_bytes_per_s=1e12).compute_s
    assert start_s == pytest.approx(16.5 / 4 * (10 * 4 + 100))


@pytest.mark.parametrize(
    ("num_rows", "hit", "widths", "moved", "share"),
    [
        (
            128.0,
            2.0,
            (2.0, 2.0),
            2 * 2560 * 2 + 128 * (20 + 512),
            0.5,
        ),  # 64 rows each: all experts have a full tile
        (32.0, 2.0, (2.0, 2.0), 2 * 2560 * 2 + 32 * (20 + 512), 0.25),  # 16 rows each: none has
        (
            64.0,
            2.0,
            (2.0, 2.0),
            2 * 2560 * 2 + 64 * (20 + 512),
            1 / 3,
        ),  # 32 in the mean: half of them at each rate
        (
            128.0,
            2.0,
            (0.5, 1.0),
            2 * 2560 * 0.5 + 128 * (10 + 512),
            0.5,
        ),  # results are 16 bits whatever goes in
    ],
)
def test_weights_of_the_experts_hit_rows_in_and_rows_out_are_moved(
    num_rows: float, hit: float, widths: tuple[float, float], moved: float, share: float
) -> None:
    found = by_hand(num_rows, hit, 256.0, widths)
    assert found.memory_s == pytest.approx(moved / (1000.0 * share))
    assert found.time_s == pytest.approx(100.0 + found.memory_s + found.compute_s)


@pytest.mark.parametrize(
    ("name", "form"), [(one.name, form) for one in SERVING for form in one.experts], ids="-".join
)
def test_no_row_more_makes_a_leap(name: str, form: str) -> None:
    """Every expert is hit already; a hundredth more rows of each takes no more than a few hundredths longer or less."""
    constants = next(one for one in SERVING if one.name == name).experts[form]
    rows = 128.0 * np.geomspace(1.0, 1024.0, 1000)
    took = np.asarray(
        expert_times(
            GroupedGemm(rows, 128.0, 1536.0, 2048.0), 128.0, constants, num_sms=132.0, peak_flop_per_s=1e15,
            memory_bytes_per_s=4e12, weight_bytes=1.0, activation_bytes=1.0,
            output_bytes=2.0,
        ).time_s
    )  # fmt: skip
    assert np.max(np.abs(np.diff(took)) / took[1:]) < 0.03


@pytest.mark.parametrize("kernel", ["fp32", "tf32", "fp16", "bf16", *KERNELS])
def test_experts_of_wide_arithmetic_take_no_narrow_constants_first(kernel: str) -> None:
    if casts_input(kernel):
        return
    near = experts_like(kernel)
    assert not any(casts_input(one) for one in near[: near.index("bf16")])
