"""What a tiny model keeps for backward and in its cache, tensor by tensor, worked out by hand.

Width 8, four heads of 2 with two for keys and values, MLP 12, 20 tokens in the vocabulary.
"""

from __future__ import annotations

import msgspec
import pytest
from tests.workload.tiny import FULL, MLA, MOE, RECURRENT, tiny

from datahall.catalog.entries.model import Layer, Model
from datahall.workload.memory.activation import (
    SavedTensor,
    Saving,
    activation_bytes,
    layer_tensors,
    outside_tensors,
)
from datahall.workload.memory.kv_cache import kv_bytes, kv_values_per_token, recurrent_state_bytes
from datahall.workload.memory.state import (
    ChipParameters,
    StateRecipe,
    chip_parameters,
    serving_weight_bytes,
    state_bytes,
)
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import BF16, Precision
from datahall.workload.sharding import Sharding

EAGER = Saving(modules="huggingface-eager")
NORMS = 2 * (2 * 8 + 2 * 8)  # input and output of two norms, 16 bits
MLP = 2 * 3 * 12  # gate, up and their product
DENSE = NORMS + 2 * (8 + 4 + 4 + 8) + 4 * 4 + MLP  # queries, keys, values, output, a log-sum-exp per head


def per_token(model: Model, saving: Saving = Saving(), sharding: Sharding = Sharding()) -> float:  # noqa: B008
    """Bytes that the only layer keeps of one token in a sequence of four."""
    return float(activation_bytes(model, batch=1.0, seq=4.0, saving=saving, sharding=sharding)) / 4


def by_name(tensors: tuple[SavedTensor, ...]) -> dict[str, tuple[float, float]]:
    return {one.name: (one.width, one.value_bytes) for one in tensors}


def test_a_dense_layer() -> None:
    assert per_token(tiny(FULL)) == DENSE == 200
    assert per_token(tiny(FULL, gated_mlp=False)) == DENSE - 2 * 12
    assert (
        per_token(tiny(FULL, norms_per_layer=4)) == DENSE + 2 * 2 * 8
    )  # inputs; their outputs are only added
    assert per_token(tiny(FULL, norms_per_layer=1)) == DENSE - 2 * 2 * 8


def test_a_tensor_parallel_layer() -> None:
    """Over two chips all but the norms are halved; over four the two heads of keys and values are no further cut."""
    assert per_token(tiny(FULL), sharding=Sharding(tp=2.0)) == NORMS + (DENSE - NORMS) / 2
    split = 2 * (8 + 8) + 4 * 4 + MLP
    assert per_token(tiny(FULL), sharding=Sharding(tp=4.0)) == NORMS + split / 4 + 2 * (4 + 4) / 2
    both = Sharding(tp=2.0, sequence_parallel=True)
    assert per_token(tiny(FULL), sharding=both) == DENSE / 2


def test_a_split_context_keeps_its_share() -> None:
    assert per_token(tiny(FULL), sharding=Sharding(cp=2.0)) == DENSE / 2


def test_query_and_key_norms_keep_what_they_normalise() -> None:
    plain, normed = tiny(FULL), tiny(FULL, qk_norm="head")
    assert per_token(normed) - per_token(plain) == 2 * (8 + 4)
    assert per_token(normed, EAGER) - per_token(plain, EAGER) == 2 * (8 + 4) + 4 * (8 + 4)
    four = Sharding(tp=4.0)
    assert per_token(normed, sharding=four) - per_token(plain, sharding=four) == 2 * (8 / 4 + 4 / 2)


def test_an_attention_gate_keeps_itself_and_its_product() -> None:
    assert per_token(tiny(FULL, attention_gate=True)) == DENSE + 2 * (8 + 8)


def test_scores_of_unfused_attention() -> None:
    """Four heads, four keys: 16 scores a token.  Dropout keeps a byte of mask and its output; eager also fp32."""
    without = DENSE - 4 * 4
    assert per_token(tiny(FULL), Saving(flash=False)) == without + 2 * 16
    masks = 8 + 8  # one byte per value of the stream after each block
    dropped = Saving(flash=False, dropout=True)
    assert per_token(tiny(FULL), dropped) == without + 2 * 16 + (1 + 2) * 16 + masks
    eager = by_name(layer_tensors(tiny(FULL), FULL, Saving(modules="huggingface-eager", flash=False)))
    assert eager["softmax_fp32"] == (4, 4.0)
    assert eager["key"] == eager["value"] == (8, 2.0)  # copied to every query head
    assert by_name(layer_tensors(tiny(FULL), FULL, EAGER))["key"] == (4, 2.0)


