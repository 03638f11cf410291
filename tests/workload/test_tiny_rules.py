"""Rules of cutting a model, totals of a pass and conventions of counting, on the tiny model."""

from __future__ import annotations

import msgspec
import pytest
from tests.workload.tiny import FULL, MLA, MOE, NEAR, RECURRENT, tiny

from datahall.catalog.entries.model import Layer, Model
from datahall.errors import ScenarioError
from datahall.workload.backward import backward_pass
from datahall.workload.flops import forward_flop_per_token, training_flop_per_token
from datahall.workload.forward import forward_pass
from datahall.workload.memory.recipe import StateRecipe
from datahall.workload.memory.state import ChipParameters, state_bytes
from datahall.workload.operator import (
    Gemm,
    Operator,
    attention_flop,
    keys_read,
    total_bytes,
    total_flop,
    total_weight_bytes,
    visible_tokens,
)
from datahall.workload.parameters import layer_parameters
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

LATENT = Layer(mixer="mla", mlp="dense")
LINEAR = Layer(mixer="linear", mlp="none")
ROUTED = Layer(mixer="full", mlp="moe")
SIX = msgspec.structs.replace(RECURRENT, num_heads=6)


@pytest.mark.parametrize(
    ("model", "legal"),
    [
        (tiny(FULL), {1, 2, 4}),  # heads 4, MLP 12, two KV heads cut or repeated
        (tiny(NEAR), {1, 2, 4}),
        (tiny(FULL, num_heads=12, num_kv_heads=3), {1, 3, 6, 12}),
        (tiny(FULL, num_heads=12, num_kv_heads=3, ffn=18), {1, 3, 6}),
        (tiny(LATENT, mla=MLA, num_kv_heads=3, num_heads=6), {1, 2, 3, 6}),  # the latent has no KV heads
        (tiny(LINEAR, recurrent=SIX, num_heads=4, ffn=5), {1, 2, 3, 6}),  # neither attention nor an MLP
        (tiny(FULL, recurrent=SIX), {1, 2, 4}),  # sizes of a recurrence that no layer has
        (tiny(FULL, LINEAR, recurrent=SIX), {1, 2}),
        (tiny(ROUTED, moe=MOE, ffn=0), {1, 2}),  # columns of an expert, 6, over tp
    ],
)
def test_tensor_parallelism_divides_what_the_layers_have(model: Model, legal: set[int]) -> None:
    assert {tp for tp in range(1, 25) if not broken(Sharding(tp=float(tp)), model)} == legal


def broken(sharding: Sharding, model: Model) -> str:
    try:
        sharding.check(model)
    except ScenarioError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("tp", "legal"), [(1, {1, 2, 4, 8}), (2, {1, 2, 4, 8}), (4, {2, 4, 8}), (6, {1, 2})])
def test_expert_parallelism_divides_the_experts_and_nests_with_tp(tp: int, legal: set[int]) -> None:
    """Eight experts of six columns: tp 4 needs ep 2, for four chips cannot share six columns."""
    model = tiny(
        ROUTED, moe=msgspec.structs.replace(MOE, num_experts=8), num_heads=12, num_kv_heads=12, ffn=0
    )
    found = {ep for ep in range(1, 17) if not broken(Sharding(tp=float(tp), ep=float(ep)), model)}
    assert found == legal


def test_ranks_that_meet_at_sliced_experts_divide_their_columns() -> None:
    model = tiny(ROUTED, moe=MOE, ffn=0)
    assert not broken(Sharding(tp=2.0, ep=1.0, num_groups=3.0), model)  # six chips, one column each
    assert "expert width 6" in broken(Sharding(tp=2.0, ep=1.0, num_groups=2.0), model)


def test_attention_over_sequences_needs_no_whole_heads() -> None:
    model = tiny(FULL)
    assert not broken(Sharding(tp=3.0, dp_attention=True), model)
    assert "attention heads" in broken(Sharding(tp=3.0), model)


@pytest.mark.parametrize(
    ("sharding", "nearest"),
    [
        (Sharding(tp=3.0), "nearest legal: tp=2 or tp=4"),
        (Sharding(tp=5.0), "nearest legal: tp=2 or tp=4"),
        (Sharding(tp=0.0), "nearest legal: tp=1 or tp=2"),
        (Sharding(tp=99.0), "nearest legal: tp=2 or tp=4"),
    ],
)
def test_the_nearest_legal_values_are_named(sharding: Sharding, nearest: str) -> None:
    assert nearest in broken(sharding, tiny(FULL))


def test_the_largest_values_are_tried_too() -> None:
    """KV heads are repeated up to as many chips as there are heads; experts spread up to their number."""
    model = tiny(ROUTED, moe=msgspec.structs.replace(MOE, num_experts=12), ffn=0)
    assert "nearest legal: ep=6 or ep=12" in broken(Sharding(ep=11.0), model)
    assert "nearest legal: tp=4 or tp=8" in broken(
        Sharding(tp=7.0), tiny(FULL, num_heads=8, num_kv_heads=8, ffn=8)
    )


def test_columns_are_checked_row_by_row() -> None:
    import numpy as np

    rows = Sharding(tp=np.array([1.0, 2.0, 4.0]), ep=1.0)
    assert not broken(rows, tiny(FULL))
    assert "tp=8" in broken(Sharding(tp=np.array([1.0, 8.0])), tiny(FULL))


