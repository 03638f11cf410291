"""Fine-tuning by adapters, worked out by hand on a model of width 8 and on Llama's: memory, kernels, exchange, copies.

A dense layer has 480 values in its linear layers and 16 in its norms, a table 160; adapters of rank 2 beside all linear
layers have 2 · (40 + 16 + 40 + 20) = 232 values a layer.  A micro-batch is three sequences of five tokens.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workload.tiny import FULL, MOE, tiny

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer
from datahall.cluster.cluster import cluster_of
from datahall.reliability.checkpoint.size import checkpoint_size
from datahall.training.adapters.adapters import NF4_BYTES, Adapters, trained_parameters
from datahall.training.adapters.kept import widened_bytes
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import ON_ONE_CHIP, Layout
from datahall.training.memory.bookkeeping import BOOKS, Bookkeeping
from datahall.training.memory.offload import traffic_of
from datahall.training.memory.peak import PARTS, least_state_bytes, peak_memory
from datahall.training.step.framework import framework
from datahall.training.step.micro_batch import layout_operators
from datahall.training.step.step import Job, operators_run, step_times
from datahall.workload.operator import Operator
from datahall.workload.sharding import ONE_CHIP

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
PLAIN = Bookkeeping(placeholders=False, pads_vocab=False, workspace_bytes=0.0)
LORA, QLORA = Adapters(rank=2), Adapters(rank=2, quantised=True)
LLAMA = SHELF.model("llama-3.1-70b")
KIT = framework("nemo")


def job(adapters: Adapters | None, *layers: Layer, **fields: object) -> Job:
    return Job(model=tiny(*(layers or (FULL, FULL)), **fields), seq=5, global_batch=3, adapters=adapters)


def parts(work: Job, layout: Layout = ON_ONE_CHIP, books: Bookkeeping = PLAIN) -> dict[str, float]:
    layout = msgspec.structs.replace(layout, micro_batch=3)
    found = peak_memory(work, H100, Space.of(layout), books)
    return {name.removesuffix("_bytes"): float(getattr(found, name)[0]) for name in PARTS}


# -- memory ------------------------------------------------------------------------------------------------------------


def test_four_bits_a_scale_of_eight_and_one_of_thirty_two() -> None:
    """64 values share 8 bits, 256 of those share 32: 0.127 bits a value, as the paper says."""
    assert pytest.approx(4.127, abs=5e-4) == 8 * NF4_BYTES


def test_frozen_weights_are_two_bytes_and_adapters_eighteen() -> None:
    found, trained = parts(job(LORA)), 2 * 232
    assert found["weight"] == 2 * (2 * 496 + 2 * 160) + 2 * trained
    assert (found["gradient"], found["optimizer"]) == (4 * trained, 12 * trained)


def test_linear_layers_alone_are_quantised() -> None:
    """Norms and tables stay in 16 bits; of the largest matrix, 8 × 12, there is a copy of 16 bits at work."""
    found, wide = parts(job(QLORA)), parts(job(LORA))
    frozen = 2 * 480 * NF4_BYTES + 2 * (2 * 16 + 2 * 160)
    assert found["weight"] == pytest.approx(frozen + 2 * 2 * 232)
    assert (found["gradient"], found["optimizer"]) == (wide["gradient"], wide["optimizer"])
    assert found["activation"] == wide["activation"]


def test_a_copy_of_the_largest_matrix_is_at_work() -> None:
    """Where a layer's backward is the widest moment: 2 · 8 · 12 bytes more."""
    quiet = msgspec.structs.replace(PLAIN, loss="fused")
    tall = {"ffn": 1200}
    wide, narrow = (parts(job(one, **tall), books=quiet)["working"] for one in (LORA, QLORA))
    assert narrow - wide == 2 * 8 * 1200


def test_gate_and_up_of_an_expert_are_brought_to_16_bits_one_after_the_other() -> None:
    """Of Mixtral's 4096 x 14336 values one matrix is at work, 117,440,512 bytes."""
    mixtral = SHELF.model("mixtral-8x7b")
    work = Job(model=mixtral, seq=512, global_batch=8, adapters=Adapters(rank=16, quantised=True))
    assert float(np.ravel(widened_bytes(work, mixtral.layers[0], ONE_CHIP))[0]) == 2 * 4096 * 14336


