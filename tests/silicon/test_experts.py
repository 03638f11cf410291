"""Experts under a serving engine: weights of the experts hit, tiles of uneven rows, a floor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.silicon.calibration import Constants, constant_sets, kernel_format
from datahall.silicon.experts import expert_times
from datahall.silicon.kernel import time_operators
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
