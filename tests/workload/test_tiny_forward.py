"""Every operator of a forward pass, worked out by hand on a model of width 8.

Most passes serve three sequences that each bring five tokens after seven: 15 tokens, on one of two chips that share
the model.  A causal token sees 8, 9, 10, 11 or 12 tokens, 50 in all; in a window of six each sees 6, 30 in all, and
ten tokens are seen by any.  A row reads: name, count, FLOP, bytes read, written, and of weights among those read.
"""

from __future__ import annotations

import msgspec
import pytest
from tests.workload.tiny import FULL, MLA, MOE, NEAR, RECURRENT, Row, table, tiny

from datahall.catalog.entries.model import Layer, Model
from datahall.workload.forward import forward_pass, mixed_pass
from datahall.workload.operator import Operator, Stream
from datahall.workload.precision import BF16, Precision
from datahall.workload.sharding import ONE_CHIP, Sharding
from datahall.workload.step import Chunk

TWO = Sharding(tp=2.0)


def served(model: Model, sharding: Sharding = TWO, precision: Precision = BF16) -> tuple[Operator, ...]:
    return forward_pass(
        model, batch=3.0, query=5.0, past=7.0, sharding=sharding, precision=precision, latent="expanded"
    )


def between(operators: tuple[Operator, ...], first: str, last: str) -> list[Row]:
    """The rows from one name to another, both left out."""
    rows = table(operators)
    names = [row[0] for row in rows]
    return rows[names.index(first) + 1 : names.index(last)]


def layer(count: float, attention: Row) -> list[Row]:
    """A dense layer; a chip has two heads, one of them for keys and values, and six of the MLP's columns."""
    return [
        ("mixer_norm", count, 0, 2 * 240, 2 * 240, 0),  # addition and norm: two in, two out
        ("qkv", count, 2 * 15 * 8 * 8, 2 * (15 * 8 + 64), 240, 128),
        ("rope", count, 0, 180, 180, 0),  # 15 · (2 + 1) heads of 2
        ("kv_write", count, 0, 120, 120, 0),
        attention,
        ("attention_output", count, 2 * 15 * 8 * 4, 2 * (15 * 4 + 32), 240, 64),
        ("mlp_norm", count, 0, 480, 480, 0),
        ("gate_up", count, 2 * 15 * 12 * 8, 2 * (15 * 8 + 96), 360, 192),
        ("activation", count, 0, 360, 180, 0),
        ("down", count, 2 * 15 * 8 * 6, 2 * (15 * 6 + 48), 240, 96),
    ]


def test_a_dense_model_with_a_window() -> None:
    assert table(served(tiny(NEAR, FULL, FULL))) == [
        ("embedding", 1, 0, 120, 240, 120),  # half of the rows are in this chip's half of the table
        # 90 pairs, two heads, 2 wide both ways; queries 60 values, keys and values 3 · 10 tokens · 4
        *layer(1, ("attention", 1, 2 * 90 * 2 * 4, 2 * (60 + 120), 120, 0)),
        *layer(2, ("attention", 2, 2 * 150 * 2 * 4, 2 * (60 + 3 * 12 * 4), 120, 0)),
        ("final_norm", 1, 0, 240, 240, 0),
        ("head", 1, 2 * 3 * 10 * 8, 2 * (24 + 80), 60, 160),  # on the last token of each sequence
    ]


def test_fp8_and_sequence_parallelism() -> None:
    """A gathered input is cast where it comes from: half of the tokens.  Linear layers read single bytes."""
    split = Sharding(tp=2.0, sequence_parallel=True)
    rows = between(served(tiny(FULL), split, Precision.named("fp8")), "embedding", "head")
    assert rows == [
        ("mixer_norm", 1, 0, 240, 240, 0),
        ("qkv_quantise", 1, 0, 120, 60, 0),
        ("qkv", 1, 1920, 120 + 64, 240, 64),
        ("rope", 1, 0, 180, 180, 0),
        ("kv_write", 1, 0, 120, 120, 0),
        ("attention", 1, 2400, 408, 120, 0),
        ("attention_output_quantise", 1, 0, 120, 60, 0),
        ("attention_output", 1, 960, 60 + 32, 240, 32),
        ("mlp_norm", 1, 0, 240, 240, 0),
        ("gate_up_quantise", 1, 0, 120, 60, 0),
        ("gate_up", 1, 2880, 120 + 96, 360, 96),
        ("activation", 1, 0, 360, 180, 0),
        ("down_quantise", 1, 0, 180, 90, 0),
        ("down", 1, 1440, 90 + 48, 240, 48),
        ("final_norm", 1, 0, 120, 120, 0),
    ]