def test_routed_experts_are_quantised_and_have_no_adapters() -> None:
    routed = Layer(mixer="full", mlp="moe")
    model = {"moe": MOE}
    found = parts(job(QLORA, routed, **model))
    attention, experts, shared = 192, 4 * 3 * 8 * 6, 3 * 8 * 10
    others = 16 + 4 * 8 + 8  # norms, router, the gate of the shared expert
    frozen = (attention + experts + shared) * NF4_BYTES + 2 * (others + 2 * 160)
    assert found["weight"] == pytest.approx(frozen + 2 * 2 * (40 + 16))
    assert found["gradient"] == 4 * 2 * (40 + 16)
    # of a token: three tensors of norms, attention 64, scores 32, of experts gate, up and output 80, of the shared one
    # gate and up 40, and what the A of attention made 16; nothing that goes into experts
    assert found["activation"] == 15 * (3 * 16 + 64 + 32 + 80 + 40 + 16)


def test_full_sharding_spreads_what_is_frozen_and_gathers_two_units() -> None:
    """Of four ranks: a quarter of four layers, tables and adapters, and two layers of 992 bytes whole."""
    work = msgspec.structs.replace(job(LORA, FULL, FULL, FULL, FULL), global_batch=12)
    found = parts(work, Layout(dp=4, zero=3))
    assert found["weight"] == (4608 + 1856) / 4 + 2 * 992 == 3600
    assert (found["gradient"], found["optimizer"]) == (4 * 928 / 4, 12 * 928 / 4)


def test_no_more_is_gathered_than_is_frozen() -> None:
    """Two layers and two tables are 2,624 bytes; a quarter of them and two layers would be 2,640."""
    work = msgspec.structs.replace(job(LORA), global_batch=12)
    assert parts(work, Layout(dp=4, zero=3))["weight"] == 2624 + 2 * 464 / 4


def test_what_is_gathered_has_its_latent_matrices_whole() -> None:
    """DeepSeek-V3 at tp 8: what ZeRO-3 holds over an eighth of all weights is two of its layers of experts.

    Of one a chip has an eighth of 171,966,464 values of attention, of 44,040,192 of the shared expert and of
    11,274,289,152 of the others; whole the 7168 x 2112 of its latents, 1,835,264 of its router and 16,384 of its norms.
    """
    work = Job(model=SHELF.model("deepseek-v3"), seq=4096, global_batch=64, adapters=Adapters(rank=16))
    plain, shared = (
        float(peak_memory(work, H100, Space.of(Layout(tp=8, dp=8, zero=zero)), PLAIN).weight_bytes[0])
        for zero in (0, 3)
    )
    layer = (171_966_464 + 44_040_192 + 11_274_289_152) // 8 + 7168 * 2112 + 1_835_264 + 16_384
    assert shared - plain / 8 == 2 * 2 * layer


def test_fully_recomputed_a_layer_keeps_its_input_alone() -> None:
    for adapters in (None, LORA, QLORA):
        assert parts(job(adapters), Layout(recompute="full"))["activation"] == 2 * 15 * 16


def test_what_adapters_keep_of_a_token() -> None:
    """All linear layers need their inputs; beside them what six matrices A made, 2 values each of 2 bytes, and one of
    each of the others: 2 · 2 · (3 + 1 + 2 + 1)."""
    assert parts(job(LORA))["activation"] == 2 * 15 * (200 + 28)
    each = msgspec.structs.replace(PLAIN, adapter_dropout="each matrix")
    joined = msgspec.structs.replace(PLAIN, adapter_dropout="joined")
    inputs = 3 * (3 * 8 + 8 + 2 * 8 + 12), 3 * (8 + 8 + 8 + 12)  # a copy of 2 bytes and a mask of one
    assert parts(job(LORA), books=each)["activation"] == 2 * 15 * (228 + inputs[0])
    assert parts(job(LORA), books=joined)["activation"] == 2 * 15 * (228 + inputs[1])


