"""No kernel beats its chip: neither its arithmetic at peak nor the bytes that no cache holds, in any format."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.silicon.kernel_case import CATALOG, passed

from datahall.errors import ScenarioError, UnsupportedError
from datahall.silicon.calibration import Constants
from datahall.silicon.kernel import KernelTime, scalar
from datahall.workload.precision import PRESETS

CHIPS = ("h200-sxm", "h100-sxm", "a100-sxm-80gb", "b200-sxm", "l40s", "rtx-4090", "mi300x", "tpu-v5p")
MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-20b", "gemma-3-27b")


def cached_bytes(kernel: KernelTime, constants: Constants) -> float:
    """What a kernel may find in L2: activations of a product, a stream that does not outgrow it by half [B]."""
    match kernel.kind:
        case "gemm":
            return constants.gemm.l2_keep_bytes
        case "stream":
            return 1.5 * constants.stream.l2_keep_bytes
        case _:
            return 0.0


@pytest.mark.parametrize("precision", PRESETS)
@settings(max_examples=40, deadline=None)
@given(
    chip=st.sampled_from(CHIPS),
    model=st.sampled_from(MODELS),
    batch=st.integers(1, 1024),
    query=st.sampled_from((1, 1, 16, 512, 4096)),
    past=st.integers(0, 16384),
    stack=st.sampled_from((None, None, "vllm")),
)
@example(chip="l40s", model="deepseek-v3", batch=256, query=1, past=2047, stack=None)
def test_no_kernel_beats_its_chip(
    precision: str, chip: str, model: str, batch: int, query: int, past: int, stack: str | None
) -> None:
    try:
        timed = passed(chip, model, batch=batch, query=query, past=past, precision=precision, stack=stack)
    except (UnsupportedError, ScenarioError):
        return  # the chip has no such arithmetic, or no constants of that software
    machine = CATALOG.chip(chip)
    for kernel in timed.kernels:
        operator = kernel.operator
        moved = operator.read_bytes + operator.write_bytes - cached_bytes(kernel, timed.calibration.constants)
        least_s = max(
            scalar(operator.flop) / machine.peak(operator.precision),
            scalar(moved) / machine.memory_bytes_per_s,
        )
        assert scalar(kernel.time_s) >= least_s * (1 - 1e-9), operator.name


@pytest.mark.parametrize("chip", [chip.name for chip in CATALOG.chips()])
def test_no_pass_beats_its_roofline(chip: str) -> None:
    """What L2 keeps need not cross main memory, so that the roofline does not count it."""
    for model in ("gemma-3-1b", "llama-3.1-8b", "deepseek-v2-lite", "qwen3-next-80b-a3b"):
        for batch, query in ((1, 1), (32, 1), (512, 1), (1, 128), (32, 128), (4, 2048)):
            for precision in ("bf16", "fp16", "fp8"):
                try:
                    found = passed(chip, model, batch=batch, query=query, past=128, precision=precision)
                except UnsupportedError:
                    continue
                assert 0 < found.roofline_s <= scalar(found.total_s), (model, batch, query, precision)
                for kernel in found.kernels:
                    assert scalar(kernel.roofline_s) <= scalar(kernel.time_s) * (1 + 1e-9)
