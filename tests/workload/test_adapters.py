"""Adapters counted by hand: what stands beside which products, and the arithmetic of a token."""

from __future__ import annotations

import pytest
from tests.workload.tiny import FULL, MLA, MOE, RECURRENT, tiny

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer
from datahall.workload.adapters.count import (
    adapter_parameters,
    adapter_widths,
    projections,
    tuning_flop_per_token,
)
from datahall.workload.adapters.targets import TARGETS, Targets
from datahall.workload.flops import forward_flop_per_token, training_flop_per_token
from datahall.workload.sharding import ONE_CHIP, Sharding

SHELF = Catalog(user=False)

# parameters for each rank of a layer of width 8: queries of 8, keys and values of 4 each, an MLP of 12 with a gate
QKV, QUERY_VALUE, OUTPUT, GATE_UP, DOWN = 3 * 8 + 16, 2 * 8 + 12, 8 + 8, 2 * 8 + 24, 12 + 8


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("query-value", QUERY_VALUE),
        ("attention", QKV + OUTPUT),
        ("all", QKV + OUTPUT + GATE_UP + DOWN),
    ],
)
def test_a_rank_of_a_dense_layer(targets: Targets, expected: float) -> None:
    assert adapter_widths(tiny(FULL), FULL, targets, ONE_CHIP) == expected


def test_cut_over_two_chips_one_of_the_two_matrices_is_whole() -> None:
    """Columns are split: A is whole and half of B; rows are split: half of A and B is whole."""
    halves = (3 * 8 + 8) + (4 + 8) + (2 * 8 + 12) + (6 + 8)
    assert adapter_widths(tiny(FULL), FULL, "all", Sharding(tp=2.0)) == halves


def test_latents_have_adapters_of_their_own() -> None:
    """Down to 6 + 7 + 2 in two matrices, queries up to 4 heads of 5, keys and values up to 4 of 3 + 5."""
    model = tiny(Layer(mixer="mla", mlp="none"), mla=MLA)
    down, query, up, output = 2 * 8 + 15, 6 + 20, 7 + 32, 20 + 8
    assert adapter_widths(model, model.layers[0], "attention", ONE_CHIP) == down + query + up + output


@pytest.mark.parametrize("targets", TARGETS)
def test_experts_and_recurrences_have_none(targets: Targets) -> None:
    routed = Layer(mixer="none", mlp="moe")
    assert adapter_widths(tiny(routed, moe=MOE), routed, targets, ONE_CHIP) == 0
    scanned = Layer(mixer="linear", mlp="none")
    assert adapter_widths(tiny(scanned, recurrent=RECURRENT), scanned, targets, ONE_CHIP) == 0


@pytest.mark.parametrize(
    ("model", "targets", "rank", "published"),
    [
        ("llama-2-7b", "query-value", 8, 4_194_304),  # LitGPT, resource tables
        ("llama-2-13b", "query-value", 8, 6_553_600),
        ("llama-3.1-8b", "all", 16, 41_943_040),  # PEFT prints it for r = 16 beside all seven matrices
    ],
)
def test_trained_parameters_are_as_tools_print_them(
    model: str, targets: Targets, rank: int, published: int
) -> None:
    assert adapter_parameters(SHELF.model(model), targets, rank) == published


def test_fewer_targets_are_fewer_parameters_and_a_rank_is_a_factor() -> None:
    model = SHELF.model("llama-3.1-8b")
    sizes = [adapter_parameters(model, targets, 8) for targets in ("query-value", "attention", "all")]
    assert sizes == sorted(sizes)
    assert adapter_parameters(model, "all", 24) == 3 * sizes[2]


def test_a_token_costs_four_and_six() -> None:
    """Of 70B two of three passes over the frozen weights: a third less, of attention nothing."""
    model = SHELF.model("llama-3.1-70b")
    whole, frozen = training_flop_per_token(model, 8192), forward_flop_per_token(model, 8192, "matmul")
    adapters = 6 * adapter_parameters(model, "all", 16)
    assert float(tuning_flop_per_token(model, 8192, "all", 16)) == pytest.approx(whole - frozen + adapters)
    assert 0.66 < float(tuning_flop_per_token(model, 8192, "all", 16)) / float(whole) < 0.72


def test_the_names_are_those_of_the_operators() -> None:
    assert [one.name for one in projections(tiny(FULL))] == ["qkv", "attention_output", "gate_up", "down"]
