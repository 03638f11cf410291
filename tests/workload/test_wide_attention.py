"""Checkpoints of 4-bit experts keep attention in 16 bits: what a step streams is what lies in memory."""

from __future__ import annotations

import pytest

from datahall.catalog import Catalog
from datahall.workload.forward import PROJECTIONS, forward_pass, served_pass
from datahall.workload.memory.figure import weights_figure
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.parameters import ATTENTION, LATENT, count_parameters
from datahall.workload.precision import Precision, attention_stays_wide

SHELF = Catalog(user=False)


@pytest.mark.parametrize(
    ("name", "precision", "wide", "absorbed"),
    [
        ("gpt-oss-120b", "mxfp4", True, 0),
        ("gpt-oss-120b", "bf16", False, 0),
        ("deepseek-v3", "nvfp4", True, 61 * 128 * (128 + 128) * 512),
        ("deepseek-v3", "fp8", False, 61 * 128 * (128 + 128) * 512),
        ("kimi-k2", "w4a16", True, 61 * 64 * (128 + 128) * 512),
        ("qwen3-30b-a3b", "w4a16", False, 0),
        ("llama-3.1-8b", "mxfp4", False, 0),
    ],
)
def test_what_a_step_streams_of_attention_lies_in_memory(
    name: str, precision: str, wide: bool, absorbed: int
) -> None:
    """Of MLA, what raises a latent to the keys and values of every head is absorbed into products that are not among
    the projections; everything else is streamed once, but for the biases of gpt-oss, a 5,000th of its attention."""
    model, formats = SHELF.model(name), Precision.named(precision)
    assert attention_stays_wide(model, formats) == wide
    parts = {part.name: part.count for part in count_parameters(model).parts}
    held = {part.name: part.value for part in weights_figure(model, formats, tp=1).parts}
    width = 2.0 if wide else formats.weight_bytes_per_value
    for part in (ATTENTION, LATENT):
        if part in parts:
            assert held[part] == pytest.approx(parts[part] * width)
    every = served_pass(
        lambda one: forward_pass(model, batch=1.0, query=1.0, past=100.0, precision=one), model, formats
    )
    streamed = sum(float(one.weight_bytes) * one.count for one in every if one.name in PROJECTIONS)
    projections = sum(parts.get(part, 0) for part in (ATTENTION, LATENT))
    assert streamed == pytest.approx((projections - absorbed) * width, rel=3e-4 if "gpt" in name else 1e-12)
    assert [one.name for one in every if "quantise" in one.name and "qkv" in one.name] == [] or not wide


def test_cut_over_chips_the_whole_is_what_the_figure_says() -> None:
    model, formats = SHELF.model("deepseek-v3"), Precision.named("nvfp4")
    counts = count_parameters(model)
    one, eight = (float(serving_weight_bytes(model, counts, formats, tp=tp, ep=tp)) for tp in (1.0, 8.0))
    assert one == pytest.approx(weights_figure(model, formats, tp=1).value)
    narrow = float(serving_weight_bytes(model, counts, formats)) / counts.total
    assert 0.5625 < narrow < 0.62
    latent = 2.0 * next(part.count for part in counts.parts if part.name == LATENT)
    assert eight > one / 8 + latent * 7 / 8


def test_gpt_oss_is_as_large_as_its_makers_say() -> None:
    """60.8 GiB, the checkpoint of OpenAI's model card (2025)."""
    model = SHELF.model("gpt-oss-120b")
    held = float(serving_weight_bytes(model, count_parameters(model), Precision.named("mxfp4")))
    assert held / 2**30 == pytest.approx(60.8, abs=0.15)
