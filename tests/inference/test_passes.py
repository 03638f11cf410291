"""What an engine folds into other kernels, keeps wide or runs beside them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from datahall.inference.engine.replica import Replica
from datahall.inference.step.kernels import Passes

Serve = Callable[..., Replica]
ONE = np.array([1.0])


def named(replica: Replica, name: str) -> list[float]:
    kernels = Passes.of(replica).token_kernels(np.array([4.0]))
    return [float(np.ravel(one.time_s)[0]) for one in kernels if one.operator.name == name]


def names(replica: Replica) -> set[str]:
    return {one.name for one in Passes.of(replica).operators(ONE, 1.0, 100.0)}


@pytest.mark.parametrize(("engine", "kept"), [("vllm", True), ("trtllm", False)])
def test_a_cast_to_fp8_rides_on_the_kernel_before_it(serve: Serve, engine: str, kept: bool) -> None:
    found = names(serve("llama-3.1-70b", precision="fp8", engine_name=engine, tp=4))
    assert not found & {"qkv_quantise", "gate_up_quantise", "down_quantise"}
    assert ("attention_output_quantise" in found) == kept


def test_a_cast_with_a_scale_per_block_is_a_kernel_of_its_own(serve: Serve) -> None:
    replica = serve("deepseek-v3", precision="fp8", tp=8, block_scaled=True)
    assert {"qkv_down_quantise", "gate_up_quantise", "down_quantise"} <= names(replica)


def test_a_reduction_that_normalises_spares_the_launch_of_a_norm(serve: Serve) -> None:
    alone, reduced = (serve("llama-3.1-70b", engine_name="trtllm", tp=tp) for tp in (1, 4))
    launch_s = Passes.of(alone).calibration.constants.stream.kernel_s
    for name in ("mixer_norm", "mlp_norm"):
        assert named(alone, name)[0] - named(reduced, name)[0] == pytest.approx(launch_s)
    assert named(alone, "final_norm") == named(reduced, "final_norm")


def test_mixtures_of_four_bits_keep_attention_in_sixteen(serve: Serve) -> None:
    replica = serve("deepseek-v3", chip="b200-sxm", precision="nvfp4", tp=4)
    formats = {one.name: one.weight_precision for one in Passes.of(replica).operators(ONE, 1.0, 100.0)}
    assert {formats[name] for name in ("qkv_down", "q_up", "attention_output")} == {"bf16"}
    assert formats["expert_down"] == formats["shared_down"] == formats["down"] == "nvfp4"
    assert "attention_output_quantise" not in formats
    dense = serve("llama-3.1-70b", chip="b200-sxm", precision="nvfp4", tp=4)
    assert {
        one.weight_precision for one in Passes.of(dense).operators(ONE, 1.0, 1.0) if one.name == "qkv"
    } == {"nvfp4"}


def test_shared_experts_beside_routed_ones_cost_their_traffic_alone(serve: Serve) -> None:
    replica = serve("deepseek-v3", precision="fp8", tp=8)
    kernels = Passes.of(replica).token_kernels(np.array([4.0, 4096.0]))
    (product,) = [one for one in kernels if one.operator.name == "shared_gate_up"]
    few, many = np.ravel(product.time_s)
    moved = float(np.ravel(product.operator.weight_bytes)[0])
    assert few < 2 * moved / replica.chip.memory_bytes_per_s
    assert many > 10 * few
    routed = [one for one in kernels if one.operator.name == "expert_gate_up"]
    assert float(np.ravel(routed[0].time_s)[0]) > few


def test_engines_norms_are_faster_than_the_frameworks(serve: Serve) -> None:
    """PyTorch's own norm of one row of 8,192 takes 7 µs on an H200, a compiled one 2 to 3."""
    replica = serve("llama-3.1-70b", chip="h200-sxm", tp=4)
    stream = Passes.of(replica).calibration.constants.stream
    assert 2e-6 < stream.kernel_s + 8192 * stream.row_element_s < 3e-6
    assert msgspec.structs.replace(stream, served_kernel_s=0.0).served.kernel_s == stream.kernel_s
