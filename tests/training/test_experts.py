"""Experts spread over chips: what reaches them, how their products run, and what the host must launch."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.experts import (
    apart_by_expert,
    bias_traffic,
    busiest_load,
    expert_exchange,
    places_reached,
)
from datahall.training.step.framework import framework
from datahall.training.step.launch import launch_times, sync_time
from datahall.training.step.micro_batch import ExpertSharding
from datahall.training.step.step import Job, step_times
from datahall.workload.operator import Gemm, GroupedGemm, Operator

QWEN = Job(model=load().model("qwen3-30b-a3b"), seq=4096, global_batch=512)
SPREAD = Layout(dp=16, ep=16, micro_batch=1)
H100 = cluster_of(load().chip("h100-sxm"), 16)
EAGER = framework("megatron-bridge-eager")
GRAPH = framework("megatron-bridge-graph")


def test_a_token_reaches_no_more_places_than_it_has_experts() -> None:
    places = np.array([1.0, 2.0, 8.0, 64.0, 1e6])
    reached = places_reached(places, 8.0, num_groups=1, num_groups_per_token=1)
    assert np.all(reached <= np.minimum(places, 8.0) + 1e-6)
    assert np.all(np.diff(reached) > 0)


def test_sending_a_token_once_to_a_server_is_faster_than_once_to_an_expert() -> None:
    space = Space.of(SPREAD)
    once = expert_exchange(QWEN, H100, space, EAGER)
    each = expert_exchange(QWEN, H100, space, msgspec.structs.replace(EAGER, deduplicated=False))
    assert 0 < once[0] < 0.6 * each[0]


def test_a_dense_model_exchanges_nothing() -> None:
    dense = Job(model=load().model("llama-3.1-8b"), seq=4096, global_batch=512)
    assert expert_exchange(dense, H100, Space.of(Layout(dp=16)), EAGER)[0] == 0


def test_exchange_beside_kernels_shows_a_share_and_all_that_is_longer() -> None:
    space = Space.of(SPREAD)
    hidden = msgspec.structs.replace(EAGER, expert_exposed=0.15)
    whole = expert_exchange(QWEN, H100, space, EAGER)
    assert expert_exchange(QWEN, H100, space, hidden, 2 * whole) == pytest.approx(0.15 * whole)
    assert expert_exchange(QWEN, H100, space, hidden, 0.1 * whole) == pytest.approx(0.9 * whole)


def test_products_of_experts_are_taken_apart_with_their_arithmetic() -> None:
    grouped = Operator(
        name="expert_up",
        shape=GroupedGemm(8192.0, 16.0, 1536.0, 2048.0),
        precision="bf16",
        weight_precision="bf16",
        flop=2.0 * 8192 * 1536 * 2048,
        read_bytes=0.0,
        write_bytes=0.0,
    )
    (one,), (num,) = apart_by_expert([grouped])
    assert isinstance(one.shape, Gemm)
    assert 2 * one.shape.m * one.shape.n * one.shape.k * num == grouped.flop


def test_only_experts_with_biases_have_their_traffic() -> None:
    tp, cp, batch = np.ones(1), np.ones(1), np.full(1, 4.0)
    oss = Job(model=load().model("gpt-oss-120b"), seq=4096, global_batch=1280)
    assert bias_traffic(QWEN, H100, tp, cp, batch)[0] == 0
    assert bias_traffic(oss, H100, tp, cp, batch)[0] > 0


def test_graphs_take_launches_off_the_host() -> None:
    space, depth = Space.of(SPREAD), np.full(1, 48.0)
    kits = [msgspec.structs.replace(EAGER, captured=one) for one in ("none", "attention", "step")]
    eager, partly, whole = (launch_times(QWEN, space, kit, depth)[0] for kit in kits)
    assert eager > partly > whole == 0


def test_small_micro_batches_of_a_mixture_take_as_long_as_their_launch() -> None:
    tiny = msgspec.structs.replace(QWEN, seq=128)
    times = step_times(tiny, H100, Space.of(SPREAD), EAGER)
    assert times.slot_s == pytest.approx(times.launch_s, rel=0.05)
    assert times.compute_s < 0.5 * times.launch_s


def test_the_busiest_rank_holds_up_kernels_and_exchange_and_nothing_else() -> None:
    space = Space.of(SPREAD)
    even = step_times(msgspec.structs.replace(QWEN, imbalance=1.0), H100, space, GRAPH)
    skewed = step_times(msgspec.structs.replace(QWEN, imbalance=1.5), H100, space, GRAPH)
    chance = step_times(QWEN, H100, space, GRAPH)
    assert even.step_s < chance.step_s < 1.05 * even.step_s
    assert 1.1 * even.step_s < skewed.step_s < 1.5 * even.step_s
    assert skewed.optimizer_s == even.optimizer_s
    whole = msgspec.structs.replace(GRAPH, expert_exposed=1.0)
    apart = [
        expert_exchange(msgspec.structs.replace(QWEN, imbalance=one), H100, space, whole)
        for one in (1.0, 1.5)
    ]
    assert apart[1] == pytest.approx(1.5 * apart[0])


def test_experts_on_one_chip_know_no_imbalance() -> None:
    alone = ExpertSharding(ep=np.array([1.0]))
    assert busiest_load(msgspec.structs.replace(QWEN, imbalance=2.0), alone, 1.0) == 1.0


def test_no_rank_has_more_than_all_copies() -> None:
    two = ExpertSharding(ep=np.array([2.0]))
    assert busiest_load(msgspec.structs.replace(QWEN, imbalance=5.0), two, 1.0) == 2.0


def test_node_limited_routing_reaches_no_more_nodes_than_it_may() -> None:
    places = np.array([1.0, 2.0, 4.0, 8.0])
    free, limited = (
        places_reached(places, 8.0, num_groups=1, num_groups_per_token=1),
        places_reached(places, 8.0, 8, 4),
    )
    assert np.all(limited <= free)
    assert limited[0] == 1.0
    assert limited[-1] == pytest.approx(4.0)
    assert places_reached(np.array(256.0), 8.0, 8, 4) <= 8.0


def test_limited_groups_are_those_of_random_choices() -> None:
    rng = np.random.default_rng(5)
    for num_places in (2, 4, 8):
        reached = [
            np.unique(rng.permutation(8)[:4] * num_places // 8).size for _ in range(4000)
        ]  # four of eight groups, dealt to places in turn
        assert places_reached(np.array(float(num_places)), 64.0, 8, 4) == pytest.approx(
            np.mean(reached), rel=0.02
        )


def test_a_layer_of_experts_waits_for_the_host_unless_one_graph_holds_the_step() -> None:
    assert sync_time(QWEN, EAGER) == pytest.approx(EAGER.host_s)
    assert sync_time(QWEN, GRAPH) == 0
    assert sync_time(Job(model=load().model("llama-3.1-8b"), seq=4096, global_batch=512), EAGER) == 0
