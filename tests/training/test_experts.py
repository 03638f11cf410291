"""Experts spread over chips: what reaches them, how their products run, and what the host must launch."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.catalog import load
from datahall.training.cluster import cluster_of
from datahall.training.experts import apart_by_expert, bias_traffic, expert_exchange, places_reached
from datahall.training.framework import framework
from datahall.training.launch import launch_times
from datahall.training.layout import Layout, Space
from datahall.training.step import Job, step_times
from datahall.workload.operator import Gemm, GroupedGemm, Operator

QWEN = Job(model=load().model("qwen3-30b-a3b"), seq=4096, global_batch=512)
SPREAD = Layout(dp=16, ep=16, micro_batch=1)
H100 = cluster_of(load().chip("h100-sxm"), 16)
EAGER = framework("megatron-bridge-eager")


def test_a_token_reaches_no_more_places_than_it_has_experts() -> None:
    places = np.array([1.0, 2.0, 8.0, 64.0, 1e6])
    reached = places_reached(places, 8.0)
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
