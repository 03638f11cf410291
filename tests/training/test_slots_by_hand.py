"""How slots, bubble and what comes on top make a step, worked out by hand."""

from __future__ import annotations

from math import ceil

import msgspec
import numpy as np
import pytest
from tests.training.hand import BODY, CLUSTER, H100, JOB, KIT, LLAMA, ROUTED, SHELF, TABLE, one

from datahall.cluster.cluster import cluster_of
from datahall.cluster.host import Host
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.exchange import messages_alone, tensor_exchange
from datahall.training.step.framework import band_of
from datahall.training.step.stage import cut_layers, head_layers, stage_depths
from datahall.training.step.step import kernel_times, step_band, step_times

BARE = msgspec.structs.replace(KIT, tensor_exposed=0.0, pipeline_exposed=0.0, data_exposed=0.0)


@pytest.mark.parametrize(
    ("layout", "deep", "last", "mean"),
    [
        (Layout(dp=64), 80, 80, 80),
        (Layout(pp=4, dp=16), 20, 20, 20),
        (Layout(pp=4, vpp=5, dp=16), 20, 20, 20),
        (Layout(pp=16, dp=4), 5, 5, 5),
        (Layout(pp=4, dp=16, split=(22, 21, 21, 16)), 22, 16, 20),
        (Layout(pp=2, vpp=2, dp=32, split=(15, 25, 15, 25)), 30, 50, 40),
    ],
)
def test_a_bare_pipeline_takes_its_slots_and_the_way_in_and_out(
    layout: Layout, deep: int, last: int, mean: int
) -> None:
    """Without exchange a slot is the slower of the deepest stage and the last with the head; filling and draining
    takes the mean stage once for each stage but one, less where chunks take turns."""
    space = Space.of(layout)
    depths = stage_depths(LLAMA, space)
    assert [float(column[0]) for column in depths] == [deep, last, mean]
    layer_s, outside_s = (one(times) for times in kernel_times(JOB, CLUSTER, space, BARE))
    times = step_times(JOB, cluster_of(H100, 64), space, BARE)
    slot_s = max(deep * layer_s, last * layer_s + outside_s) if layout.pp > 1 else deep * layer_s + outside_s
    assert one(times.slot_s) == pytest.approx(slot_s)
    bubble_s = (layout.pp - 1) * (mean * layer_s + outside_s / layout.pp) / layout.vpp
    assert one(times.bubble_s) == pytest.approx(bubble_s)
    assert one(times.num_micro) == 256 / layout.dp
    assert one(times.step_s - times.optimizer_s) == pytest.approx(256 / layout.dp * slot_s + bubble_s)


def test_layers_that_do_not_divide_leave_the_ends_short() -> None:
    """The head of 405B is two thirds of a layer, so the last stage is one short; that of 8B 2.4, so it may be three."""
    deep, last, mean = stage_depths(SHELF.model("llama-3.1-405b"), Space.of([Layout(pp=16), Layout(pp=64)]))
    assert deep.tolist() == [8, 2]
    assert last.tolist() == [7, 1]
    assert mean.tolist() == [126 / 16, 126 / 64]
    deep, last, _ = stage_depths(SHELF.model("llama-3.1-8b"), Space.of([Layout(pp=7), Layout(pp=9)]))
    assert (deep.tolist(), last.tolist()) == ([5, 4], [2, 1])


