"""Parameter counts: the parts add up, and each part is where tensor parallelism puts it."""

from __future__ import annotations

import pytest

from datahall.catalog.catalog import Catalog
from datahall.catalog.entries.model import Layer, Model
from datahall.workload.parameters import count_parameters, layer_parameters, published_difference

CATALOG = Catalog(user=False)
NAMES = [model.name for model in CATALOG.models()]


@pytest.mark.parametrize("name", NAMES)
def test_layers_and_what_stands_outside_them_make_the_whole(name: str) -> None:
    model = CATALOG.model(name)
    count = count_parameters(model)
    layers = sum(layer_parameters(model, layer).total for layer in model.layers)
    outside = ("token table", "position table", "embedding norm", "final norm", "head")
    assert layers + sum(part.count for part in count.parts if part.name in outside) == count.total
    assert count.sharded + count.replicated + count.expert + count.embedding + count.head == count.total
    assert 0 < count.active <= count.total
    assert sum(count.share(part) for part in count.parts) == pytest.approx(1.0)
    if model.published_parameters:
        assert abs(published_difference(model, count)) < 0.05
    assert (count.active < count.total) == (model.moe is not None)


def test_megatron_buckets_match_their_formula() -> None:
    """12·h² per layer is cut over the group; norms and row biases, 6·h, are not (Megatron-LM)."""
    model = CATALOG.model("megatron-22b")
    h = model.hidden
    layer = layer_parameters(model, model.layers[0])
    assert layer.sharded == 12 * h * h + 7 * h
    assert layer.replicated == 6 * h


def test_a_tied_head_costs_nothing() -> None:
    count = count_parameters(CATALOG.model("llama-3.2-1b"))
    assert count.head == 0
    assert count.embedding == 128256 * 2048


def test_only_the_routed_experts_are_spared() -> None:
    model = CATALOG.model("deepseek-v3")
    count = count_parameters(model)
    one_expert = 3 * 7168 * 2048
    assert count.expert == 58 * 256 * one_expert
    assert count.total - count.active == 58 * (256 - 8) * one_expert


def test_latent_projections_are_whole_on_each_chip() -> None:
    model = CATALOG.model("deepseek-v3")
    parts = {part.name: part for part in layer_parameters(model, model.layers[0]).parts}
    assert parts["latent projections"].sharding == "replicated"
    assert parts["latent projections"].count == 7168 * (1536 + 512 + 64)


def test_makers_that_leave_tables_out_are_followed() -> None:
    count = count_parameters(CATALOG.model("gpt-oss-120b"))
    assert count.as_published("without embedding", active=True) == count.active - 201088 * 2880
    assert count.as_published("without tables") == count.total - 2 * 201088 * 2880


@pytest.mark.parametrize(
    ("change", "extra"),
    [
        ({"qkv_bias": True}, 2 * 3 * 8),
        ({"output_bias": True}, 2 * 8),
        ({"mlp_bias": True}, 2 * (32 + 32 + 8)),
        ({"head_bias": True}, 10),
        ({"norm": "layernorm"}, 5 * 8),
        ({"norm": "none"}, -5 * 8),
        ({"norms_per_layer": 4}, 4 * 8),
        ({"qk_norm": "head"}, 2 * 2 * 4),
        ({"qk_norm": "width"}, 2 * 2 * 8),
        ({"position": "learned"}, 16 * 8),
        ({"position": "learned", "num_positions": 18}, 18 * 8),
        ({"tied_embeddings": True}, -10 * 8),
        ({"embedding_norm": True}, 8),
        ({"attention_sinks": True}, 2 * 2),
        ({"attention_gate": True}, 2 * 8 * 8),
        ({"gated_mlp": False}, -2 * 8 * 32),
        ({"num_kv_heads": 1}, -2 * 2 * 8 * 4),
    ],
)
def test_each_trait_adds_its_own_weights(change: dict[str, object], extra: int) -> None:
    """A model of two layers, width 8, two heads of 4, MLP 32, ten tokens, sixteen positions."""
    fields: dict[str, object] = {
        "name": "t", "title": "t", "family": "t", "year": 2026, "num_layers": 2, "hidden": 8, "num_heads": 2,
        "num_kv_heads": 2, "head_dim": 4, "ffn": 32, "vocab": 10, "max_context": 16,
        "layers": (Layer(mixer="full", mlp="dense"),) * 2,
    }  # fmt: skip
    plain = count_parameters(Model(**fields)).total  # type: ignore[arg-type]
    assert plain == 2 * 10 * 8 + 2 * (4 * 8 * 8 + 3 * 8 * 32 + 2 * 8) + 8
    assert count_parameters(Model(**(fields | change))).total - plain == extra  # type: ignore[arg-type]
