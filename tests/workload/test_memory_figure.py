"""The chain behind weights and cache gives what the closed forms give, for every model of the catalogue."""

from __future__ import annotations

import pytest

from datahall.breakdown import chosen, false_nodes
from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.workload.memory.figure import (
    derived_from,
    memory_figure,
    sequence_figure,
    token_figure,
    weights_figure,
)
from datahall.workload.memory.kv_cache import kv_bytes, kv_bytes_per_token
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision

CATALOG = Catalog(user=False)


@pytest.mark.parametrize("model", CATALOG.models(), ids=lambda model: model.name)
@pytest.mark.parametrize("tp", [1, 8])
def test_the_chain_gives_weights_and_cache(model: Model, tp: int) -> None:
    counts = count_parameters(model)
    for name in ("bf16", "fp8-kv8", "w4a16"):
        precision = Precision.named(name)
        figure = memory_figure(model, precision, name="memory", context=8192, batch=3, tp=tp)
        weights, cache = (part.value for part in figure.parts)
        assert weights == pytest.approx(
            float(serving_weight_bytes(model, counts, precision, tp=tp)), rel=1e-12
        )
        assert cache == pytest.approx(3 * float(kv_bytes(model, 8192, precision, tp=tp)), rel=1e-12)
        assert false_nodes(figure) == []


def test_the_sizes_of_a_model_are_its_facts() -> None:
    model = CATALOG.model("llama-3.1-8b")
    whole = weights_figure(model, Precision(), tp=1)
    assert whole.value == float(serving_weight_bytes(model, count_parameters(model), Precision()))
    leaves = {node.name: node for _, node in whole.walk() if not node.parts}
    for name, value in (("hidden width", 4096), ("MLP width", 14336), ("key-value heads", 8), ("layers", 32)):
        assert leaves[name].value == value
        assert leaves[name].origin == "fact"
        assert leaves[name].sources[0].title


def test_the_sizes_of_experts_are_facts() -> None:
    """Mixtral 8x7B: 32 layers of eight experts of three matrices, 4,096 by 14,336."""
    figure = weights_figure(CATALOG.model("mixtral-8x7b"), Precision(), tp=1)
    (experts,) = [node for _, node in figure.walk() if node.name == "experts parameters"]
    assert {leaf.name: leaf.value for leaf in experts.parts} == {
        "layers": 32, "routed experts": 8, "matrices": 3, "hidden width": 4096, "width of an expert": 14336,
    }  # fmt: skip
    assert {leaf.origin for leaf in experts.parts if leaf.name != "matrices"} == {"fact"}


def test_a_window_bounds_what_is_kept() -> None:
    model = CATALOG.model("gemma-3-4b")
    near = sequence_figure(model, Precision(), context=512, tp=1)
    far = sequence_figure(model, Precision(), context=100_000, tp=1)
    assert near.at("layers with a window", "tokens kept").value == 512
    assert far.at("layers with a window", "tokens kept").value == 1024


def test_a_model_made_by_hand_says_so() -> None:
    model = CATALOG.model("llama-3.1-8b")
    bare = Model(**{name: getattr(model, name) for name in model.__struct_fields__ if name != "facts"})
    assert "by hand" in derived_from(bare).title
    assert false_nodes(weights_figure(bare, Precision(), tp=1)) == []


def test_the_cache_of_a_token_says_whose_choice_its_chips_are() -> None:
    model = CATALOG.model("llama-3.1-70b")
    (layer, count), *_ = model.layer_groups()
    chips = chosen("chips that share it", 4.0, "count", "the fewest that hold it")
    token = token_figure(model, layer, count, Precision(), chips)
    assert token.value == float(kv_bytes_per_token(model, Precision(), 4.0))
    assert false_nodes(token) == []
    for figure in (token, weights_figure(model, Precision(), tp=4, chips=chips)):
        origins = {node.origin for _, node in figure.walk() if node.name == "chips that share it"}
        assert origins == {"decision"}
