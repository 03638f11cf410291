"""Peak memory of real training steps on one H200: Hugging Face Llama, eager, flash attention, fused AdamW.

Rows of FRESH were measured in a process of their own (PyTorch 2.11, transformers 5.17, 2026-11): the peak of
`max_memory_allocated` over the third step, gradients freed after each.  The library workspace of 64 MiB is in
them and not in ours.  The training rows of our H200 campaign carry 1.3 GiB more than the same steps
in a fresh process, whatever the shape: something else was alive in theirs.
"""

import msgspec
import numpy as np
import pytest

from datahall.catalog.entries.model import Layer, Model
from datahall.workload.memory.activation import Saving
from datahall.workload.memory.footprint import training_footprint
from datahall.workload.memory.recipe import StateRecipe
from datahall.workload.memory.state import chip_parameters, state_bytes
from datahall.workload.parameters import count_parameters
from datahall.workload.sharding import Sharding

GIB = 2.0**30


def llama(
    hidden: int,
    ffn: int,
    layers: int,
    heads: int,
    kv: int,
    vocab: int,
    *,
    head_dim: int = 128,
    tied: bool = False,
) -> Model:
    return Model(
        name="llama", title="", family="llama", year=2024, num_layers=layers, hidden=hidden, num_heads=heads,
        num_kv_heads=kv, head_dim=head_dim, ffn=ffn, vocab=vocab, max_context=16384, tied_embeddings=tied,
        layers=(Layer(mixer="full", mlp="dense"),) * layers,
    )  # fmt: skip


THREE_B = llama(3072, 8192, 28, 24, 8, 32000)
ONE_B = llama(2048, 8192, 16, 32, 8, 128256, head_dim=64, tied=True)
MULTI_HEAD = llama(2048, 5504, 24, 16, 16, 32000)

# model, batch, sequence, full recompute, bytes of a value in the loss, peak [B]
FRESH = [
    (THREE_B, 4, 2048, False, 2, 50_548_702_720),
    (THREE_B, 4, 4096, False, 2, 82_951_634_432),
    (THREE_B, 4, 2048, True, 2, 25_815_251_456),
    (THREE_B, 4, 4096, True, 2, 27_783_313_920),
    (THREE_B, 4, 2048, False, 4, 52_121_566_720),
    (THREE_B, 4, 2048, True, 4, 25_814_727_168),
    (ONE_B, 4, 2048, False, 4, 36_572_306_432),
    (ONE_B, 8, 2048, True, 4, 38_244_883_456),
    (MULTI_HEAD, 4, 2048, False, 4, 30_319_365_632),
    (MULTI_HEAD, 2, 4096, True, 4, 12_846_951_936),
]

CAMPAIGN = [
    (4, 2048, False, 48.35839796),
    (4, 4096, False, 78.53500319),
    (1, 8192, False, 48.36132765),
    (4, 2048, True, 25.37045145),
    (4, 4096, True, 27.25071573),
    (1, 8192, True, 25.37342691),
]


# Megatron-LM 0.14 on 8 B200, layer-reduced Llama, one sequence per micro-batch, distributed optimizer and
# sequence parallelism (SimuMax v1.2, docs): model, layers, tp, cp, dp, sequence, allocated [GiB]
MEGATRON_RUNS = [
    ("llama-3.1-70b", 12, 2, 1, 4, 4096, 60.68),
    ("llama-3.1-70b", 12, 4, 1, 2, 4096, 39.07),
    ("llama-3.1-70b", 12, 8, 1, 1, 4096, 28.29),
    ("llama-3.1-70b", 12, 2, 4, 1, 32768, 68.43),
    ("llama-3.1-70b", 12, 1, 8, 1, 32768, 104.51),
    ("llama-3.1-70b", 12, 2, 4, 1, 131072, 112.67),
    ("llama-3.1-70b", 12, 1, 8, 1, 131072, 147.99),
    ("llama-3.1-405b", 4, 2, 1, 4, 4096, 81.59),
    ("llama-3.1-405b", 4, 4, 1, 2, 4096, 52.89),
    ("llama-3.1-405b", 4, 8, 1, 1, 4096, 38.57),
    ("llama-3.1-405b", 4, 1, 8, 1, 32768, 139.22),
    ("llama-3.1-405b", 4, 2, 4, 1, 131072, 118.13),
]