@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-405b", "deepseek-v3", "gemma-3-27b"])
@pytest.mark.parametrize("stages", [3, 5, 7, 11, 13])
def test_what_does_not_divide_is_taken_off_the_ends(model: str, stages: int) -> None:
    entry = SHELF.model(model)
    cut = cut_layers(entry.num_layers, stages, head_layers(entry))
    most = -(-entry.num_layers // stages)
    assert cut.sum() == entry.num_layers
    assert cut.max() == most
    assert most - cut[-1] <= max(1, ceil(head_layers(entry)))
    assert most - cut[:-1].min() <= 1
    over = most * stages - entry.num_layers
    assert most - cut[-1] == min(over, most, max(1, ceil(head_layers(entry))))  # the last one first


def test_the_head_counts_beside_the_experts_that_a_token_passes() -> None:
    """DeepSeek-V3: 129,280 × 7,168 weights of the head over (37 − 1.85) G active ones in 61 layers."""
    assert head_layers(SHELF.model("deepseek-v3")) == pytest.approx(129_280 * 7_168 / (35.2e9 / 61), rel=0.05)


def test_exchange_comes_on_top_of_a_slot() -> None:
    """The parts of a slot of a tensor- and pipeline-parallel step, each from its own function."""
    layout = Layout(tp=4, pp=4, dp=4)
    space, cluster = Space.of(layout), cluster_of(H100, 64)
    layer_s, outside_s = (one(times) for times in kernel_times(JOB, cluster, space, KIT))
    tensor_s = one(tensor_exchange(JOB, cluster, space, KIT))
    message_s = 0.25 * 2 * one(messages_alone(JOB, cluster, space))  # there and back, a quarter of it exposed
    times = step_times(JOB, cluster, space, KIT)
    stage_s = 20 * (layer_s + tensor_s) + outside_s
    assert one(times.slot_s) == pytest.approx(stage_s + message_s)
    assert one(times.compute_s) == pytest.approx(20 * layer_s + outside_s)
    assert one(times.tensor_s) == pytest.approx(20 * tensor_s)
    mean_s = 20 * (layer_s + tensor_s) + outside_s / 4
    assert one(times.bubble_s) == pytest.approx(3 * (mean_s + message_s))


def test_the_slowest_of_more_ranks_is_slower() -> None:
    layout = Layout(tp=8, dp=64)
    calm = step_times(JOB, CLUSTER, Space.of(layout), KIT)
    shaky = msgspec.structs.replace(KIT, jitter=0.01, fixed_s=2.0)
    found = step_times(JOB, CLUSTER, Space.of(layout), shaky)
    assert one(found.step_s) == pytest.approx((one(calm.step_s) + 2.0) * (1 + 0.01 * np.log(512)))


def test_what_runs_beside_the_kernels_shows_where_it_is_longer() -> None:
    """Fully sharded weights over a slow network: a micro-batch takes as long as they do; over a fast one, as its
    kernels do; in between a little more than either."""
    space = Space.of(Layout(dp=64, zero=3))
    job = msgspec.structs.replace(JOB, global_batch=64)
    for nic, which in ((1e8, "gathered_s"), (1e15, "compute_s")):
        times = step_times(job, cluster_of(H100, 64, num_domain=1, nic_bytes_per_s=nic), space, BARE)
        assert one(times.slot_s) == pytest.approx(one(getattr(times, which)), rel=0.02)
    times = step_times(job, cluster_of(H100, 64, num_domain=1, nic_bytes_per_s=1.2e10), space, BARE)
    apart = (one(times.gathered_s), one(times.compute_s))
    assert max(apart) < one(times.slot_s) < sum(apart)
    low, high = sorted(apart)
    assert one(times.slot_s) == pytest.approx((low**4 + high**4) ** 0.25)


def test_bands_are_those_of_the_kind_of_job_that_misses_most() -> None:
    kit = msgspec.structs.replace(
        KIT, band=(0.9, 1.1), expert_band=(0.8, 1.2), adapter_band=(0.7, 1.3), kin_band=(0.6, 1.4)
    )
    assert band_of(kit, moe=False, adapters=False, measured=True) == (0.9, 1.1)
    assert band_of(kit, moe=False, adapters=False, measured=False) == (0.6, 1.4)
    assert band_of(kit, moe=True, adapters=True, measured=True) == (0.8, 1.2)
    assert band_of(kit, moe=False, adapters=True, measured=False) == (0.7, 1.3)
    assert step_band(JOB, CLUSTER, kit) == (0.9, 1.1)
    assert step_band(ROUTED, CLUSTER, kit) == (0.8, 1.2)
    adapters = msgspec.structs.replace(JOB, adapters=Adapters(rank=16, targets="attention"))
    assert step_band(adapters, CLUSTER, kit) == (0.7, 1.3)


def test_what_is_offloaded_moves_once_for_each_micro_batch() -> None:
    """Weights of 2 · 70.6 B/8 bytes over 1 GB/s take 17.6 s forward and again backward, less what kernels hide;
    256/(8·2) micro-batches, or one where the batch is smaller than that."""
    host = Host(link_bytes_per_s=1e9)
    cluster = msgspec.structs.replace(cluster_of(H100, 64), host=host)
    for batch, num_micro in ((256, 16), (8, 1)):
        job = msgspec.structs.replace(JOB, global_batch=batch)
        space = Space.of(Layout(tp=8, dp=8, micro_batch=2, offload=("parameters",)))
        times = step_times(job, cluster, space, BARE)
        fetched_s = 2 * (BODY + 2 * TABLE) / 8 / 1e9
        assert one(times.offload_s) == pytest.approx(num_micro * (2 * fetched_s - one(times.slot_s)))
