"""Every model of the catalogue passes through the room."""

import numpy as np
import pytest

from datahall.catalog.catalog import load
from datahall.workload.backward import training_pass
from datahall.workload.forward import forward_pass
from datahall.workload.memory.activation import activation_bytes
from datahall.workload.memory.kv_cache import kv_bytes
from datahall.workload.operator import total_flop, total_weight_bytes
from datahall.workload.parameters import count_parameters

MODELS = {model.name: model for model in load().models()}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_streamed_weights_are_the_parameters(name: str) -> None:
    """What a pass leaves out are norms, biases, convolutions and position tables."""
    model = MODELS[name]
    counts = count_parameters(model)
    tables = sum(part.count for part in counts.parts if part.name == "position table")
    looked_up = tables + (0 if model.tied_embeddings else counts.embedding)
    step = forward_pass(model, batch=1e6, query=1, logits="all", latent="expanded")
    streamed = total_weight_bytes([one for one in step if one.name != "embedding"]) / 2
    assert streamed == pytest.approx(counts.total - looked_up, rel=1.5e-3)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_training_and_memory_are_finite_and_positive(name: str) -> None:
    model = MODELS[name]
    for value in (
        total_flop(training_pass(model, batch=1, seq=256, recompute="full")),
        activation_bytes(model, batch=1, seq=256),
        kv_bytes(model, 4096),
    ):
        assert np.isfinite(value)
        assert value > 0