def peak_bytes(model: Model, batch: int, seq: int, recompute: bool, loss_bytes: float) -> float:
    state = state_bytes(
        chip_parameters(count_parameters(model), tp=1.0, pp=1.0, ep=1.0), StateRecipe.named("pure-bf16")
    )
    footprint = training_footprint(
        model,
        state,
        batch=batch,
        seq=seq,
        recompute="full" if recompute else "none",
        saving=Saving(framework="huggingface-eager"),
        loss_bytes=loss_bytes,
        gradients_kept=False,
    )
    return float(footprint.peak_bytes)


def test_the_models_are_those_measured() -> None:
    assert count_parameters(THREE_B).total == 3_015_355_392
    assert count_parameters(ONE_B).total == 1_235_814_400
    assert count_parameters(MULTI_HEAD).total == 1_345_423_360


@pytest.mark.parametrize(("model", "batch", "seq", "recompute", "loss_bytes", "measured"), FRESH)
def test_measured_peaks(
    model: Model, batch: int, seq: int, recompute: bool, loss_bytes: float, measured: float
) -> None:
    assert peak_bytes(model, batch, seq, recompute, loss_bytes) == pytest.approx(measured, rel=0.015)


def test_the_mean_error_is_under_one_percent() -> None:
    errors = [abs(peak_bytes(*row[:5]) / row[5] - 1) for row in FRESH]
    assert np.mean(errors) < 0.007


@pytest.mark.parametrize(("batch", "seq", "recompute", "measured_gib"), CAMPAIGN)
def test_the_campaign_differs_by_what_else_was_in_its_process(
    batch: int, seq: int, recompute: bool, measured_gib: float
) -> None:
    ours = peak_bytes(THREE_B, batch, seq, recompute, 2)
    assert ours / (measured_gib * GIB) == pytest.approx(1, abs=0.045)
    assert 1.0 < measured_gib - ours / GIB < 1.4


def test_megatron_runs(models: dict[str, Model]) -> None:
    """The 405B rows come out up to 7 % low: a buffer as large as its widest weights is not in the list."""
    errors = []
    for name, layers, tp, cp, dp, seq, measured_gib in MEGATRON_RUNS:
        whole = models[name]
        model = msgspec.structs.replace(whole, num_layers=layers, layers=whole.layers[:layers])
        parameters = chip_parameters(count_parameters(model), tp=tp, pp=1.0, ep=1.0)
        state = state_bytes(parameters, StateRecipe.named("megatron"), zero=1, dp=dp * cp)
        sharding = Sharding(tp=tp, cp=cp, sequence_parallel=True)
        footprint = training_footprint(model, state, batch=1, seq=seq, sharding=sharding)
        errors.append(abs(float(footprint.peak_bytes) / GIB / measured_gib - 1))
    assert max(errors[:7]) < 0.025
    assert max(errors) < 0.075
    assert np.mean(errors) < 0.035


def test_kept_gradients_and_selective_recompute() -> None:
    state = state_bytes(
        chip_parameters(count_parameters(THREE_B), tp=1.0, pp=1.0, ep=1.0), StateRecipe.named("megatron")
    )
    freed = training_footprint(THREE_B, state, batch=4, seq=2048, gradients_kept=False)
    kept = training_footprint(THREE_B, state, batch=4, seq=2048, gradients_kept=True)
    assert kept.at_loss_bytes - freed.at_loss_bytes == state.gradient_bytes
    old = Saving(flash=False)
    selective = training_footprint(THREE_B, state, batch=4, seq=2048, saving=old, recompute="selective")
    full = training_footprint(THREE_B, state, batch=4, seq=2048, saving=old, recompute="full")
    none = training_footprint(THREE_B, state, batch=4, seq=2048, saving=old)
    assert full.peak_bytes < selective.peak_bytes < none.peak_bytes