def test_an_eager_layer() -> None:
    """A norm keeps fp32 input, what the weight multiplies, and its output; the MLP also its activated gate."""
    assert per_token(tiny(FULL), EAGER) == DENSE + 2 * 4 * 8 + 2 * 12
    layernorm = tiny(FULL, norm="layernorm")
    assert per_token(layernorm, EAGER) == DENSE + 2 * 12
    assert per_token(tiny(FULL, gated_mlp=False), EAGER) == DENSE - 2 * 12 + 2 * 4 * 8


def test_latent_attention() -> None:
    """Latents of 6 + 7 before and after their norm; queries and keys of 3 + 2, values of 5 in four heads."""
    kind = Layer(mixer="mla", mlp="dense")
    model = tiny(kind, mla=MLA)
    heads = 2 * (20 + 20 + 20 + 20) + 4 * 4
    assert per_token(model) == NORMS + 2 * 2 * 13 + heads + MLP
    assert per_token(model, sharding=Sharding(tp=2.0)) == NORMS + 2 * 2 * 13 + (heads + MLP) / 2


def test_a_recurrence() -> None:
    """12 values, 2 · 10 of keys, 4 heads: 48 projected, 32 convolved; states are formed again."""
    model = tiny(Layer(mixer="linear", mlp="dense"), recurrent=RECURRENT)
    assert per_token(model) == NORMS + MLP + 2 * (48 + 32 + 12 + 12)


@pytest.mark.parametrize(("shared", "width"), [(10, 10), (0, 0)])
def test_experts(shared: int, width: int) -> None:
    """Scores before and after in fp32, two copies in and out, three tensors of 2 · 6 and of the shared 10."""
    kind = Layer(mixer="full", mlp="moe")
    moe = msgspec.structs.replace(MOE, shared_ffn=shared)
    copies = 2 * 2 * 2 * 8
    own = 4 * 2 * 4 + copies + 2 * 3 * 12 + 2 * 3 * width
    assert per_token(tiny(kind, moe=moe)) == DENSE - MLP + own


def test_layers_without_a_block_keep_nothing_for_it() -> None:
    assert per_token(tiny(Layer(mixer="none", mlp="dense"), norms_per_layer=1)) == 2 * 16 + MLP
    assert per_token(tiny(Layer(mixer="full", mlp="none"), norms_per_layer=1)) == DENSE - MLP - 2 * 16


def test_selective_recomputation_drops_scores_only() -> None:
    unfused = Saving(flash=False, dropout=True)
    whole = {one.name for one in layer_tensors(tiny(FULL), FULL, unfused)}
    kept = {one.name for one in layer_tensors(tiny(FULL), FULL, unfused, "selective")}
    assert whole - kept == {"softmax", "score_dropout_mask", "score_dropout_output"}


def test_what_lies_outside_the_layers() -> None:
    megatron = outside_tensors(tiny(FULL), Saving(dropout=True), loss_bytes=4.0)
    assert [(one.name, one.width, one.value_bytes, one.transient) for one in megatron] == [
        ("final_norm_input", 8, 2.0, False),
        ("final_norm_output", 8, 2.0, False),
        ("embedding_dropout_mask", 8, 1.0, False),
        ("softmax", 20, 4.0, False),
        ("logits", 20, 2.0, True),
    ]
    eager = outside_tensors(tiny(FULL), EAGER, 2.0)
    assert [(one.name, one.value_bytes, one.transient) for one in eager[3:]] == [
        ("logits", 2.0, False),
        ("log_softmax", 2.0, True),
        ("log_softmax_gradient", 2.0, True),
        ("logits_gradient", 2.0, True),
    ]


def test_the_cache_of_a_tiny_model() -> None:
    window = Layer(mixer="window", mlp="dense", window=6)
    mixed = tiny(window, FULL, FULL)
    assert kv_values_per_token(mixed, FULL, tp=1.0) == 2 * 2 * 2
    assert kv_values_per_token(mixed, FULL, tp=4.0) == 2 * 1 * 2
    assert kv_bytes(mixed, 10.0) == 2 * 8 * (6 + 10 + 10)
    assert kv_bytes(mixed, 10.0, Precision.named("fp8-kv8"), 2.0) == 4 * (6 + 10 + 10)
    latent = Layer(mixer="mla", mlp="dense")
    assert kv_values_per_token(tiny(latent, mla=MLA), latent, tp=4.0) == 7 + 2
    assert kv_values_per_token(mixed, Layer(mixer="none", mlp="dense"), tp=1.0) == 0