def test_inputs_that_nothing_needs_are_kept_by_old_kernels_alone() -> None:
    few = Adapters(rank=2, targets="query-value", quantised=True)
    old = msgspec.structs.replace(PLAIN, keeps_frozen_inputs="quantised")
    shrunk = 2 * 2 * 2
    assert parts(job(few))["activation"] == 2 * 15 * (200 - 16 - 24 + shrunk)
    assert parts(job(few), books=old)["activation"] == 2 * 15 * (200 + shrunk)
    wide = msgspec.structs.replace(few, quantised=False)
    assert parts(job(wide), books=old)["activation"] == 2 * 15 * (200 - 16 - 24 + shrunk)
    every = msgspec.structs.replace(PLAIN, keeps_frozen_inputs="all")
    assert parts(job(wide), books=every)["activation"] == 2 * 15 * (200 + shrunk)


@given(
    st.integers(1, 64), st.sampled_from(["all", "attention", "query-value"]), st.booleans(), st.integers(0, 3)
)
def test_more_is_never_less(rank: int, targets: str, quantised: bool, zero: int) -> None:
    """A higher rank takes more memory; NF4 and each further ZeRO stage no more; all weights training takes the most."""

    def total(adapters: Adapters | None, stage: int) -> float:
        work = Job(model=SHELF.model("llama-3.1-8b"), seq=2048, global_batch=8, adapters=adapters)
        return float(
            peak_memory(work, H100, Space.of(Layout(dp=8, zero=stage)), BOOKS["nemo"]).total_bytes[0]
        )

    one = Adapters(rank=rank, targets=targets, quantised=quantised)  # type: ignore[arg-type]
    assert total(msgspec.structs.replace(one, rank=2 * rank), zero) > total(one, zero)
    assert total(msgspec.structs.replace(one, quantised=True), zero) <= total(
        msgspec.structs.replace(one, quantised=False), zero
    )
    if zero < 2:  # from there on what is gathered comes on top
        assert total(one, zero + 1) <= total(one, zero)
    assert total(one, 0) < total(None, 0)


def test_no_layout_takes_less_than_the_least_state() -> None:
    for adapters in (LORA, QLORA):
        work = Job(model=LLAMA, seq=2048, global_batch=64, adapters=adapters)
        least = least_state_bytes(work, 64, BOOKS["nemo"])
        for layout in (Layout(tp=8, dp=8, zero=3), Layout(tp=4, pp=4, dp=4), Layout(dp=64, zero=3)):
            assert (
                least <= float(peak_memory(work, H100, Space.of(layout), BOOKS["nemo"]).weight_bytes[0]) * 1.5
            )


def test_the_qlora_paper_fits_65b_into_48_gb() -> None:
    """Dettmers et al. (2023): a model of 65B on one GPU of 48 GB, batch 1 of 512 tokens, rank 64, checkpointing."""
    work = Job(
        model=SHELF.model("llama-65b"), seq=512, global_batch=1, adapters=Adapters(rank=64, quantised=True)
    )
    found = peak_memory(work, H100, Space.of(Layout(recompute="full")), BOOKS["peft"])
    assert 35e9 < float(found.total_bytes[0]) < 48 * 2**30


# -- kernels, exchange and copies --------------------------------------------------------------------------------------


def operators(adapters: Adapters | None, layout: Layout = ON_ONE_CHIP) -> tuple[Operator, ...]:
    work = Job(model=LLAMA, seq=2048, global_batch=8, adapters=adapters)
    return operators_run(work, layout_operators(work, KIT, layout, H100))


def flop(found: tuple[Operator, ...]) -> float:
    return sum(one.count * float(np.ravel(one.flop)[0]) for one in found)


def test_the_kernels_do_four_and_six() -> None:
    """Products of frozen weights forward and backward for their inputs; six for each parameter of an adapter."""
    tokens, adapters = 2048, Adapters(rank=16)
    whole, tuned = operators(None), operators(adapters)
    gradients = flop(tuple(one for one in whole if one.name.endswith("_wgrad")))
    own = 6 * tokens * trained_parameters(Job(model=LLAMA, seq=2048, global_batch=8, adapters=adapters))
    beside = flop(tuple(one for one in tuned if "_adapter_" in one.name))
    assert beside == pytest.approx(own, rel=1e-9)
    assert flop(tuned) == pytest.approx(flop(whole) - gradients + own, rel=1e-9)