TWICE = Operator(
    name="product", shape=Gemm(1, 1, 1), precision="bf16", weight_precision="bf16", flop=6.0, read_bytes=2.0,
    write_bytes=1.0, weight_bytes=0.5, count=2.0,
)  # fmt: skip
ONCE = msgspec.structs.replace(TWICE, count=1.0)


def test_totals_count_every_repeat() -> None:
    assert total_flop([TWICE, ONCE]) == 18
    assert total_bytes([TWICE, ONCE]) == 9
    assert total_weight_bytes([TWICE, ONCE]) == 1.5
    assert (total_flop([]), total_bytes([]), total_weight_bytes([])) == (0, 0, 0)
    assert TWICE.intensity_flop_per_byte == 2


def test_pairs_and_keys_without_a_past_or_window() -> None:
    assert (visible_tokens(3, past=0.0), keys_read(3, 0, window=0.0)) == (6, 3)
    assert attention_flop(10, 2, 3) == 2 * 10 * 2 * (3 + 3)


def test_conventions_of_counting_by_hand() -> None:
    """One layer, sequences of five: products of 8·16 + 64 + 288 and the head's 160 weights; 15 or 25 pairs of four
    heads, 2 wide both ways."""
    model = tiny(FULL)
    products = 2 * (8 * 16 + 64 + 288 + 160)
    assert forward_flop_per_token(model, 5.0, "matmul") == pytest.approx(products, rel=1e-12)
    assert forward_flop_per_token(model, 5.0) == pytest.approx(products + 2 * 15 * 4 * 4 / 5, rel=1e-12)
    assert forward_flop_per_token(model, 5.0, "full") == pytest.approx(
        products + 2 * 25 * 4 * 4 / 5, rel=1e-12
    )
    assert training_flop_per_token(model, 5.0, "full") == pytest.approx(3 * (products + 160), rel=1e-12)


def test_casts_write_the_values_and_their_scales() -> None:
    """Three sequences of five, 8 wide: 120 values of a byte and a 32nd."""
    rows = forward_pass(tiny(FULL), batch=3.0, query=5.0, precision=Precision.named("mxfp8"))
    cast = next(one for one in rows if one.name == "qkv_quantise")
    assert (cast.read_bytes, cast.write_bytes) == (240, 120 * (1 + 1 / 32))


def test_a_recurrence_casts_its_own_tokens_under_sequence_parallelism() -> None:
    model = tiny(Layer(mixer="mamba", mlp="dense"), recurrent=RECURRENT)
    split = Sharding(tp=2.0, sequence_parallel=True)
    rows = forward_pass(model, batch=3.0, query=5.0, sharding=split, precision=Precision.named("fp8"))
    casts = {one.name: one.write_bytes for one in rows if one.name.endswith("_quantise")}
    assert casts["recurrent_in_quantise"] == 15 * 8 / 2
    assert casts["recurrent_out_quantise"] == 15 * 6


def test_one_scale_for_a_tensor_is_found_before_it_is_applied() -> None:
    patterns = {}
    for name in ("fp8", "int8", "mxfp8", "nvfp4"):
        rows = forward_pass(tiny(FULL), batch=1.0, query=1.0, precision=Precision.named(name))
        patterns[name] = next(one.shape.pattern for one in rows if one.name == "down_quantise")  # type: ignore[union-attr]
    assert patterns == {"fp8": "cast", "int8": "cast", "mxfp8": "plain", "nvfp4": "plain"}


def test_every_cast_of_a_gradient_is_part_of_backward() -> None:
    rows = backward_pass(tiny(FULL), batch=1.0, seq=4.0, precision=Precision.named("fp8"), recompute="full")
    assert all(one.backward for one in rows)


def test_without_zero_nothing_is_shared() -> None:
    assert state_bytes(ChipParameters(1.0, 1.0), StateRecipe.named("megatron"), dp=8.0).total_bytes == 36


@pytest.mark.parametrize(
    ("mixer", "sharded", "replicated"),
    [
        # q, k 10 each, v and gate 12 each, two gates for each head; back 12 · 8; 32 · 4 taps; two decays a head
        ("linear", 8 * (20 + 24 + 8) + 96 + 128 + 8, 16 + 3),
        # gate 12, x 12, B and C 20, a step for each head; back 96; 32 · (4 + 1) taps; three a head; a norm of 12
        ("mamba", 8 * (12 + 32 + 4) + 96 + 160 + 12 + 12, 16),
    ],
)
def test_parameters_of_a_recurrence_by_hand(mixer: str, sharded: int, replicated: int) -> None:
    kind = Layer(mixer=mixer, mlp="none")  # type: ignore[arg-type]
    found = layer_parameters(tiny(kind, recurrent=RECURRENT), kind)
    assert (found.sharded, found.replicated) == (sharded, replicated)


def test_parameters_of_experts_by_hand() -> None:
    """Four experts of 3 · 8 · 6 with biases of 12 and 8; a router of 4 · 8 with offsets, a gate of 8; shared 240."""
    moe = msgspec.structs.replace(MOE, expert_bias=True, router_bias=True)
    found = layer_parameters(tiny(ROUTED, moe=moe), ROUTED)
    assert found.expert == 4 * (144 + 12 + 8)
    assert found.sharded == 192 + 240
    assert found.replicated == 16 + 32 + 4 + 8
    assert found.total - found.active == 2 * (144 + 12 + 8)
