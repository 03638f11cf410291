import pytest

from datahall.catalog.entries.model import Model
from datahall.workload.flops import forward_flop_per_token, mfu_fraction, training_flop_per_token
from datahall.workload.parameters import count_parameters


def test_training_is_6n_plus_6_layers_width_context(llama: Model) -> None:
    counts = count_parameters(llama)
    context = 8192
    textbook = 6 * (counts.total - counts.embedding) + 6 * 32 * 4096 * context
    assert training_flop_per_token(llama, context) == pytest.approx(textbook, rel=1e-3)
    full = textbook + 6 * 32 * 4096 * context
    assert training_flop_per_token(llama, context, "full") == pytest.approx(full, rel=1e-3)


def test_the_convention_of_our_h200_runs(models: dict[str, Model]) -> None:
    """419.303 TFLOP/s at 22,592.665 tokens/s, sequence 2048."""
    flop = training_flop_per_token(models["llama-3b"], 2048)
    assert flop * 22592.665160867484 == pytest.approx(419.30343961442196e12, rel=1e-3)


def test_megatrons_formula(gpt: Model) -> None:
    """Narayanan et al. (2021): 96·B·s·L·h²·(1 + s/6h + V/16Lh), full recomputation included."""
    s, layers, h, vocab = 2048, 96, 12288, 51200
    published = 96 * layers * h * h * (1 + s / (6 * h) + vocab / (16 * layers * h))
    head = 2 * h * vocab  # their recomputation leaves the head out
    ours = training_flop_per_token(gpt, s, "full") + forward_flop_per_token(gpt, s, "full") - head
    assert ours == pytest.approx(published, rel=1e-3)


def test_active_experts_only(mixtral: Model) -> None:
    counts = count_parameters(mixtral)
    assert forward_flop_per_token(mixtral, 1, "matmul") == pytest.approx(
        2 * (counts.active - counts.embedding), rel=1e-3
    )


def test_conventions_are_ordered(model: Model) -> None:
    matmul, causal, full = (
        forward_flop_per_token(model, 4096, one)
        for one in ("matmul", "causal", "full")  # type: ignore[arg-type]
    )
    assert matmul < causal < full


def test_mfu() -> None:
    assert mfu_fraction(1e3, 1e9, 2, 1e12) == 0.5