def test_context_parallelism_with_gate_norms_and_all_logits() -> None:
    """Two sequences of six tokens over two chips: six tokens each, 21 of the 42 pairs, all keys pass by once."""
    model = tiny(FULL, attention_gate=True, qk_norm="head", norms_per_layer=4, embedding_norm=True)
    cut = Sharding(cp=2.0)
    rows = forward_pass(model, batch=2.0, query=6.0, sharding=cut, logits="all", cached=False)
    assert table(rows) == [
        ("embedding", 1, 0, 96, 96, 96),
        ("embedding_norm", 1, 0, 96, 96, 0),
        ("mixer_norm", 1, 0, 192, 192, 0),
        ("qkv", 1, 2 * 6 * 24 * 8, 2 * (48 + 192), 288, 384),  # queries 8, their gate 8, keys and values 8
        ("qk_norm", 1, 0, 144, 144, 0),
        ("rope", 1, 0, 144, 144, 0),
        ("attention", 1, 2 * 21 * 4 * 4, 96 + 2 * 2 * 6 * 8, 96, 0),
        ("attention_gate", 1, 0, 192, 96, 0),
        ("attention_output", 1, 2 * 6 * 8 * 8, 2 * (48 + 64), 96, 128),
        ("mlp_norm", 1, 0, 192, 192, 0),
        ("gate_up", 1, 2 * 6 * 24 * 8, 2 * (48 + 192), 288, 384),
        ("activation", 1, 0, 288, 144, 0),
        ("down", 1, 2 * 6 * 8 * 12, 2 * (72 + 96), 96, 192),
        ("post_norm", 2, 0, 96, 96, 0),
        ("final_norm", 1, 0, 96, 96, 0),
        ("head", 1, 2 * 6 * 20 * 8, 2 * (48 + 160), 240, 320),
    ]


def test_norms_are_over_heads_or_over_the_width() -> None:
    def row_width(model: Model, name: str) -> float:
        shape = next(one.shape for one in served(model) if one.name == name)
        assert isinstance(shape, Stream)
        return float(shape.row_width)

    assert row_width(tiny(FULL, qk_norm="head"), "qk_norm") == 2
    assert row_width(tiny(FULL, qk_norm="width"), "qk_norm") == 4  # two heads of 2 on this chip
    assert row_width(tiny(FULL), "mixer_norm") == 8


def test_a_parallel_block_adds_without_a_norm() -> None:
    """One norm for two blocks: the second addition is a kernel of its own, two in and one out."""
    rows = served(tiny(FULL, norms_per_layer=1))
    assert "mlp_norm" not in {one.name for one in rows}
    assert ("residual_add", 1, 0, 480, 240, 0) in table(rows)
    assert {"residual_add", "post_norm"} & {one.name for one in served(tiny(FULL))} == set()


def test_a_plain_mlp_has_no_gate() -> None:
    rows = between(served(tiny(FULL, gated_mlp=False)), "mlp_norm", "final_norm")
    assert rows == [
        ("up", 1, 1440, 2 * (120 + 48), 180, 96),
        ("activation", 1, 0, 180, 180, 0),
        ("down", 1, 1440, 276, 240, 96),
    ]


def test_learned_positions_are_not_turned() -> None:
    assert "rope" not in {one.name for one in served(tiny(FULL, position="learned"))}


@pytest.mark.parametrize(("gated", "columns"), [(True, 12), (False, 6)])
def test_experts_inside_a_group(gated: bool, columns: int) -> None:
    """Two chips with two of four experts each.  Of 30 copies 15 come here; a token misses an expert half the time."""
    hit = 2 * (1 - 0.5**15)
    model = tiny(Layer(mixer="full", mlp="moe"), moe=MOE, gated_mlp=gated)
    rows = between(served(model, Sharding(tp=2.0, ep=2.0)), "mlp_norm", "final_norm")
    up, shared = ("expert_gate_up", "shared_gate_up") if gated else ("expert_up", "shared_up")
    wide, half = (10, 5) if gated else (5, 5)
    expected = [
        ("router", 1, 2 * 15 * 4 * 8, 2 * (120 + 32), 120, 64),
        ("dispatch", 1, 0, 120 + 240 + 120, 240 + 120, 0),  # scores, rows, two indices of four bytes each
        (up, 1, 2 * 15 * columns * 8, 240 + hit * columns * 16, 30 * columns, hit * columns * 16),
        ("expert_activation", 1, 0, 360 if gated else 180, 180, 0),
        ("expert_down", 1, 2 * 15 * 8 * 6, 180 + hit * 96, 240, hit * 96),
        ("combine", 1, 0, 240, 240, 0),
        (shared, 1, 2 * 15 * wide * 8, 2 * (120 + wide * 8), 30 * wide, wide * 16),
        ("shared_activation", 1, 0, 30 * half * (2 if gated else 1), 150, 0),
        ("shared_down", 1, 1200, 230, 240, 80),
        ("shared_gate", 1, 240, 2 * (120 + 8), 30, 16),
    ]
    assert [row[0] for row in rows] == [row[0] for row in expected]
    for row, want in zip(rows, expected, strict=True):
        assert row[1:] == pytest.approx(want[1:]), row[0]