def test_the_state_of_a_tiny_recurrence() -> None:
    """60 values of fp32, and three steps of 12 + 20 channels in 16 bits, in each of two layers."""
    kind = Layer(mixer="mamba", mlp="dense")
    model = tiny(kind, kind, FULL, recurrent=RECURRENT)
    assert recurrent_state_bytes(model, BF16, tp=1) == 2 * (4 * 60 + 2 * 3 * 32)
    assert recurrent_state_bytes(model, BF16, tp=2.0) == 2 * (4 * 30 + 2 * 3 * 16)
    assert recurrent_state_bytes(model, BF16, tp=4.0) == 2 * (
        4 * 15 + 2 * 3 * (3 + 10)
    )  # a key head is whole
    assert recurrent_state_bytes(tiny(FULL, recurrent=RECURRENT), BF16, tp=1) == 0
    assert kv_bytes(model, 5.0) == 2 * (4 * 60 + 2 * 3 * 32) + 2 * 5 * 8


def test_one_replica_has_nobody_to_share_with() -> None:
    recipe, chip = StateRecipe.named("megatron"), ChipParameters(3.0, 5.0)
    for zero in (0, 1, 2, 3):
        assert state_bytes(chip, recipe, zero=zero).total_bytes == 18 * 8
    assert state_bytes(chip, recipe).total_bytes == 18 * 8
    shared = state_bytes(chip, recipe, zero=3, dp=3.0)  # as many replicas of the experts unless told
    assert shared.total_bytes == pytest.approx(18 * 8 / 3)


def test_each_stage_holds_its_layers_and_its_table() -> None:
    class Counts(msgspec.Struct):
        sharded: float = 120.0
        replicated: float = 12.0
        expert: float = 96.0
        embedding: float = 40.0
        head: float = 60.0

    def dense(tp: float = 1.0, pp: float = 1.0, **cut: object) -> float:
        return float(chip_parameters(Counts(), tp=tp, pp=pp, ep=1.0, **cut).dense)  # type: ignore[arg-type]

    assert dense() == 120 + 12 + 100
    assert dense(tp=2.0) == 60 + 12 + 50
    body = (120 / 2 + 12) / 3
    assert dense(tp=2.0, pp=3.0, stage="first") == body + 20
    assert dense(tp=2.0, pp=3.0, stage="middle") == body
    assert dense(tp=2.0, pp=3.0, stage="last") == dense(tp=2.0, pp=3.0) == body + 30
    assert chip_parameters(Counts(), pp=3.0, tp=1.0, ep=1.0).expert == 32
    assert chip_parameters(Counts(), tp=2.0, ep=4.0, pp=3.0).expert == 8


def test_weights_of_a_serving_chip() -> None:
    """Linear layers a byte each; norms, router and tables two.  Experts: 4 · 3 · 8 · 6; attention 8 · 16 + 64;
    shared experts 3 · 8 · 10; router 32 and gate 8, norms 16 and 8, tables 160 each."""
    model = tiny(Layer(mixer="full", mlp="moe"), moe=MOE)
    counts, fp8 = count_parameters(model), Precision.named("fp8")
    narrow, wide = 8 * 16 + 64 + 240 + 576, 32 + 8 + 16 + 8 + 320
    assert serving_weight_bytes(model, counts) == 2 * (narrow + wide)
    assert serving_weight_bytes(model, counts, fp8) == narrow + 2 * wide
    cut = serving_weight_bytes(model, counts, fp8, tp=2.0, ep=4.0)
    assert cut == (192 + 240) / 2 + 576 / 4 + 2 * (64 + 320 / 2)


def test_latent_projections_are_narrow_and_whole_on_a_serving_chip() -> None:
    """8 · (6 + 7 + 2) down; up 6 · 20 + 7 · 4 · 8, out 20 · 8, MLP 3 · 8 · 12; norms 13 + 24; tables 320."""
    model = tiny(Layer(mixer="mla", mlp="dense"), mla=MLA)
    counts, fp8 = count_parameters(model), Precision.named("fp8")
    up = 120 + 224 + 160 + 288
    assert serving_weight_bytes(model, counts, fp8) == 120 + up + 2 * (13 + 24 + 320)
    halves = serving_weight_bytes(model, counts, fp8, tp=2.0)
    assert halves == 120 + up / 2 + 2 * (13 + 24 + 160)
