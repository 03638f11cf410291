"""The work of each pipeline stage: nothing of the closed form is lost or counted twice when it is cut over stages.

Llama 3.1 70B has 80 layers; 64 chips are four of tensor parallelism, four stages and four replicas, 16 micro-batches.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.fabric.collectives.choice import collective_times
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.bubble import bubble_time
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.simulate import simulate
from datahall.training.pipeline.straggler import Stragglers
from datahall.training.step.exchange import data_exchange, halves_between_sharers, tensor_exchange
from datahall.training.step.experts import expert_exchange
from datahall.training.step.framework import framework
from datahall.training.step.micro_batch import layout_operators
from datahall.training.step.step import Job, accumulation_time, kernel_times, round_trip_time
from datahall.workload.operator import Gemm
from datahall.workload.parameters import count_parameters

LORA = Adapters(rank=16, targets="attention")

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
CLUSTER = cluster_of(H100, 64)
KIT = msgspec.structs.replace(
    framework("nemo"), tensor_exposed=0.5, expert_exposed=0.5, pipeline_exposed=0.25, data_exposed=0.75,
    gradient_bytes=4.0, fixed_s=0.5, jitter=0.0, host_s=0.0,
)  # fmt: skip
LLAMA = SHELF.model("llama-3.1-70b")
JOB = Job(model=LLAMA, seq=8192, global_batch=64)
PIPE = Layout(tp=4, pp=4, dp=4)
VIRTUAL = Layout(tp=4, pp=4, vpp=5, dp=4)
MICRO = 16


def run(layout: Layout = PIPE, job: Job = JOB, order: str = "", **kit: object) -> Execution:
    return simulate_step(job, CLUSTER, layout, msgspec.structs.replace(KIT, **kit), order=order)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "layout",
    [
        PIPE,
        VIRTUAL,
        Layout(tp=4, dp=16),
        Layout(tp=4, pp=4, dp=4, recompute="full"),
        Layout(tp=4, pp=4, dp=4, zero=3),
    ],
)
def test_kernels_of_all_stages_are_those_of_the_closed_form(layout: Layout) -> None:
    found = run(layout).stages
    layer_s, outside_s = (float(one[0]) for one in kernel_times(JOB, CLUSTER, Space.of(layout), KIT))
    assert sum(found.layer.kernels_s) == pytest.approx(layer_s)
    assert sum(found.first.kernels_s) + sum(found.last.kernels_s) == pytest.approx(outside_s)
    exchange_s = float(tensor_exchange(JOB, CLUSTER, Space.of(layout), KIT)[0])
    assert sum(found.layer.exchange_s) == pytest.approx(exchange_s)
    work = found.work
    total_s = float((work.forward_s + work.input_s + work.weight_s).sum())
    assert total_s == pytest.approx(found.beside_ratio * (80 * (layer_s + exchange_s) + outside_s))
    assert found.layers.sum() == 80
    assert found.tensor_whole_s == pytest.approx(2 * exchange_s)


def test_a_product_has_two_gradients_for_its_own_time() -> None:
    """Each product is multiplied three times over the same sizes: forward, for its input and for its weights."""
    layers = [
        one for one in layout_operators(JOB, KIT, PIPE, H100)
        if isinstance(one.shape, Gemm) and not one.name.startswith("head")
    ]  # fmt: skip
    flop = {
        kind: sum(one.count * float(np.ravel(one.flop)[0]) for one in layers if which(one))
        for kind, which in {
            "forward": lambda one: not one.backward,
            "input": lambda one: one.backward and not one.name.endswith("_wgrad"),
            "weights": lambda one: one.backward and one.name.endswith("_wgrad"),
        }.items()
    }
    assert flop["forward"] > 0
    assert flop["input"] == pytest.approx(flop["forward"], rel=1e-12)
    assert flop["weights"] == pytest.approx(flop["forward"], rel=1e-12)


def test_frozen_weights_take_their_gradients_away() -> None:
    """Adapters bring kernels of their own, a few per cent of the products; the head has none."""
    whole, frozen = (
        run().stages,
        run(job=msgspec.structs.replace(JOB, adapters=LORA)).stages,
    )
    assert frozen.last.kernels_s == pytest.approx((*whole.last.kernels_s[:2], 0.0), rel=1e-12)
    assert frozen.first.kernels_s == pytest.approx((whole.first.kernels_s[0], 0.0, 0.0), rel=1e-12)
    for there, now in zip(whole.layer.kernels_s[:2], frozen.layer.kernels_s[:2], strict=True):
        assert there < now < 1.2 * there
    assert 0 < frozen.layer.kernels_s[2] < 0.1 * whole.layer.kernels_s[2]


def test_full_recomputation_adds_a_forward_to_the_backward_for_the_input() -> None:
    none, full = run().stages.layer, run(msgspec.structs.replace(PIPE, recompute="full")).stages.layer
    forward_s, input_s, weight_s = none.kernels_s
    assert full.redone_s == pytest.approx(forward_s, rel=1e-12)
    assert full.kernels_s == pytest.approx((forward_s, input_s + forward_s, weight_s), rel=1e-12)


def test_the_embedding_has_no_input_to_differentiate() -> None:
    last = run().stages.last
    embedding = run().stages.first.kernels_s
    assert embedding[0] > 0
    assert embedding[1] == 0  # it has no input to differentiate: all of its backward is for its weights
    assert embedding[2] > 0
    assert sum(embedding) < 0.1 * sum(last.kernels_s)


def test_adding_up_gradients_is_backward_for_weights() -> None:
    wide, narrow = (run(gradient_bytes=size).stages.layer.kernels_s for size in (8.0, 4.0))
    more_s = float(accumulation_time(JOB, CLUSTER, Space.of(PIPE), KIT)[0])
    assert wide[2] - narrow[2] == pytest.approx(more_s, rel=1e-6)
    assert wide[:2] == pytest.approx(narrow[:2])


def test_work_done_again_is_a_forward_inside_backward() -> None:
    none, full = run().stages.layer, run(Layout(tp=4, pp=4, dp=4, recompute="full")).stages.layer
    assert none.redone_s == 0
    assert full.redone_s == pytest.approx(none.kernels_s[0], rel=1e-6)
    assert full.kernels_s[1] - none.kernels_s[1] == pytest.approx(full.redone_s, rel=1e-6)
    assert full.kernels_s[0] == pytest.approx(none.kernels_s[0], rel=1e-6)


@pytest.mark.parametrize(("recompute", "share"), [("none", 1 / 2), ("selective", 1 / 2), ("full", 1 / 3)])
def test_two_of_a_layers_reductions_are_in_forward(recompute: str, share: float) -> None:
    layout = Layout(tp=4, pp=4, dp=4, recompute=recompute)  # type: ignore[arg-type]
    forward_s, input_s, weight_s = run(layout).stages.layer.exchange_s
    assert forward_s == pytest.approx(share * (forward_s + input_s))
    assert weight_s == 0


def test_half_of_the_exchange_of_tokens_is_in_forward() -> None:
    job = Job(model=SHELF.model("qwen3-30b-a3b"), seq=4096, global_batch=256, imbalance=1.5)
    layout = Layout(dp=64, ep=8)
    found = run(layout, job).stages
    whole_s = float(expert_exchange(job, CLUSTER, Space.of(layout), KIT)[0])
    assert found.layer.exchange_s == pytest.approx((whole_s / 2, whole_s / 2, 0.0))
    assert found.tensor_whole_s == pytest.approx(2 * whole_s)
    # the busiest rank has half more copies: a third of what is routed is waiting
    assert found.layer.uneven_s > whole_s / 3
    even = run(layout, msgspec.structs.replace(job, imbalance=1.0)).stages
    lost_s = sum(found.layer.kernels_s) + whole_s - sum(even.layer.kernels_s) - whole_s / 1.5
    assert found.layer.uneven_s == pytest.approx(lost_s)
    assert run(Layout(dp=64), job).stages.layer.uneven_s == 0
    assert run().stages.layer.uneven_s == 0


@pytest.mark.parametrize(("layout", "chunks"), [(PIPE, 1), (VIRTUAL, 5)])
def test_tables_lie_on_the_ends(layout: Layout, chunks: int) -> None:
    """Between the ends every part is alike; the first also looks tokens up, the last also has head and loss."""
    found = run(layout)
    work, position = found.stages.work, found.plan.position
    layer, ratio = found.stages.layer, found.stages.beside_ratio
    each = 20 // chunks
    for place, part in enumerate(position):
        ends = found.stages.first.kernels_s if part == 0 else (0.0, 0.0, 0.0)
        if part == 4 * chunks - 1:
            ends = found.stages.last.kernels_s
        for at, column in enumerate((work.forward_s, work.input_s, work.weight_s)):
            want = each * (layer.kernels_s[at] + layer.exchange_s[at]) + ends[at]
            assert column[place] == pytest.approx(ratio * want)
    assert work.num_buckets.tolist() == [each] * (4 * chunks)


def test_messages_are_a_latency_and_a_transfer() -> None:
    """A slice of 2²⁷/4 bytes between neighbours sixteen ranks apart; an empty message is all latency."""
    found = run()
    near = msgspec.structs.replace(CLUSTER.system, num_domain=1)
    whole_s, empty_s = (float(collective_times(near, "send-recv", size, 2)[0][0]) for size in (2.0**25, 1.0))
    work = found.stages.work
    assert found.stages.message_s == pytest.approx(whole_s)
    assert work.latency_s == pytest.approx(empty_s)
    assert work.transfer_s == pytest.approx(whole_s - empty_s)
    assert work.blocked_s == pytest.approx(0.25 * whole_s)
    assert run(VIRTUAL).stages.work.blocked_s == pytest.approx(0.25 * whole_s)
    alone = run(Layout(tp=4, dp=16)).stages
    assert (alone.message_s, alone.work.latency_s, alone.work.blocked_s) == (0, 0, 0)


@pytest.mark.parametrize(("zero", "gathered"), [(0, 0.0), (1, 1 / 3), (2, 1 / 3)])
def test_hidden_exchange_is_spread_as_the_parameters_are(zero: int, gathered: float) -> None:
    """A quarter of the exchange hides.  Stages hold 20 layers; the ends also a table.  Two bytes of each gathered
    parameter to four of each reduced gradient."""
    found = run(Layout(tp=4, pp=4, dp=4, zero=zero))
    shown = msgspec.structs.replace(KIT, data_exposed=1.0)
    whole_s = float(
        data_exchange(
            JOB,
            CLUSTER,
            Space.of(found.layout),
            shown,
            halves_between_sharers(JOB, CLUSTER, Space.of(found.layout), shown),
        )[0]
    )
    counts = count_parameters(LLAMA)
    each = (counts.total - 2 * counts.embedding) / 4
    held = np.array([each + counts.embedding, each, each, each + counts.head])
    hidden_s = 0.25 * whole_s * held / held.max()
    work = found.stages.work
    assert work.gather_s == pytest.approx(gathered * hidden_s)
    assert work.reduce_s == pytest.approx((1 - gathered) * hidden_s)


def test_dualpipe_lays_each_part_on_two_stages() -> None:
    plain, both = run(), run(order="dualpipe")
    assert both.stages.work.reduce_s.max() == pytest.approx(
        2 * plain.stages.work.reduce_s.max() * _fuller(both) / _fuller(plain), rel=1e-6
    )
    assert both.data_exposed_s == pytest.approx(2 * plain.data_exposed_s)


def _fuller(found: Execution) -> float:
    """The fullest place over the fullest stage, in parameters."""
    counts = count_parameters(LLAMA)
    each = (counts.total - counts.embedding - counts.head) / 80
    held = found.stages.layers * each
    held[0] += counts.embedding
    held[-1] += counts.head
    places = held[found.plan.position].reshape(4, -1)
    return float(places.max() / places.sum(axis=1).max())


def test_the_heaviest_stage_is_the_one_with_the_head() -> None:
    found = run()
    assert found.heaviest == 3
    parts, stages = found.parts, found.stages
    assert parts.kernels_s == pytest.approx(
        MICRO * (20 * sum(stages.layer.kernels_s) + sum(stages.last.kernels_s))
    )
    assert parts.exchange_s == pytest.approx(MICRO * 20 * sum(stages.layer.exchange_s))
    assert parts.messages_s == pytest.approx(MICRO * stages.work.blocked_s)  # it only sends backward
    assert parts.fixed_s == 0.5
    early = run(Layout(tp=4, pp=4, dp=4, split=(29, 17, 17, 17)))
    assert early.heaviest == 0
    assert early.parts.kernels_s == pytest.approx(
        MICRO * (29 * sum(early.stages.layer.kernels_s) + sum(early.stages.first.kernels_s))
    )
    middle = run(Layout(tp=4, pp=4, dp=4, split=(17, 29, 17, 17)))
    assert middle.heaviest == 1
    assert middle.parts.kernels_s == pytest.approx(MICRO * 29 * sum(middle.stages.layer.kernels_s))
    assert middle.parts.messages_s == pytest.approx(2 * MICRO * middle.stages.work.blocked_s)
    virtual = run(VIRTUAL)
    assert virtual.parts.kernels_s == pytest.approx(parts.kernels_s)
    # five chunks: the last sends forward from all but one of its chunks, backward from all
    assert virtual.parts.messages_s == pytest.approx(9 * MICRO * virtual.stages.work.blocked_s)


def test_equal_stages_give_the_first() -> None:
    tied = run(Layout(tp=4, pp=4, dp=4, split=(17, 23, 23, 17)))
    assert tied.heaviest == 1


def test_a_single_stage_has_neither_bubble_nor_messages() -> None:
    found = run(Layout(tp=4, dp=16))
    assert (found.parts.bubble_s, found.parts.messages_s) == (0, 0)
    stages = found.stages
    outside_s = sum(stages.first.kernels_s) + sum(stages.last.kernels_s)
    assert found.parts.kernels_s == pytest.approx(4 * (80 * sum(stages.layer.kernels_s) + outside_s))


def test_what_is_hidden_and_what_shows_make_the_whole() -> None:
    """Half of tensor exchange, three quarters of messages and of data exchange a quarter at least hide."""
    found = run()
    assert found.hidden_s["tensor"] == pytest.approx(found.parts.exchange_s)
    assert found.hidden_s["messages"] == pytest.approx(3 * found.parts.messages_s)
    work = found.stages.work
    whole_s = float(work.gather_s[3] + work.reduce_s[3]) + found.data_exposed_s
    assert found.hidden_s["data"] == pytest.approx(whole_s - found.parts.data_s)
    assert found.hidden_s["parameters"] == 0
    sharded = run(Layout(dp=64, zero=3))
    gathered_s = float(sharded.closed.gathered_s[0])
    assert sharded.hidden_s["parameters"] == pytest.approx(gathered_s - sharded.parts.beside_s)
    assert sharded.hidden_s["parameters"] > 0


def test_a_step_is_its_slowest_replica_and_what_comes_once() -> None:
    found = run()
    closed = found.closed
    once_s = float(closed.data_s[0] + closed.optimizer_s[0]) + 0.5
    assert found.step_s == pytest.approx(found.alone.makespan_s + once_s)
    assert found.parts.slowest_s == pytest.approx(0.0, abs=1e-9)
    shaky = run(jitter=0.01)
    assert shaky.step_s == pytest.approx(found.step_s * (1 + 0.01 * np.log(64)))
    assert shaky.parts.slowest_s == pytest.approx(shaky.step_s - found.step_s)
    both = run(order="dualpipe")
    twice_s = float(closed.data_s[0] + closed.optimizer_s[0])  # a stage holds a part for each way
    assert both.step_s == pytest.approx(both.alone.makespan_s + once_s + twice_s)


def test_offloading_shows_in_both_forms_of_a_step() -> None:
    cluster = cluster_of(H100, 64, servers=SHELF.servers())
    layout = msgspec.structs.replace(PIPE, offload=("optimizer",))
    found = simulate_step(JOB, cluster, layout, KIT)
    offload_s = float(found.closed.offload_s[0])
    assert offload_s > 0
    assert found.parts.offload_s == found.closed_parts.offload_s == offload_s
    assert found.parts.step_s == pytest.approx(found.step_s)
    assert found.step_s == pytest.approx(found.alone.makespan_s + found.data_exposed_s + offload_s + 0.5)
    assert found.closed_parts.step_s == pytest.approx(float(found.closed.step_s[0]))


def test_jitter_that_is_asked_for_takes_the_place_of_the_frameworks() -> None:
    calm = simulate_step(
        JOB,
        CLUSTER,
        PIPE,
        msgspec.structs.replace(KIT, jitter=0.5),
        stragglers=Stragglers(jitter_fraction=1e-9),
    )
    assert calm.step_s == pytest.approx(run().step_s, rel=1e-6)
    assert calm.steps_s.size == 8
    few = simulate_step(JOB, CLUSTER, PIPE, KIT, stragglers=Stragglers(jitter_fraction=0.01), num_steps=3)
    assert few.steps_s.size == 3
    assert few.step_s == pytest.approx(few.steps_s.mean())
    assert few.steps_s[0] - few.slowest.makespan_s == pytest.approx(run().step_s - run().alone.makespan_s)


def test_the_closed_parts_add_up_with_another_bubble() -> None:
    for order in ("1f1b", "gpipe", "zb", "dualpipe"):
        found = run(order=order, jitter=0.01)
        closed = found.closed_parts
        work = found.stages.work
        if order in ("1f1b", "gpipe"):
            ends_s = round_trip_time(found.closed, Space.of(PIPE), order)
            assert closed.bubble_s == float((found.closed.bubble_s - found.closed.round_trip_s + ends_s)[0])
            assert (ends_s > 0) == (order == "gpipe")
        else:
            assert closed.bubble_s == pytest.approx(
                bubble_time(
                    order,
                    num_stages=4,
                    forward_s=float(work.forward_s.mean()) + work.blocked_s,
                    input_s=float(work.input_s.mean()) + work.blocked_s,
                    weight_s=float(work.weight_s.mean()),
                )
            )
        grew = closed.slowest_s / (closed.step_s - closed.slowest_s)
        assert grew == pytest.approx(0.01 * np.log(64))
        assert closed.kernels_s == pytest.approx(MICRO * float(found.closed.compute_s[0]))
        assert closed.messages_s == pytest.approx(MICRO * float(found.closed.pipeline_s[0]))
        assert closed.exchange_s == pytest.approx(MICRO * float(found.closed.tensor_s[0]))
        assert closed.beside_s == 0


def test_utilisation_is_useful_arithmetic_over_the_peak() -> None:
    """6·N for all but the looked-up table, 70.55 − 1.05 B, and 6·L·h·c for attention: 448.9 GFLOP a token."""
    found = run()
    flop = 6 * (70_553_706_496 - 1_050_673_152) + 6 * 80 * 8192 * 8192
    rate = 64 * 8192 / found.step_s
    assert found.tokens_per_s == pytest.approx(rate)
    assert found.mfu_fraction == pytest.approx(rate * flop / (64 * H100.peak("bf16")), rel=1e-3)


def test_a_slow_stage_is_played_as_slow() -> None:
    """The replica that all wait for ends as late as playing its stages with their slowness does."""
    who = Stragglers(slow_hosts_fraction=0.5, slow_by_fraction=0.3)
    found = simulate_step(JOB, CLUSTER, PIPE, KIT, stragglers=who, seed=2)
    every_slow = simulate(found.plan, found.stages.work, np.full(4, 1.3)).makespan_s
    assert found.alone.makespan_s < found.slowest.makespan_s <= every_slow
    assert found.steps_s.size == 1


def test_a_collective_beside_the_kernels_takes_some_of_the_chip() -> None:
    """Two per cent of the arithmetic, so kernels take 1/0.98 as long while it runs."""
    assert run().stages.work.beside_ratio == pytest.approx(1 / 0.98)


def test_kernels_with_nothing_beside_them_are_not_slowed_on_uneven_stages() -> None:
    """126 layers on 16 stages are eight on each but the two ends."""
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=128)
    run = simulate_step(
        job, cluster_of(SHELF.chip("h100-sxm"), 256), Layout(tp=8, pp=16, dp=2), framework("nemo")
    )
    assert run.stage_layers[-1] < run.stage_layers[1]
    assert run.stages.beside_ratio == pytest.approx(1.0)