def test_experts_across_groups_meet_the_batches_of_all() -> None:
    """Four chips of expert parallelism, two groups of tp 2: 2 · 15 tokens meet, two copies each, over four chips."""
    model = tiny(
        Layer(mixer="full", mlp="moe"), moe=msgspec.structs.replace(MOE, shared_ffn=0, shared_gate=False)
    )
    rows = {row[0]: row for row in table(served(model, Sharding(tp=2.0, ep=4.0)))}
    assert rows["expert_down"][2] == 2 * 15 * 8 * 6
    assert rows["expert_down"][5] == pytest.approx((1 - 0.5**30) * 96)
    assert rows["combine"][3:5] == (240, 240)
    assert not [name for name in rows if name.startswith("shared")]


def latent(sharding: Sharding = TWO, mode: str = "expanded") -> list[Row]:
    model = tiny(Layer(mixer="mla", mlp="dense"), mla=MLA)
    rows = forward_pass(
        model,
        batch=3.0,
        query=5.0,
        past=7.0,
        sharding=sharding,
        latent=mode,  # type: ignore[arg-type]
    )
    return between(rows, "mixer_norm", "mlp_norm")


DOWN_AND_UP: list[Row] = [
    ("qkv_down", 1, 2 * 15 * 15 * 8, 2 * (120 + 120), 450, 240),  # 6 + 7 + 2 columns, whole on each chip
    ("latent_norm", 1, 0, 390, 390, 0),
    ("q_up", 1, 2 * 15 * 10 * 6, 2 * (90 + 60), 300, 120),  # two heads of 3 + 2
    ("rope", 1, 0, 180, 180, 0),  # 2 of each of two heads, and the shared key
    ("kv_write", 1, 0, 270, 270, 0),
]
OUTPUT: Row = ("attention_output", 1, 2 * 15 * 8 * 10, 2 * (150 + 80), 240, 160)


def test_latent_attention_expanded() -> None:
    assert latent() == [
        *DOWN_AND_UP,
        ("kv_up", 1, 2 * 36 * 16 * 7, 2 * (252 + 112), 1152, 224),  # the past too: 3 · 12 rows
        ("attention", 1, 2 * 150 * 2 * (5 + 5), 300 + 36 * 20 * 2, 300, 0),
        OUTPUT,
    ]


def test_latent_attention_absorbed() -> None:
    assert latent(mode="absorbed") == [
        *DOWN_AND_UP,
        ("absorb_q", 1, 2 * 30 * 7 * 3, 2 * (90 + 42), 420, 84),
        ("attention", 1, 2 * 150 * 2 * (9 + 7), 540 + 36 * 9 * 2, 420, 0),
        ("absorb_v", 1, 2 * 30 * 5 * 7, 2 * (210 + 70), 300, 140),
        OUTPUT,
    ]


def test_queries_without_a_rank_come_from_the_stream() -> None:
    model = tiny(Layer(mixer="mla", mlp="dense"), mla=msgspec.structs.replace(MLA, q_rank=0))
    rows = {row[0]: row for row in table(served(model))}
    assert rows["q_up"][2] == 2 * 15 * 10 * 8
    assert rows["qkv_down"][2] == 2 * 15 * 9 * 8


@pytest.mark.parametrize(("query", "absorbed"), [(1.0, True), (2.0, False)])
def test_latent_attention_is_absorbed_when_each_sequence_brings_one_token(
    query: float, absorbed: bool
) -> None:
    model = tiny(Layer(mixer="mla", mlp="dense"), mla=MLA)
    names = {one.name for one in forward_pass(model, batch=3.0, query=query, past=7.0)}
    assert ("absorb_q" in names) == absorbed
    assert ("kv_up" in names) != absorbed


