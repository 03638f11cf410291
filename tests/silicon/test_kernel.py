"""The time of a whole pass: what it adds up to, what binds, how sure it is, what is refused."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.silicon.kernel_case import CATALOG, passed, product, stream

from datahall.catalog.entries.chip import Chip
from datahall.errors import UnsupportedError
from datahall.scenario.words import LEVELS
from datahall.silicon.calibration import calibrate
from datahall.silicon.kernel import KernelTime, time_operators
from datahall.workload.forward import forward_pass

MODELS = ("llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b")
PUBLISHED = [
    chip
    for chip in CATALOG.chips()
    if {"bf16", "fp16"} & chip.peak_flop_per_s.keys() and math.isfinite(chip.memory_bytes_per_s)
]

few = settings(max_examples=40, deadline=None)
models = st.sampled_from(MODELS)


@few
@given(models, st.integers(1, 64).map(float), st.integers(1, 2000).map(float), st.booleans(), st.booleans())
def test_a_pass_is_the_sum_of_its_kernels(
    model: str, batch: float, query: float, graph: bool, sustained: bool
) -> None:
    found = passed("h200-sxm", model, batch=batch, query=query, graph=graph, sustained=sustained)
    assert found.total_s == pytest.approx(
        sum(one.operator.count * float(one.time_s) for one in found.kernels)
    )
    assert all(one.total_s == one.operator.count * one.time_s for one in found.kernels)
    assert len(found.kernels) == len(
        forward_pass(CATALOG.model(model), batch=batch, query=query, past=1000.0)
    )


@few
@given(models, st.integers(1, 64).map(float), st.integers(1, 2000).map(float))
def test_launching_from_the_host_is_never_faster(model: str, batch: float, query: float) -> None:
    graph, eager = (
        passed("h200-sxm", model, batch=batch, query=query, graph=graph) for graph in (True, False)
    )
    floor_s = eager.calibration.constants.stream.eager_kernel_s
    for replayed, launched in zip(graph.kernels, eager.kernels, strict=True):
        assert launched.time_s >= max(float(replayed.time_s), floor_s)


@few
@given(models, st.integers(1, 64).map(float), st.integers(1, 2000).map(float))
def test_a_settled_clock_is_never_faster_and_short_work_does_not_feel_it(
    model: str, batch: float, query: float
) -> None:
    settled, rested = (
        passed("h200-sxm", model, batch=batch, query=query, sustained=sustained)
        for sustained in (True, False)
    )
    droop = settled.calibration.constants.sustained
    for hot, cool in zip(settled.kernels, rested.kernels, strict=True):
        # another clock may make the library choose another tile
        slack = 0.2 if hot.kind == "gemm" else 1e-12
        assert cool.time_s * (1 - slack) <= hot.time_s <= cool.time_s / droop * (1 + slack)
    assert settled.total_s >= rested.total_s * (1 - 0.01)


def test_a_long_prefill_slows_down_at_the_power_limit() -> None:
    settled, rested = (
        passed("h200-sxm", query=8192.0, past=0.0, sustained=sustained).total_s for sustained in (True, False)
    )
    assert settled > 1.02 * rested


@few
@given(
    st.sampled_from(MODELS[:3]),
    st.integers(1, 32).map(float),
    st.sampled_from(["h200-sxm", "a100-sxm-80gb", "mi300x", "h100-pcie"]),
)
def test_nothing_takes_less_than_the_roofline_allows(model: str, batch: float, chip: str) -> None:
    found = passed(chip, model, batch=batch)
    assert 0 < found.roofline_s < found.total_s
    assert found.level == calibrate(CATALOG.chip(chip)).level


def test_a_pass_of_columns_equals_its_rows() -> None:
    random = np.random.default_rng(0)
    batch = np.floor(2.0 ** random.uniform(0, 6, 50))
    past = np.floor(2.0 ** random.uniform(4, 13, 50))
    model, chip = CATALOG.model("llama-3.1-8b"), CATALOG.chip("h200-sxm")
    together = time_operators(chip, forward_pass(model, batch=batch, query=1.0, past=past)).total_s
    alone = [
        time_operators(chip, forward_pass(model, batch=b, query=1.0, past=p)).total_s
        for b, p in zip(batch, past, strict=True)
    ]
    assert np.shape(together) == (50,)
    assert together == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("chip", PUBLISHED, ids=lambda chip: chip.name)
def test_every_chip_with_a_peak_and_a_bandwidth_gives_a_time(chip: Chip) -> None:
    """Faster than its weights can be read it is not; slower than ten times that, plus launches, neither."""
    precision = "bf16" if "bf16" in chip.peak_flop_per_s else "fp16"
    found = passed(chip, batch=1.0, precision=precision)
    weights_s = 15.0e9 / chip.memory_bytes_per_s  # 7.5e9 weights of a layer or the head, two bytes each
    assert weights_s < found.total_s < 10 * weights_s + 5e-3
    assert found.level in LEVELS.values()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chip", ["h200-sxm", "mi300x", "tpu-v5p", "a100-sxm-80gb"])
def test_every_kind_of_operator_has_a_time_under_its_roof(name: str, chip: str) -> None:
    """Only what a cache holds between two kernels may beat the bandwidth of main memory."""
    machine = CATALOG.chip(chip)
    for query, past in ((1.0, 2000.0), (2048.0, 0.0)):
        for kernel in passed(machine, name, query=query, past=past).kernels:
            peak = machine.peak(kernel.operator.precision)
            assert np.isfinite(kernel.time_s)
            assert kernel.time_s > 0
            assert kernel.time_s >= kernel.operator.flop / peak, kernel.operator.name
            weights_s = kernel.operator.weight_bytes / machine.memory_bytes_per_s
            if kernel.kind != "stream":
                assert kernel.time_s >= weights_s, kernel.operator.name


def test_decode_is_bound_by_memory_prefill_by_compute_and_little_work_by_its_launch() -> None:
    decode = {one.operator.name: one.bound for one in passed("h200-sxm").kernels}
    prefill = {one.operator.name: one.bound for one in passed("h200-sxm", query=4096.0, past=0.0).kernels}
    assert decode["gate_up"] == "memory"
    assert prefill["gate_up"] == "compute"
    assert decode["kv_write"] == "launch"


def test_a_large_product_takes_less_than_twice_what_the_datasheet_allows() -> None:
    big = time_operators(CATALOG.chip("h200-sxm"), [product(8192, 8192, 8192, "bf16")]).kernels[0]
    assert 0.5 < big.roofline_s / big.time_s < 1


@pytest.mark.parametrize(
    ("chip", "precision", "why"),
    [
        ("a100-sxm-80gb", "fp8", "has no FP8"),
        ("v100-sxm2-32gb", "bf16", "has no BF16"),
        ("h200-sxm", "nvfp4", "has no FP4"),
        ("tpu-8t", "bf16", "BF16 peak of Google TPU 8t is not known"),
    ],
)
def test_a_precision_that_a_chip_lacks_is_refused(chip: str, precision: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why) as caught:
        passed(chip, precision=precision)
    assert caught.value.hint.startswith("it has ")


def test_attention_alone_is_refused_too() -> None:
    step = forward_pass(CATALOG.model("llama-3.1-8b"), batch=1.0, query=1.0, past=99.0)
    core = [one for one in step if one.name == "attention"]
    with pytest.raises(UnsupportedError, match="has no BF16"):
        time_operators(CATALOG.chip("v100-sxm2-32gb"), core)


def test_a_chip_without_a_published_bandwidth_is_refused_for_every_kind_of_kernel() -> None:
    blank = msgspec.structs.replace(CATALOG.chip("h200-sxm"), memory_bytes_per_s=math.nan)
    step = forward_pass(CATALOG.model("deepseek-v3"), batch=1.0, query=1.0, past=99.0)
    for operator in (*step, stream(1e6)):
        with pytest.raises(UnsupportedError, match=r"memory bandwidth of .* is not published"):
            time_operators(blank, [operator])


def test_weights_of_four_bits_read_fewer_bytes() -> None:
    """Weight-only quantisation: bf16 arithmetic on weights of half a byte and their scales."""
    chip = CATALOG.chip("h200-sxm")
    wide, narrow = (
        time_operators(chip, [product(1, 16384, 16384, "bf16", weights)]).kernels[0]
        for weights in ("bf16", "int4")
    )
    assert narrow.memory_s / wide.memory_s == pytest.approx((0.5 + 2 / 128) / 2, rel=0.05)
    decode = [passed(chip, batch=1.0, precision=precision).total_s for precision in ("bf16", "fp8", "w4a16")]
    assert decode == sorted(decode, reverse=True)


def test_arithmetic_inside_a_stream_is_not_free() -> None:
    chip = CATALOG.chip("h200-sxm")
    idle, busy = (time_operators(chip, [stream(1e6, flop=flop)]).kernels[0] for flop in (0.0, 1e15))
    assert idle.compute_s == 0
    assert busy.time_s == busy.compute_s == 1e15 / chip.peak("bf16")


def test_a_stack_is_handed_on() -> None:
    for stack in ("pytorch", "vllm"):
        assert passed("h200-sxm", stack=stack).calibration.constants.stack == stack


def test_a_level_is_handed_on() -> None:
    for level, basis in LEVELS.items():
        assert passed("h200-sxm", level=level).level == basis


def kernel(time_s: float, compute_s: float, memory_s: float) -> KernelTime:
    return KernelTime(
        operator=stream(1.0), kind="stream", time_s=time_s, compute_s=compute_s, memory_s=memory_s, roofline_s=1.0,
        launch_s=0.0
    )  # fmt: skip


@pytest.mark.parametrize(
    ("times", "bound"),
    [
        ((10.0, 4.9, 4.9), "launch"),  # neither is half of it
        ((10.0, 5.0, 1.0), "compute"),
        ((10.0, 1.0, 5.0), "memory"),
        ((10.0, 6.0, 7.0), "memory"),
        ((10.0, 7.0, 7.0), "compute"),
    ],
)
def test_a_kernel_is_bound_by_what_most_of_its_time_goes_to(
    times: tuple[float, float, float], bound: str
) -> None:
    assert kernel(*times).bound == bound
