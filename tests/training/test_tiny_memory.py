"""Every part of a chip's memory in training, worked out by hand on a model of width 8.

A dense layer has 8·16 + 64 weights of attention and 3·8·12 of its MLP, 480 that are split, and 16 of norms.  It keeps
200 bytes of a token: two norms in and out 64, queries, keys, values and output 48, log-sum-exp 16, MLP 72.  A table
has 20 rows.  A micro-batch is three sequences of five tokens.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.workload.tiny import FULL, MLA, MOE, tiny

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer, Model
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS, Bookkeeping, bookkeeping_of
from datahall.training.memory.peak import (
    PARTS,
    chip_memory_bytes,
    least_state_bytes,
    peak_memory,
    stage_memories,
)
from datahall.training.step.framework import framework, frameworks
from datahall.training.step.shard import placeholder_values, shard_bytes
from datahall.training.step.step import Job
from datahall.workload.memory.activation import Saving
from datahall.workload.precision import Precision

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
PLAIN = Bookkeeping(
    placeholders=False,
    pads_vocab=False,
    workspace_bytes=1000.0,
    slack_fraction=0.1,
    group_bytes=7.0,
    context_bytes=11.0,
)
ROUTED = Layer(mixer="full", mlp="moe")


def job(model: Model, num_micro: int = 1, dp: int = 1, **fields: object) -> Job:
    return Job(model=model, seq=5, global_batch=3 * num_micro * dp, **fields)  # type: ignore[arg-type]


def parts(work: Job, layout: Layout, books: Bookkeeping = PLAIN, schedule: str = "1f1b") -> dict[str, float]:
    layout = msgspec.structs.replace(layout, micro_batch=3)
    found = peak_memory(work, H100, Space.of(layout), books, schedule=schedule)
    named = {name.removesuffix("_bytes"): float(getattr(found, name)[0]) for name in PARTS}
    return named | {"stage": float(found.stage[0])}


def test_one_chip() -> None:
    """Two layers and both tables: 2·496 + 2·160 values at 2, 4 and 12 bytes.

    At the loss the final norm in and out and 16-bit logits, 72 bytes a token; then the head's backward with 16 more.
    """
    assert parts(job(tiny(FULL, FULL)), Layout()) == {
        "weight": 2 * 1312,
        "gradient": 4 * 1312,
        "optimizer": 12 * 1312,
        "activation": 2 * 15 * 200,
        "working": 15 * (72 + 16),
        "buffer": 1000,
        "stage": 0,
    }


def test_what_the_allocator_and_the_driver_add() -> None:
    found = peak_memory(job(tiny(FULL, FULL)), H100, Space.of(Layout(micro_batch=3)), PLAIN)
    allocated = 18 * 1312 + 6000 + 1320 + 1000
    assert float(found.allocated_bytes[0]) == allocated
    assert float(found.reserved_bytes[0]) == pytest.approx(1.1 * allocated)
    assert float(found.total_bytes[0]) == pytest.approx(1.1 * allocated + 11)
    assert float(found.headroom_bytes[0]) == pytest.approx(chip_memory_bytes(H100) - 1.1 * allocated - 11)


def test_a_communicator_for_every_way_of_cutting() -> None:
    layouts = [Layout(), Layout(tp=2), Layout(tp=2, cp=2, dp=2), Layout(pp=2, dp=2), Layout(ep=2, dp=2)]
    model = tiny(ROUTED, ROUTED, moe=MOE)
    found = peak_memory(Job(model=model, seq=8, global_batch=8), H100, Space.of(layouts), PLAIN)
    assert found.outside_bytes.tolist() == [11 + 7 * groups for groups in (0, 1, 3, 2, 2)]


def test_a_chip_has_what_its_driver_shows() -> None:
    seen = msgspec.structs.replace(H100, memory_bytes=80e9, visible_memory_bytes=79e9)
    assert chip_memory_bytes(seen) == 79e9
    assert chip_memory_bytes(msgspec.structs.replace(seen, visible_memory_bytes=float("nan"))) == 80e9


def test_placeholders_and_padded_tables() -> None:
    """A 16-bit gradient for attention and one for the MLP, and beside the head's backward one of the head; 20 rows
    are padded to 128 for each of the tensor-parallel chips."""
    books = msgspec.structs.replace(PLAIN, placeholders=True)
    found = parts(job(tiny(FULL, FULL)), Layout(), books)
    assert found["buffer"] == 1000 + 2 * 480
    assert found["working"] == 15 * 88 + 2 * 160
    padded = msgspec.structs.replace(PLAIN, pads_vocab=True)
    assert parts(job(tiny(FULL, FULL)), Layout(), padded)["weight"] == 2 * (992 + 2 * 1024)
    two = parts(job(tiny(FULL, FULL)), Layout(tp=2), padded)
    assert two["weight"] == 2 * (2 * (240 + 16) + 2 * 1024)  # 256 rows over two chips
    three = tiny(FULL, num_heads=6, num_kv_heads=3, head_dim=2)
    cut = parts(job(three), Layout(tp=3))  # seven rows on each of three; columns 12 + 12, out 12, MLP 36
    assert cut["weight"] == 2 * ((8 * 24 + 96 + 288) / 3 + 16 + 2 * 7 * 8)


def test_a_tied_table_is_there_once() -> None:
    tied = tiny(FULL, FULL, tied_embeddings=True)
    assert parts(job(tied), Layout())["weight"] == 2 * (992 + 160)


PIPE = Layout(tp=2, pp=2, dp=2)


def test_two_stages_of_a_tensor_parallel_pipeline() -> None:
    """A stage has two layers of 240 + 16 and half a table of 80.  Two micro-batches in flight on the first stage.

    Under sequence parallelism a layer keeps 100 bytes; backward holds gradients of 2·6 and 4 values, and 16 gathered.
    """
    work = job(tiny(*(FULL,) * 4), num_micro=2, dp=2)
    held = 2 * 256 + 80
    first = {
        "weight": 2 * held, "gradient": 4 * held, "optimizer": 12 * held / 2, "activation": 2 * 2 * 1500,
        "working": 2 * 15 * (12 + 4 + 16), "buffer": 1000,
    }  # fmt: skip
    assert parts(work, PIPE) == first | {"stage": 0}
    stages = stage_memories(work, H100, msgspec.structs.replace(PIPE, micro_batch=3), PLAIN)
    assert [(one.run.first, one.num_in_flight, one.holds_head) for one in stages] == [
        (0, 2.0, False),
        (1, 1.0, True),
    ]
    last = {name: float(getattr(stages[1].memory, f"{name}_bytes")[0]) for name in first}
    # at the head's backward: 36 bytes of norm and logits, 4 values of the stream and 16 gathered
    assert last == first | {"activation": 2 * 1500, "working": 15 * (36 + 2 * (4 + 16))}


def test_middle_stages_have_no_table() -> None:
    work = job(tiny(*(FULL,) * 4), num_micro=8)
    stages = stage_memories(work, H100, Layout(pp=4, micro_batch=3), PLAIN)
    assert [float(one.memory.weight_bytes[0]) for one in stages] == [2 * 656, 2 * 496, 2 * 656]
    assert [one.num_in_flight for one in stages] == [4, 3, 1]


def test_without_sequence_parallelism_norms_are_whole() -> None:
    whole = msgspec.structs.replace(PIPE, sequence_parallel=False)
    found = parts(job(tiny(*(FULL,) * 4), num_micro=2, dp=2), whole)
    assert found["activation"] == 2 * 2 * 15 * (64 + 136 / 2)
    assert found["working"] == 2 * 15 * (12 + 8)


def test_a_split_context_keeps_attention_output_twice() -> None:
    """cp 2: half of 200 bytes a token, and half of the 16 of the output again."""
    found = parts(job(tiny(FULL, FULL)), Layout(cp=2))
    assert found["activation"] == 2 * 15 * (200 + 16) / 2
    assert found["optimizer"] == 12 * 1312 / 2


@pytest.mark.parametrize(
    ("zero", "weight", "gradient", "optimizer"),
    [
        (0, 2 * 4288, 4 * 4288, 12 * 4288),
        (1, 2 * 4288, 4 * 4288, 12 * 1072),
        (2, 2 * 4288, 4 * 1072 + 4 * 496, 12 * 1072),  # a layer's gradients are not yet spread
        (3, 2 * 1072 + 2 * 2 * 496, 4 * 1072 + 4 * 496, 12 * 1072),  # and two layers are gathered
    ],
)
def test_zero_spreads_one_state_after_the_other(
    zero: int, weight: int, gradient: int, optimizer: int
) -> None:
    """Eight layers and two tables are 8·496 + 320 = 4,288 values over four ranks."""
    found = parts(job(tiny(*(FULL,) * 8), dp=4), Layout(dp=4, zero=zero))
    assert (found["weight"], found["gradient"], found["optimizer"]) == (weight, gradient, optimizer)


def test_nothing_is_gathered_beyond_the_whole_or_spread_beyond_the_bucket() -> None:
    two = job(tiny(FULL, FULL), dp=4)
    gathered = parts(two, Layout(dp=4, zero=3))
    assert gathered["weight"] == 2 * 1312  # 656 + 2·2·496 would be more than all weights
    small = msgspec.structs.replace(PLAIN, bucket_values=100.0)
    assert parts(two, Layout(dp=4, zero=2), small)["gradient"] == 1312 + 400
    assert parts(job(tiny(FULL, FULL)), Layout(zero=3)) == parts(job(tiny(FULL, FULL)), Layout(zero=0))
    # wide weights and beside them the 16-bit copies of two layers
    wide = msgspec.structs.replace(PLAIN, state="fp32")
    eight = parts(job(tiny(*(FULL,) * 8), dp=4), Layout(dp=4, zero=3), wide)
    assert eight["weight"] == 4288 + 2 * 2 * 496
    capped = parts(job(tiny(FULL), dp=2), Layout(dp=2, zero=3), wide)  # one layer of 496 and tables of 320
    assert capped["weight"] == 2 * 816 + 2 * 816


def test_a_large_table_is_the_unit_that_is_gathered() -> None:
    wide = tiny(*(FULL,) * 8, vocab=100)
    found = parts(job(wide, dp=4), Layout(dp=4, zero=3))
    assert found["weight"] == 2 * (8 * 496 + 1600) / 4 + 2 * 2 * 1600


def test_groups_that_share_a_state() -> None:
    """Four ranks in groups of two: each holds half."""
    found = parts(job(tiny(FULL, FULL), dp=4), Layout(dp=4, shard=2))
    assert found["optimizer"] == 12 * 1312 / 2


def test_experts_have_their_own_replicas() -> None:
    """A layer: 432 split, 16 + 32 + 8 whole, 4·144 of experts.  Over four ranks with ep 2 a chip holds two experts,
    as does one other rank; of a token a layer keeps 128 + 32 of scores, 64 of copies, 72 and 60 of the MLPs."""
    found = parts(job(tiny(ROUTED, ROUTED, moe=MOE), dp=4), Layout(dp=4, ep=2))
    dense, expert = 2 * 488 + 320, 2 * 288
    assert found["weight"] == 2 * (dense + expert)
    assert found["optimizer"] == 12 * (dense / 4 + expert / 2)
    assert found["activation"] == 2 * 15 * 356
    assert found["working"] == 2 * 15 * (2 * 22 + 8)


def test_copies_of_tokens_lie_where_the_experts_do() -> None:
    """tp 2: with ep 2 a chip has half of the copies; with each expert cut in two, all of them."""
    work = job(tiny(ROUTED, moe=MOE), dp=2)
    spread, sliced = (parts(work, Layout(tp=2, dp=2, ep=2, etp=etp)) for etp in (1, 2))
    copies = 15 * 64
    assert sliced["activation"] - spread["activation"] == copies / 2
    plain = parts(work, Layout(tp=2, dp=2))
    assert plain["activation"] == sliced["activation"]


def test_placeholders_of_experts_and_latents() -> None:
    """One gradient for attention, one for the shared experts and one for a single expert; a dense layer beside it
    adds its MLP, not attention again."""
    routed = tiny(FULL, ROUTED, moe=MOE)
    assert placeholder_values(routed, (ROUTED,)) == 192 + 240 + 144
    assert placeholder_values(routed, (FULL, ROUTED)) == 192 + 240 + 144 + 288
    latent = Layer(mixer="mla", mlp="dense")
    found = placeholder_values(tiny(latent, mla=MLA), (latent,))
    assert found == 120 + (120 + 224 + 160) + 288  # latent projections too; norms have none


@pytest.mark.parametrize(("recompute", "kept", "again"), [("none", 200, 0), ("full", 16, 200)])
def test_recomputation_brings_a_layer_back(recompute: str, kept: int, again: int) -> None:
    """The input of 16 bytes is kept; the layer comes back whole when its backward begins."""
    shards = shard_bytes(
        job(tiny(FULL)),
        Space.of(Layout(micro_batch=3, recompute=recompute)),
        PLAIN,  # type: ignore[arg-type]
    )
    assert shards.kept[FULL].tolist() == [15 * kept]
    assert shards.redone[FULL].tolist() == [15 * again]
    assert shards.in_hand[FULL].tolist() == [2 * 15 * (24 + 8)]


def test_modules_drop_what_only_they_produce() -> None:
    layout = Layout(micro_batch=3, recompute="selective", modules=("layernorm",))
    unfused = msgspec.structs.replace(PLAIN, saving=Saving(flash=False))
    found = shard_bytes(job(tiny(FULL)), Space.of(layout), unfused)
    scores = 2 * 4 * 5  # four heads, five keys: they stay, as only norms are run again
    assert found.kept[FULL].tolist() == [15 * (200 - 16 + scores - 32)]
    assert found.redone[FULL].tolist() == [15 * 32]
    core = Layout(micro_batch=3, recompute="selective", modules=("core_attn",))
    assert shard_bytes(job(tiny(FULL)), Space.of(core), unfused).kept[FULL].tolist() == [15 * 184]


def test_narrow_formats_keep_the_inputs_of_linear_layers_narrow() -> None:
    """fp8: two norm outputs 16, attention output 8 and the MLP's product 12 at a byte less each; where the inputs of
    the activation are narrow too, gate and up as well."""
    fp8 = job(tiny(FULL), precision=Precision.named("fp8"))
    assert parts(fp8, Layout())["activation"] == 15 * (200 - 36)
    narrow = msgspec.structs.replace(PLAIN, narrow_activations=True)
    assert parts(fp8, Layout(), narrow)["activation"] == 15 * (200 - 36 - 24)
    assert parts(job(tiny(FULL)), Layout(), narrow)["activation"] == 15 * 200


@pytest.mark.parametrize(
    ("loss", "loss_bytes", "at_loss"),
    [("fused", 4.0, 32 + 40), ("wide", 4.0, 32 + 40 + 80), ("eager", 2.0, 64 + 4 * 40)],
)
def test_the_loss(loss: str, loss_bytes: float, at_loss: int) -> None:
    """Wide: an fp32 softmax beside the logits.  Eager: logits, log-softmax, both gradients; fp32 norm."""
    books = msgspec.structs.replace(PLAIN, loss=loss, loss_bytes=loss_bytes)
    found = shard_bytes(job(tiny(FULL)), Space.of(Layout(micro_batch=3)), books)
    assert found.at_loss.tolist() == [15 * at_loss]
    stream = 104 if loss == "eager" else 72
    assert found.at_head.tolist() == [15 * (stream + 16)]


def test_an_eager_framework_has_gradients_of_the_activation_too() -> None:
    books = msgspec.structs.replace(PLAIN, saving=Saving(modules="huggingface-eager"))
    found = shard_bytes(job(tiny(FULL)), Space.of(Layout(micro_batch=3)), books)
    assert found.in_hand[FULL].tolist() == [2 * 15 * (2 * 24 + 8)]
    plain = tiny(FULL, gated_mlp=False)
    assert shard_bytes(job(plain), Space.of(Layout(micro_batch=3)), books).in_hand[FULL].tolist() == [
        2 * 15 * (2 * 12 + 8)
    ]


def test_adapters_alone_have_gradients_and_states() -> None:
    """Of rank 16: beside 8 × 16 of queries, keys and values three of 8 and one of 16, beside 8 × 8 of the output 8 and
    8, 896 values a layer.  A layer no longer keeps what went into its MLP and into the last product of that, 40 bytes
    of a token, but what the first matrices made, 128."""
    frozen = job(tiny(FULL, FULL), adapters=Adapters(rank=16, targets="attention"))
    books = msgspec.structs.replace(PLAIN, placeholders=True)
    found = parts(frozen, Layout(), books)
    assert (found["weight"], found["gradient"], found["optimizer"]) == (2624 + 2 * 1792, 4 * 1792, 12 * 1792)
    assert found["activation"] == 2 * 15 * (200 - 40 + 128)
    assert (found["buffer"], found["working"]) == (1000, 15 * 88)


def test_gradients_that_are_freed_come_as_activations_go() -> None:
    """With one micro-batch the higher of two moments counts: at the loss 2·3000 + 1320 without gradients, at the end
    of backward all 4·1312 of them, one layer of 3000 and 960 in hand.  With two micro-batches gradients stay."""
    books = msgspec.structs.replace(PLAIN, frees_gradients=True)
    late = parts(job(tiny(FULL, FULL)), Layout(), books)
    assert (late["gradient"], late["activation"], late["working"]) == (5248, 3000, 960)
    light = msgspec.structs.replace(books, state="pure-bf16")
    early = parts(job(tiny(FULL, FULL)), Layout(), light)  # 2·1312 + 3960 is less than 7320
    assert (early["gradient"], early["activation"], early["working"]) == (0, 6000, 1320)
    twice = parts(job(tiny(FULL, FULL), num_micro=2), Layout(), books)
    assert (twice["gradient"], twice["activation"], twice["working"]) == (5248, 6000, 1320)
    pipe = parts(job(tiny(FULL, FULL)), Layout(pp=2), books)
    assert pipe["gradient"] == 4 * (496 + 160)


def test_what_is_offloaded_leaves_room() -> None:
    eight = job(tiny(*(FULL,) * 8), num_micro=4, dp=4)
    base = parts(eight, Layout(dp=4))
    assert parts(eight, Layout(dp=4, offload=("optimizer",))) == base | {"optimizer": 0}
    assert (
        parts(eight, Layout(dp=4, offload=("activations",)))["activation"] == 2 * 3000
    )  # two layers of eight
    assert parts(job(tiny(FULL)), Layout(offload=("activations",)))["activation"] == 3000
    fetched = parts(eight, Layout(dp=4, offload=("parameters",)))
    assert fetched == base | {"weight": 2 * 2 * 496}
    assert parts(job(tiny(FULL)), Layout(offload=("parameters",)))["weight"] == 2 * 816


def test_schedules_hold_what_they_run_ahead() -> None:
    work = job(tiny(*(FULL,) * 4), num_micro=8)
    for schedule, held, copies in (("1f1b", 4, 1), ("gpipe", 8, 1), ("dualpipe", 5, 2)):
        found = parts(work, Layout(pp=4), schedule=schedule)
        assert found["activation"] == held * 3000
        assert found["weight"] == copies * 2 * 656


def test_an_error_that_is_fed_back_is_kept_whole() -> None:
    found = parts(job(tiny(FULL, FULL), dp=4), Layout(dp=4, zero=2, compression="1-bit"))
    assert found["gradient"] == 1312 + 4 * 496 + 4 * 1312


def test_the_least_state_is_all_of_it_spread_evenly() -> None:
    """1,312 weights and the final norm of 8, 18 bytes each, over five chips."""
    assert least_state_bytes(job(tiny(FULL, FULL)), 5, PLAIN) == 18 * 1320 / 5


def test_micro_batches_are_at_least_one() -> None:
    space = Space.of([Layout(dp=2, micro_batch=3), Layout(dp=8, micro_batch=4)])
    assert space.num_micro(12).tolist() == [2, 1]


@pytest.mark.parametrize("name", frameworks())
def test_a_framework_says_whose_books_it_keeps(name: str) -> None:
    """Whatever it is called: another of that entry has the same."""
    one = framework(name)
    assert bookkeeping_of(msgspec.structs.replace(one, name="new")) is BOOKS[one.books]


def test_a_space_is_the_sum_of_its_layouts() -> None:
    """Layouts of one space that cut stages and shards differently do not disturb one another."""
    work = Job(model=tiny(*(FULL,) * 4), seq=5, global_batch=24)
    layouts = [
        Layout(tp=tp, pp=pp, vpp=vpp, dp=2, zero=zero, micro_batch=mb, recompute=recompute)  # type: ignore[arg-type]
        for tp, pp, vpp, zero, mb, recompute in (
            (1, 1, 1, 0, 1, "none"), (2, 2, 1, 1, 3, "full"), (1, 2, 2, 3, 2, "none"), (2, 4, 1, 2, 1, "selective"),
            (1, 4, 1, 1, 3, "none"), (2, 1, 1, 3, 2, "full"),
        )
    ]  # fmt: skip
    together = peak_memory(work, H100, Space.of(layouts), PLAIN)
    for row, layout in enumerate(layouts):
        alone = peak_memory(work, H100, Space.of(layout), PLAIN)
        assert float(together.total_bytes[row]) == pytest.approx(float(alone.total_bytes[0]))
        stages = stage_memories(work, H100, layout, PLAIN)
        fullest = max(stages, key=lambda one: float(one.memory.total_bytes[0]))
        assert float(alone.total_bytes[0]) == float(fullest.memory.total_bytes[0])
        assert int(alone.stage[0]) == fullest.run.first
    assert np.unique(together.total_bytes).size == len(layouts)
