import pytest

from datahall.catalog.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.catalog.number_formats import bytes_per_value
from datahall.errors import UnknownNameError
from datahall.workload.precision import PRESETS, Precision, block_scaled


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fp32", 4), ("bf16", 2), ("fp8", 1), ("int4", 0.5 + 2 / 128), ("mxfp4", 17 / 32), ("nvfp4", 9 / 16)],
)
def test_a_value_takes_its_format_and_its_share_of_the_scale(name: str, expected: float) -> None:
    assert bytes_per_value(name) == expected


@pytest.mark.parametrize(
    ("preset", "weights", "activations", "kv", "compute"),
    [
        ("bf16", "bf16", "bf16", "bf16", "bf16"),
        ("fp16", "fp16", "fp16", "fp16", "fp16"),
        ("fp8", "fp8", "fp8", "bf16", "fp8"),
        ("fp8-kv8", "fp8", "fp8", "fp8", "fp8"),
        ("w4a16", "int4", "bf16", "bf16", "bf16"),
        ("w8a16", "int8", "bf16", "bf16", "bf16"),
        ("w4a8", "int4", "fp8", "bf16", "fp8"),
        ("int8", "int8", "int8", "bf16", "int8"),
        ("nvfp4", "nvfp4", "nvfp4", "bf16", "fp4"),
        ("tf32", "fp32", "fp32", "fp32", "tf32"),
    ],
)
def test_presets(preset: str, weights: str, activations: str, kv: str, compute: str) -> None:
    precision = Precision.named(preset)
    assert (precision.weights, precision.activations, precision.kv) == (weights, activations, kv)
    assert precision.compute == compute


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_what_is_never_quantised_stays_at_sixteen_bits_or_more(preset: str) -> None:
    precision = Precision.named(preset)
    assert precision.wide_bytes_per_value >= 2
    assert bytes_per_value(precision.wide_compute) >= 2


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="fp8"):
        Precision.named("fp-8")


def test_an_unknown_format_is_an_error_and_never_a_fallback() -> None:
    with pytest.raises(UnknownNameError, match="bf16"):
        Precision(weights="bf-16")
    with pytest.raises(UnknownNameError):
        Precision(compute="fp9")


# Whose FP8 weights carry a scale per 128 × 128 block; all others have one per tensor, row or channel.
IN_BLOCKS = ("deepseek", "qwen3", "minimax", "glm", "kimi")


@pytest.mark.parametrize("model", Catalog(user=False).models(), ids=lambda model: model.name)
def test_whether_fp8_weights_are_scaled_by_block_is_a_fact_of_the_checkpoint(model: Model) -> None:
    assert block_scaled(model, Precision.named("fp8")) == model.name.startswith(IN_BLOCKS)
    assert not block_scaled(model, Precision.named("bf16"))
    assert block_scaled(model, Precision.named("fp8")) == any(
        fact.value == 128 and fact.source.title for key, fact in model.facts.items() if key.endswith(".rows")
    )