def test_a_quantised_weight_is_brought_to_16_bits_each_time_it_is_multiplied() -> None:
    """Forward and backward, and once more where forward runs again: 0.516 bytes in and 2 out of each linear weight."""
    linear = 80 * (8192 * 10240 + 8192**2 + 3 * 8192 * 28672)
    for layout, times in ((Layout(), 2), (Layout(recompute="full"), 3)):
        wider = [
            one for one in operators(Adapters(rank=16, quantised=True), layout) if "dequantise" in one.name
        ]
        moved = sum(one.count * float(one.read_bytes + one.write_bytes) for one in wider)
        assert moved == pytest.approx(times * linear * (NF4_BYTES + 2))
    assert not any("dequantise" in one.name for one in operators(Adapters(rank=16)))


def test_a_step_is_shorter_than_of_all_weights_and_longer_quantised() -> None:
    cluster = cluster_of(H100, 8)
    layout = Space.of(Layout(tp=8))
    whole, wide, narrow = (
        float(
            step_times(Job(model=LLAMA, seq=2048, global_batch=8, adapters=one), cluster, layout, KIT).step_s[
                0
            ]
        )
        for one in (None, Adapters(rank=16), Adapters(rank=16, quantised=True))
    )
    assert 0.6 * whole < wide < narrow < whole


def test_recomputing_one_module_runs_its_adapters_again() -> None:
    again = Layout(recompute="selective", modules=("mlp",))
    names = [one.name for one in operators(Adapters(rank=16), again) if one.name.endswith("_recompute")]
    assert {"gate_up_adapter_shrink_recompute", "down_adapter_expand_recompute"} <= set(names)
    assert not any(name.startswith("qkv") for name in names)


def test_gradients_of_adapters_alone_are_exchanged() -> None:
    """Beside the same kernels: replicas exchange a thousandth; fully sharded, frozen weights in NF4 move a quarter."""
    cluster = cluster_of(H100, 64)
    plain = Space.of(Layout(dp=64, zero=1))
    full, tuned = (
        step_times(Job(model=LLAMA, seq=2048, global_batch=64, adapters=one), cluster, plain, KIT)
        for one in (None, Adapters(rank=16))
    )
    assert tuned.data_s[0] < 0.02 * full.data_s[0]
    sharded = Space.of(Layout(dp=64, zero=3))
    wide, narrow = (
        step_times(
            Job(model=LLAMA, seq=2048, global_batch=64, adapters=one), cluster, sharded, KIT
        ).gathered_s[0]
        for one in (Adapters(rank=16), Adapters(rank=16, quantised=True))
    )
    assert 0.25 < narrow / wide < 0.4


def test_a_checkpoint_holds_the_adapters_alone() -> None:
    """14 bytes of each of 207 million, of all chips once."""
    work = Job(model=LLAMA, seq=2048, global_batch=64, adapters=Adapters(rank=16, quantised=True))
    size = checkpoint_size(work, Layout(tp=8, dp=8), BOOKS["nemo"])
    num = 16 * 80 * (3 * 8192 + 10240 + 2 * 8192 + 2 * 8192 + 57344 + 28672 + 8192)
    assert size.total_bytes == 14 * num
    assert size.chip_bytes == 14 * num / 64


def test_the_host_gets_frozen_weights_in_their_format_and_updates_adapters() -> None:
    work = Job(model=LLAMA, seq=2048, global_batch=64, adapters=Adapters(rank=16, quantised=True))
    space = Space.of(Layout(dp=8, zero=0, offload=("parameters", "optimizer")))
    found = traffic_of(work, space, BOOKS["nemo"], np.array([8.0]))
    trained = trained_parameters(work)
    assert found.owned_values[0] == pytest.approx(trained)
    linear = 80 * (8192 * 10240 + 8192**2 + 3 * 8192 * 28672)
    others = 70_553_706_496 - linear
    assert found.weight_bytes[0] == pytest.approx(linear * NF4_BYTES + 2 * others + 2 * trained)
