"""The chain from a chip's memory to sequences is what the engine's division gives, for every model of the catalogue."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog, load
from datahall.errors import ScenarioError
from datahall.inference.engine.engine import engine, engine_on
from datahall.inference.engine.figure import option_leaf
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.memory.figure import sequences_figure
from datahall.inference.memory.fit import on_group
from datahall.workload.sharding import Sharding

MODELS = Catalog(user=False).models()


def leaves(figure: Breakdown, name: str) -> list[Breakdown]:
    return [node for _, node in figure.walk() if node.name == name]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("tp", [1, 8])
def test_the_chain_holds_what_the_engine_holds(
    serve: Callable[..., Replica], model: msgspec.Struct, tp: int
) -> None:
    name = model.name  # type: ignore[attr-defined]
    try:
        Sharding(tp=float(tp)).check(model)  # type: ignore[arg-type]
    except ScenarioError:
        return
    for engine_name in ("vllm", "sglang", "trtllm"):
        fit = on_group(serve(name, engine_name=engine_name), tp, 8000)
        figure = sequences_figure(fit)
        assert false_nodes(figure) == []
        assert figure.value == fit.num_sequences
        (weights,) = leaves(figure, "weights")
        assert weights.value == pytest.approx(fit.weight_bytes, rel=1e-12)
        (block,) = leaves(figure, "bytes of a block")
        assert block.value == pytest.approx(fit.capacity.block_bytes, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "draft"),
    [("deepseek-v3", "mtp"), ("llama-3.1-70b", "llama-3.1-8b"), ("llama-3.1-70b", "ngram")],
)
def test_what_drafts_stands_beside_the_weights(serve: Callable[..., Replica], model: str, draft: str) -> None:
    how = Speculation(draft=draft, model=load().model("llama-3.1-8b"))
    fit = on_group(serve(model, "h200-sxm", precision="fp8", speculation=how), 8, 8000)
    figure = sequences_figure(fit)
    assert false_nodes(figure) == []
    assert figure.value == fit.num_sequences
    (weights,) = leaves(figure, "weights")
    assert weights.value == pytest.approx(fit.weight_bytes, rel=1e-12)
    assert bool(leaves(figure, "weights of what drafts")) == (draft != "ngram")


def test_weights_open_down_to_the_sizes_of_the_model(serve: Callable[..., Replica]) -> None:
    """Llama 3.1 8B: 32 layers, 8 heads of 128 that are keys and values, 14,336 wide, each a fact with a source."""
    figure = sequences_figure(on_group(serve("llama-3.1-8b"), 1, 8192))
    for name, value in (("MLP width", 14336), ("key-value heads", 8), ("layers", 32)):
        found = leaves(figure, name)
        assert {leaf.value for leaf in found} == {value}
        assert all(leaf.sources for leaf in found)
    (token,) = leaves(figure, "cache of a token")
    assert token.value == 2 * 8 * 128 * 32 * 2
    (blocks,) = leaves(figure, "blocks of a sequence")
    assert blocks.value == 512


def test_who_chose_the_chips_is_said(serve: Callable[..., Replica]) -> None:
    fit = on_group(serve("llama-3.1-70b"), 4, 8192)
    found = leaves(sequences_figure(fit, "the fewest that hold it"), "chips that share it")
    assert {(leaf.origin, leaf.note, leaf.fields) for leaf in found} == {
        ("decision", "the fewest that hold it", ("tp",))
    }


def test_a_fitted_option_says_on_what() -> None:
    known = engine("vllm")
    leaf = option_leaf(known, "host_step_s", "of a step", "s", fitted_on="rows")
    assert (leaf.origin, leaf.value) == ("fitted", known.host_step_s)
    assert "rows" in leaf.note
    assert leaf.fields == ("host_step_s",)


def test_what_an_engine_picks_on_a_small_chip_is_its_own(shelf: Catalog) -> None:
    """A smaller token budget on a small chip is the engine's rule and nobody's input."""
    small = shelf.chip("l40s")
    own = engine_on("vllm", small)
    assert own.token_budget != engine("vllm").token_budget
    assert option_leaf(own, "token_budget", "tokens of a step", "tokens").origin == "assumption"