@pytest.mark.parametrize(
    ("mixer", "gates", "flop"), [("linear", 4, 15 * (7 * 30 + 128)), ("mamba", 2, 15 * (5 * 30 + 128))]
)
def test_a_recurrence_that_keeps_its_state(mixer: str, gates: int, flop: int) -> None:
    """On a chip two heads of 3 with a state of 5 each and one key head: 6 values, 16 convolved, 30 of state.

    Each of three sequences keeps 30 fp32 values and three steps of 16 in 16 bits: 216 bytes in and out.
    """
    model = tiny(Layer(mixer=mixer, mlp="dense"), recurrent=RECURRENT)  # type: ignore[arg-type]
    width = 6 + 16 + gates
    assert between(served(model), "mixer_norm", "mlp_norm") == [
        ("recurrent_in", 1, 2 * 15 * width * 8, 2 * (120 + 8 * width), 30 * width, 16 * width),
        ("conv_scan", 1, flop, 648 + 30 * (32 + gates + 12), 648 + 30 * (16 + 12), 0),
        ("recurrent_out", 1, 2 * 15 * 8 * 6, 276, 240, 96),
    ]


def test_a_key_head_is_not_cut() -> None:
    """Four chips, two key heads: a chip has one head of 3 and one key head of 5, 13 channels."""
    model = tiny(Layer(mixer="mamba", mlp="dense"), recurrent=RECURRENT)
    rows = {row[0]: row for row in table(served(model, Sharding(tp=4.0)))}
    assert rows["recurrent_in"][2] == 2 * 15 * (3 + 13 + 1) * 8


def test_a_recurrence_over_whole_sequences() -> None:
    """Per token 6 values, 5 of each of two keys, 30/128 of a state and 128 scores: 4, 8, 6 and 4 bytes in."""
    model = tiny(Layer(mixer="linear", mlp="dense"), recurrent=RECURRENT)
    rows = forward_pass(model, batch=3.0, query=5.0, sharding=TWO, cached=False)
    states = 6 * 30 / 128
    assert between(rows, "recurrent_in", "recurrent_out") == [
        ("convolution", 1, 0, 480, 480, 0),
        ("scan", 1, 15 * 338, 15 * (24 + 40 + states + 512), 15 * (12 + states + 512), 0),
        ("scan_gate", 1, 0, 360, 180, 0),
    ]


def test_attention_over_sequences_instead_of_heads() -> None:
    """Each of three chips attends to one of three sequences with all heads, and shares the MLP."""
    model = tiny(FULL, ffn=12)
    rows = {row[0]: row for row in table(served(model, Sharding(tp=3.0, dp_attention=True)))}
    assert rows["qkv"][2] == 2 * 5 * 16 * 8
    assert rows["attention"][2:5] == (2 * 50 * 4 * 4, 2 * (5 * 8 + 12 * 8), 2 * 5 * 8)
    assert rows["kv_write"][3] == 2 * 5 * 8
    assert rows["gate_up"][2] == 2 * 15 * 8 * 8
    assert rows["mixer_norm"][3] == 2 * 2 * 5 * 8


def test_recurrent_states_of_sequences_spread_over_chips() -> None:
    """One sequence per chip: its four heads of 3, two keys of 5, 12 + 20 channels, 60 values of state."""
    model = tiny(Layer(mixer="mamba", mlp="dense"), recurrent=RECURRENT)
    rows = {row[0]: row for row in table(served(model, Sharding(tp=3.0, dp_attention=True)))}
    kept = 60 * 4 + 3 * 32 * 2
    assert rows["conv_scan"][3:5] == (kept + 10 * (64 + 4 + 24), kept + 10 * (32 + 24))


def test_defaults_are_serving_in_16_bits_with_a_cache() -> None:
    rows = forward_pass(tiny(FULL), batch=1.0, query=2.0)
    named = {one.name for one in rows}
    assert {"kv_write", "embedding"} <= named
    explicit = forward_pass(
        tiny(FULL), batch=1.0, query=2.0, past=0.0, sharding=ONE_CHIP, precision=BF16, logits="last",
        quantise=True, cached=True, embed=True,
    )  # fmt: skip
    assert table(rows) == table(explicit)


def test_a_step_of_one_chunk_is_a_pass_with_the_same_defaults() -> None:
    fp8 = Precision.named("fp8")
    for model in (tiny(FULL), tiny(Layer(mixer="mla", mlp="dense"), mla=MLA)):
        alone = forward_pass(model, batch=3.0, query=1.0, past=7.0, precision=fp8)
        assert table(mixed_pass(model, (Chunk(3.0, 1.0, 7.0),), precision=fp8)) == table(alone)
        assert {"kv_write", "embedding", "down_quantise"} <= {one.name for one in alone}
    assert Chunk(3.0, 1.0, past=0.0).past == 0.0
