"""Training in fp32 and tf32: values of four bytes in memory, on the wire and on the way to the host.

Weights need no wider copies then; whatever is narrower than 16 bits keeps 16-bit streams.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.training.hand import CLUSTER, DENSE, JOB, KIT, ROUTED, SEQUENCE, SHELF, one, took
from tests.training.test_setup import setup
from tests.training.test_tiny_memory import PLAIN, job, parts
from tests.workload.tiny import FULL, tiny

from datahall.breakdown import Breakdown, false_nodes
from datahall.cluster import groups
from datahall.cluster.cluster import cluster_of
from datahall.training.layout.columns import Column, Space
from datahall.training.layout.layout import Layout
from datahall.training.leaf import Degrees
from datahall.training.memory.bookkeeping import BOOKS, Bookkeeping, bookkeeping_of
from datahall.training.memory.figure import memory_figure
from datahall.training.memory.peak import stage_memories
from datahall.training.pipeline.execution import simulate_step
from datahall.training.pipeline.figure import step_figure
from datahall.training.step import exchange, experts
from datahall.training.step.attention import score_traffic
from datahall.training.step.exchange import chip_share, messages_alone
from datahall.training.step.framework import Framework, framework, frameworks
from datahall.training.step.step import Job, accumulation_time, step_times
from datahall.workload.memory.activation import Saving, layer_tensors
from datahall.workload.precision import Precision

WIDE = ("fp32", "tf32")
NARROW = ("bf16", "fp16", "fp8", "nvfp4")
SIXTEEN = msgspec.structs.replace(KIT, gradient_bytes=2.0)  # bits of a gradient on the wire


def in_format(work: Job, name: str) -> Job:
    return msgspec.structs.replace(work, precision=Precision.named(name))


# -- memory ------------------------------------------------------------------------------------------------------------


def kept_as(work: Job, books: Bookkeeping = PLAIN) -> Bookkeeping:
    return msgspec.structs.replace(books, state=work.books(framework("nemo")).state)


@pytest.mark.parametrize("name", WIDE)
def test_one_chip_by_hand(name: str) -> None:
    """Two layers and both tables, 1,312 values at 4, 4 and 8 bytes.  Of the 200 bytes that a layer keeps of a token in
    16 bits, 16 are a log-sum-exp, which has four bytes anyway; norm, logits and the head's backward are all twice."""
    work = job(tiny(FULL, FULL), precision=Precision.named(name))
    assert parts(work, Layout(), kept_as(work)) == {
        "weight": 4 * 1312,
        "gradient": 4 * 1312,
        "optimizer": 8 * 1312,
        "activation": 2 * 15 * (2 * 184 + 16),
        "working": 2 * 15 * (72 + 16),
        "buffer": 1000,
        "stage": 0,
    }


def test_unfused_attention_keeps_exactly_twice() -> None:
    """Scores in place of the log-sum-exp: no tensor has four bytes already."""
    books = msgspec.structs.replace(PLAIN, saving=Saving(flash=False))
    model = tiny(FULL, FULL)
    narrow, wide = (parts(in_format(job(model), name), Layout(), books) for name in ("bf16", "fp32"))
    for part in ("activation", "working"):
        assert wide[part] == 2 * narrow[part]


def test_weights_are_gathered_whole_and_never_copied() -> None:
    """Six layers of 496 values and two tables of 160, half on each of two replicas; two layers at hand.  Of two
    layers, that is no more than all weights: nothing is multiplied in another format."""
    deep = in_format(job(tiny(*(FULL,) * 6), dp=2), "fp32")
    assert parts(deep, Layout(dp=2, zero=3), kept_as(deep))["weight"] == 4 * 3296 / 2 + 2 * 4 * 496
    shallow = in_format(job(tiny(FULL, FULL), dp=2), "fp32")
    assert parts(shallow, Layout(dp=2, zero=3), kept_as(shallow))["weight"] == 4 * 1312


def test_placeholders_and_buckets_are_twice_as_large() -> None:
    """A gradient for attention and one for the MLP, 480 values; DeepSpeed's two buckets of half a billion."""
    work = in_format(job(tiny(FULL, FULL)), "fp32")
    books = msgspec.structs.replace(PLAIN, placeholders=True)
    found = parts(work, Layout(), kept_as(work, books))
    assert (found["buffer"], found["working"]) == (1000 + 4 * 480, 2 * 15 * 88 + 4 * 160)
    old = BOOKS["megatron-deepspeed"]
    assert parts(work, Layout(), old)["buffer"] - parts(job(tiny(FULL, FULL)), Layout(), old)["buffer"] == 2e9


def test_a_loss_of_wide_logits_is_wide() -> None:
    """Of a token the final norm's input, what it multiplies and its output, and four times 20 logits."""
    books = msgspec.structs.replace(PLAIN, loss="eager", loss_bytes=2.0)
    work = in_format(job(tiny(FULL)), "fp32")
    assert parts(work, Layout(), books)["working"] == 15 * 4 * (3 * 8 + 4 * 20)


def test_a_cast_to_the_format_it_has_is_no_copy() -> None:
    eager = Saving(modules="huggingface-eager", flash=False)
    model = tiny(FULL, qk_norm="head")
    names = {
        size: {
            one.name for one in layer_tensors(model, FULL, msgspec.structs.replace(eager, value_bytes=size))
        }
        for size in (2.0, 4.0)
    }
    assert names[2.0] - names[4.0] == {"softmax_fp32", "query_key_fp32"}
    assert names[4.0] <= names[2.0]


@pytest.mark.parametrize("name", sorted(frameworks()))
def test_the_state_is_fp32_where_values_are_and_nothing_else_is_named(name: str) -> None:
    kit = framework(name)
    for precision in WIDE:
        recipe = in_format(JOB, precision).books(kit).recipe
        assert (recipe.weight, recipe.gradient, recipe.master, recipe.moments) == (4, 4, 0, 8)
    for precision in NARROW:
        assert in_format(JOB, precision).books(kit) == bookkeeping_of(kit)
    named = msgspec.structs.replace(in_format(JOB, "bf16"), state="pure-bf16")
    assert named.books(kit).recipe.total == 8


def test_what_was_used_is_said() -> None:
    assert setup(chips=8, precision="tf32").used["state"] == "fp32"
    assert setup(chips=8, precision="fp8").used["state"] == "megatron"


# -- what chips exchange -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WIDE)
def test_a_message_between_stages_by_hand(name: str) -> None:
    layout = Layout(tp=2, pp=4, vpp=5, cp=2, dp=32)
    found = one(messages_alone(in_format(JOB, name), CLUSTER, Space.of(layout)))
    assert found == pytest.approx(5 * took("send-recv", 2 * SEQUENCE / 4, 2, 1))


def test_gradients_of_four_bytes_stay_and_parameters_come_back_in_four() -> None:
    space, kit = Space.of(Layout(tp=2, dp=256, zero=1)), msgspec.structs.replace(KIT, data_exposed=1.0)
    for name, back in (("bf16", 2), ("fp32", 4)):
        sent, gathered = took("reduce-scatter", 4 * DENSE, 256, 4), took("all-gather", back * DENSE, 256, 4)
        found = one(
            exchange.data_exchange(
                in_format(JOB, name),
                CLUSTER,
                space,
                kit,
                exchange.halves_between_sharers(in_format(JOB, name), CLUSTER, space, kit),
            )
        )
        assert found == pytest.approx(sent + gathered)


def moved(
    monkeypatch: pytest.MonkeyPatch, work: Job, layout: Layout, kit: Framework = SIXTEEN
) -> dict[str, float]:
    """Every exchange of a layout if a collective took a second for each byte."""

    def size(_: object, __: str, size_bytes: Column, *___: Column) -> Column:
        return np.asarray(size_bytes, dtype=np.float64)

    for room in (exchange, experts, groups):
        monkeypatch.setattr(room, "group_times", size)
    space = Space.of(layout)
    whole = {
        "tensor": exchange.reduction_alone(work, CLUSTER, space),
        "context": exchange.context_exchange(work, CLUSTER, space),
        "experts": experts.expert_exchange(work, CLUSTER, space, kit),
        "messages": messages_alone(work, CLUSTER, space),
        "parameters": exchange.parameter_exchange(
            space, exchange.halves_between_sharers(work, CLUSTER, space, kit)
        ),
        "data": exchange.data_exchange(
            work, CLUSTER, space, kit, exchange.halves_between_sharers(work, CLUSTER, space, kit)
        ),
        "accumulated": accumulation_time(work, CLUSTER, space, kit),
        "scores": score_traffic(work, CLUSTER, space.tp, space.cp, space.micro_batch, "none"),
        "biases": experts.bias_traffic(work, CLUSTER, space.tp, space.cp, space.micro_batch),
    }
    return {name: one(np.asarray(column)) for name, column in whole.items()}


BIASED = msgspec.structs.replace(ROUTED, model=SHELF.model("gpt-oss-120b"))
LAYOUTS = {
    "ring": (JOB, Layout(tp=2, pp=2, cp=4, dp=32, zero=1)),
    "heads": (JOB, Layout(tp=2, cp=4, dp=64, context_exchange="all-to-all", zero=0)),
    "sharded": (JOB, Layout(dp=512, zero=3)),
    "copies": (JOB, Layout(dp=512, zero=2, shard=8)),
    "experts": (ROUTED, Layout(tp=2, pp=2, dp=128, ep=16)),
    "cut experts": (ROUTED, Layout(tp=2, dp=256, ep=8, etp=2)),
    "biases": (BIASED, Layout(dp=512, ep=8)),
}


@pytest.mark.parametrize("kind", LAYOUTS)
def test_all_that_is_exchanged_is_twice_as_much_and_nothing_else_changes_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, layout = LAYOUTS[kind]
    in_16 = moved(monkeypatch, in_format(work, "bf16"), layout)
    for name in WIDE:
        found = moved(monkeypatch, in_format(work, name), layout)
        assert found == {part: pytest.approx(2 * size, rel=1e-12) for part, size in in_16.items()}
    for name in NARROW:
        assert moved(monkeypatch, in_format(work, name), layout) == in_16
    once_a_token = msgspec.structs.replace(SIXTEEN, deduplicated=True)
    few, many = (
        moved(monkeypatch, in_format(work, name), layout, once_a_token)["experts"]
        for name in ("bf16", "fp32")
    )
    assert many == pytest.approx(2 * few, rel=1e-12)


def test_wide_gradients_can_be_sent_in_16_bits() -> None:
    """A framework that sends 16 bits has nothing to gain from a cast to them, but where it computes in 32."""
    plain, cast = Layout(tp=2, dp=256, zero=1), Layout(tp=2, dp=256, zero=1, compression="bf16")
    for name, gains in (("bf16", False), ("fp32", True)):
        data_s = step_times(in_format(JOB, name), CLUSTER, Space.of([plain, cast]), SIXTEEN).data_s
        assert (data_s[1] < data_s[0]) == gains


# -- the host ----------------------------------------------------------------------------------------------------------

HOSTED = cluster_of(SHELF.chip("h100-sxm"), 64, servers=SHELF.servers())
ON_HOST = Layout(tp=8, dp=8, offload=("optimizer",))


@pytest.mark.parametrize(
    ("state", "precision", "touched"),
    [
        ("", "bf16", 2 * 12 + 4 + 2),
        ("pure-bf16", "bf16", 2 * 4 + 2 + 2 * 2),
        ("precision-aware", "bf16", 2 * 8 + 4 + 2),
        ("", "fp32", 2 * 8 + 4 + 2 * 4),
    ],
)
def test_the_host_updates_the_state_that_was_asked_for(state: str, precision: str, touched: int) -> None:
    """Its memory streams at four fifths of its rate; a weight without a wider copy is read too."""
    work = msgspec.structs.replace(in_format(JOB, precision), state=state)
    kit = framework("nemo")
    owned = float(chip_share(work, Space.of(ON_HOST)).total[0]) / 8
    update_s = owned * touched / (0.8 * HOSTED.host.memory_bytes_per_s)
    run = simulate_step(work, HOSTED, ON_HOST, kit)
    assert float(run.closed.offload_s[0]) == pytest.approx(update_s)
    figure = step_figure(run)
    assert false_nodes(figure) == []
    update = next(one for _, one in figure.walk() if one.name == "update on the host")
    assert update.value == pytest.approx(update_s)
    assert update.at("state read and written", "moved for a parameter").value == touched


def test_a_state_that_is_asked_for_reaches_the_step() -> None:
    asked = {"chips": 64, "tp": 8, "offload": "optimizer"}
    offload_s = {}
    for state in ("megatron", "pure-bf16"):
        found = setup("llama-3.1-70b", **asked, state=state)
        times = step_times(found.job, found.cluster, Space.of(found.layout), found.framework)
        offload_s[state] = float(times.offload_s[0])
    assert offload_s["pure-bf16"] / offload_s["megatron"] == pytest.approx(14 / 30)


# -- what figures say --------------------------------------------------------------------------------------------------


def figures(work: Job, layout: Layout) -> list[Breakdown]:
    kit, cluster = framework("megatron-2022"), msgspec.structs.replace(HOSTED, num_chips=layout.num_chips)
    books = work.books(kit)
    stage = stage_memories(work, HOSTED.chip, layout, books)[0]
    memory = memory_figure(work, Degrees(layout), stage, books, "1f1b", "memory")
    return [memory, step_figure(simulate_step(work, cluster, layout, kit))]


@pytest.mark.parametrize(("name", "width"), [("bf16", 16), ("fp8", 16), ("fp32", 32), ("tf32", 32)])
@pytest.mark.parametrize(
    "layout",
    [
        Layout(tp=4, pp=2, cp=2, dp=4, zero=1),
        Layout(dp=64, zero=3, offload=("optimizer", "parameters")),
    ],
)
def test_figures_say_the_width_that_they_count(name: str, width: int, layout: Layout) -> None:
    small = msgspec.structs.replace(in_format(JOB, name), model=SHELF.model("llama-3.1-8b"))
    said = set()
    for figure in figures(small, layout):
        assert false_nodes(figure) == []
        for _, node in figure.walk():
            if " bits" in node.note:
                said.add(node.note.partition(" bits")[0].split()[-1])
            if node.name in ("bytes of a copy", "bytes of a parameter") and "bits" in node.note:
                assert node.value == width / 8
    assert said == {str(width)}
