"""What a training step exchanges and moves, with sizes, groups and counts worked out by hand.

Llama 3.1 70B: 80 layers of width 8,192 with 64 heads of 128, eight of them for keys and values, and a vocabulary of
128,256; one sequence of 8,192 tokens in 16 bits is 2²⁷ bytes.  Chips stand eight to a domain.  The time of one
collective of a size among ranks in a domain is the fabric's own.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.cluster.groups import group_times
from datahall.cluster.host import Host
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.torus import torus_times
from datahall.fabric.collectives.choice import collective_times
from datahall.silicon.kernel import time_operators
from datahall.training.layout.layout import Layout, Space
from datahall.training.step.attention import score_traffic
from datahall.training.step.experts import (
    bias_traffic,
    busiest_load,
    expert_exchange,
    moe_share,
    permuted_time,
)
from datahall.training.step.framework import Framework, attention_factor, band_of, framework
from datahall.training.step.launch import launch_times, sync_time
from datahall.training.step.micro_batch import (
    ExpertSharding,
    lacking_module,
    micro_batch_operators,
    sharding_of,
)
from datahall.training.step.stage import stage_depths
from datahall.training.step.step import (
    CONTEXT_EXPOSED,
    Job,
    accumulation_time,
    chip_share,
    data_exchange,
    head_exchange,
    kernel_times,
    operator_times,
    optimizer_time,
    parameter_exchange,
    pipeline_exchange,
    step_band,
    step_times,
    tensor_exchange,
)
from datahall.workload.operator import Operator, Stream
from datahall.workload.parameters import count_parameters

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
RATE = H100.memory_bytes_per_s
CLUSTER = cluster_of(H100, 512)
KIT = msgspec.structs.replace(
    framework("nemo"), compute_factor=1.0, tensor_exposed=0.5, expert_exposed=0.5, pipeline_exposed=0.25,
    data_exposed=0.75, gradient_bytes=4.0, optimizer_bytes=30.0, fixed_s=0.0, jitter=0.0, host_s=0.0,
)  # fmt: skip
LLAMA, QWEN = SHELF.model("llama-3.1-70b"), SHELF.model("qwen3-30b-a3b")
JOB = Job(model=LLAMA, seq=8192, global_batch=256)
ROUTED = Job(model=QWEN, seq=4096, global_batch=256, imbalance=1.0)
SEQUENCE = 2.0**27
TABLE = 128256 * 8192
BODY = 70_553_706_496 - 2 * TABLE


def took(
    collective: Collective, size_bytes: float, num_ranks: int, inside: int, cluster: Cluster = CLUSTER
) -> float:
    """The fabric's own time of a collective with so many ranks of a domain at most."""
    near = msgspec.structs.replace(cluster.system, num_domain=inside)
    return float(collective_times(near, collective, size_bytes, num_ranks)[0][0])


def one(times: np.ndarray) -> float:
    assert times.shape == (1,)
    return float(times[0])


@pytest.mark.parametrize(("stride", "inside"), [(1, 8), (2, 4), (3, 2), (4, 2), (8, 1), (64, 1)])
def test_neighbours_a_stride_apart_share_a_domain_as_far_as_it_goes(stride: int, inside: int) -> None:
    found = group_times(
        CLUSTER.system, "all-gather", np.array([1e8]), np.array([8.0]), np.array([float(stride)])
    )
    assert one(found) == pytest.approx(took("all-gather", 1e8, 8, inside))


def test_rows_of_groups_do_not_disturb_one_another() -> None:
    sizes, ranks = np.array([1e8, 1e6, 1e8, 1e7]), np.array([4.0, 1.0, 16.0, 4.0])
    strides = np.array([1.0, 1.0, 8.0, 2.0])
    found = group_times(CLUSTER.system, "all-reduce", sizes, ranks, strides)
    alone = [
        took("all-reduce", 1e8, 4, 8),
        0.0,
        took("all-reduce", 1e8, 16, 1),
        took("all-reduce", 1e7, 4, 4),
    ]
    assert found.tolist() == pytest.approx(alone)


def test_chips_wired_to_their_neighbours_exchange_on_a_torus() -> None:
    pod = cluster_of(SHELF.chip("tpu-v5p"), 128, torus=(4, 4, 4))
    assert pod.num_domain == 64
    found = group_times(
        pod.system, "all-gather", np.array([1e8, 1e8]), np.array([1.0, 16.0]), np.array([4.0, 4.0])
    )
    alone = torus_times(
        "all-gather", 1e8, (4, 4, 4), num_ranks=16, stride=4, chip_bytes_per_s=pod.system.scale_up_bytes_per_s,
        network_bytes_per_s=pod.system.nic_bytes_per_s,
    )  # fmt: skip
    assert found.tolist() == pytest.approx([0.0, float(np.ravel(alone)[0])])


@pytest.mark.parametrize(("recompute", "times"), [("none", 4), ("selective", 4), ("full", 6)])
def test_tensor_parallelism_reduces_after_both_blocks(recompute: str, times: int) -> None:
    layout = Layout(tp=4, dp=128, recompute=recompute, micro_batch=2)  # type: ignore[arg-type]
    found = one(tensor_exchange(JOB, CLUSTER, Space.of(layout), KIT))
    assert found == pytest.approx(0.5 * times * took("all-reduce", 2 * SEQUENCE, 4, 8))


@pytest.mark.parametrize(("recompute", "times"), [("none", (4, 3)), ("full", (6, 4))])
def test_a_ring_passes_keys_and_values_forward_and_twice_backward(
    recompute: str, times: tuple[int, int]
) -> None:
    """Keys and values of 8,192 tokens, 2·8·128 of two bytes: 2²⁵, over two tensor-parallel chips."""
    layout = Layout(tp=2, cp=4, dp=64, recompute=recompute)  # type: ignore[arg-type]
    reduced = 0.5 * times[0] * took("all-reduce", SEQUENCE / 4, 2, 8)
    passed = CONTEXT_EXPOSED * times[1] * took("all-gather", 2.0**25 / 2, 4, 4)
    assert one(tensor_exchange(JOB, CLUSTER, Space.of(layout), KIT)) == pytest.approx(reduced + passed)


@pytest.mark.parametrize(("recompute", "times"), [("none", 2), ("full", 3)])
@pytest.mark.parametrize(("cp", "kv_heads"), [(4, 8), (8, 16)])
def test_heads_for_tokens_and_back(recompute: str, times: int, cp: int, kv_heads: int) -> None:
    """A head of a chip's tokens is 2·8192·128/(tp·cp) bytes; 64 queries and keys and values go, 64 outputs return."""
    layout = Layout(tp=2, cp=cp, dp=8, context="all-to-all", recompute=recompute)  # type: ignore[arg-type]
    each = 2.0**21 / (2 * cp)
    there = took("all-to-all", each * (64 + 2 * kv_heads), cp, 4)
    back = took("all-to-all", each * 64, cp, 4)
    assert one(head_exchange(JOB, CLUSTER, Space.of(layout))) == pytest.approx(times * (there + back))
    # it takes the place of the ring, not of tensor parallelism
    ring = msgspec.structs.replace(layout, context="ring")
    rings, both = tensor_exchange(JOB, CLUSTER, Space.of([ring, layout]), KIT)
    reduced = 0.5 * (6 if recompute == "full" else 4) * took("all-reduce", SEQUENCE / cp, 2, 8)
    assert both - reduced == pytest.approx(times * (there + back))
    assert rings > reduced


def test_a_message_between_stages_is_a_chips_slice_there_and_back() -> None:
    apart = Layout(tp=2, pp=4, vpp=5, cp=2, dp=32)
    found = one(pipeline_exchange(JOB, CLUSTER, Space.of(apart), KIT))
    assert found == pytest.approx(0.25 * 2 * 5 * took("send-recv", SEQUENCE / 4, 2, 1))
    near = Layout(pp=4, dp=2, micro_batch=2)
    found = one(pipeline_exchange(JOB, CLUSTER, Space.of(near), KIT))
    assert found == pytest.approx(0.25 * 2 * took("send-recv", 2 * SEQUENCE, 2, 4))
    assert one(pipeline_exchange(JOB, CLUSTER, Space.of(Layout(tp=8, dp=64)), KIT)) == 0


def test_a_chips_share_of_the_weights() -> None:
    """Both tables on a single stage, else one on either end."""
    space = Space.of([Layout(), Layout(tp=2), Layout(tp=2, pp=2), Layout(tp=2, pp=4)])
    expected = [BODY + 2 * TABLE, (BODY + 2 * TABLE) / 2, BODY / 4 + TABLE / 2, BODY / 8 + TABLE / 2]
    assert chip_share(JOB, space).dense.tolist() == pytest.approx(expected)
    assert chip_share(JOB, space).expert.tolist() == [0, 0, 0, 0]


def test_a_chips_share_of_the_experts() -> None:
    """128 experts of 3·2048·768 in 48 layers."""
    experts = 48 * 128 * 3 * 2048 * 768
    layouts = [Layout(dp=8, ep=8), Layout(tp=4, dp=2, ep=2, pp=2), Layout(tp=4, dp=4, ep=4, etp=2)]
    found = chip_share(ROUTED, Space.of(layouts))
    assert found.expert.tolist() == pytest.approx([experts / 8, experts / 8, experts / 8])
    rest = count_parameters(QWEN).total - experts
    assert found.dense[0] == rest
    assert found.total.tolist() == (found.dense + found.expert).tolist()


DENSE = BODY / 2 + TABLE


def test_gradients_are_scattered_and_weights_gathered_over_all_who_share() -> None:
    """tp 2, dp 8, cp 2: sixteen ranks two apart, four to a domain; 4 bytes of a gradient, 2 of a weight."""
    space = Space.of(Layout(tp=2, dp=8, cp=2))
    scattered, gathered = took("reduce-scatter", 4 * DENSE, 16, 4), took("all-gather", 2 * DENSE, 16, 4)
    assert one(data_exchange(JOB, CLUSTER, space, KIT)) == pytest.approx(0.75 * (scattered + gathered))
    adapters = msgspec.structs.replace(JOB, adapters_only=True)
    assert one(data_exchange(adapters, CLUSTER, space, KIT)) == pytest.approx(
        0.001 * 0.75 * (scattered + gathered)
    )
    assert one(parameter_exchange(JOB, CLUSTER, space, KIT)) == 0


def test_fully_sharded_weights_are_gathered_twice_for_each_micro_batch() -> None:
    space = Space.of(Layout(tp=2, dp=8, cp=2, zero=3))
    scattered, gathered = took("reduce-scatter", 4 * DENSE, 16, 4), took("all-gather", 2 * DENSE, 16, 4)
    assert one(parameter_exchange(JOB, CLUSTER, space, KIT)) == pytest.approx(2 * gathered + scattered)
    assert one(data_exchange(JOB, CLUSTER, space, KIT)) == 0


def test_experts_are_exchanged_over_their_own_ranks() -> None:
    """ep 8 of 32 ranks: four chips, eight apart, hold the same experts."""
    counts = count_parameters(QWEN)
    dense, expert = counts.total - counts.expert, counts.expert / 8
    space = Space.of(Layout(dp=32, ep=8))
    expected = took("reduce-scatter", 4.0 * dense, 32, 8) + took("all-gather", 2.0 * dense, 32, 8)
    expected += took("reduce-scatter", 4.0 * expert, 4, 1) + took("all-gather", 2.0 * expert, 4, 1)
    assert one(data_exchange(ROUTED, CLUSTER, space, KIT)) == pytest.approx(0.75 * expected)


def test_groups_that_hold_the_same_state_reduce_their_parts_once_a_step() -> None:
    """dp 16 in groups of four: four copies of a quarter each, 2·4 ranks apart."""
    space = Space.of(Layout(tp=2, dp=16, shard=4))
    inside = took("reduce-scatter", 4 * DENSE, 4, 4) + took("all-gather", 2 * DENSE, 4, 4)
    between = took("all-reduce", 4 * DENSE / 4, 4, 1)
    assert one(data_exchange(JOB, CLUSTER, space, KIT)) == pytest.approx(0.75 * (inside + between), rel=1e-4)
    full = Space.of(Layout(tp=2, dp=16, shard=4, zero=3))
    assert one(data_exchange(JOB, CLUSTER, full, KIT)) == pytest.approx(0.75 * between, rel=1e-4)


def test_experts_of_groups_that_hold_the_same_state() -> None:
    """dp 32 in two groups of 16, ep 8: two ranks of a group share an expert's state, and two groups hold it."""
    counts = count_parameters(QWEN)
    dense, expert = counts.total - counts.expert, counts.expert / 8
    space = Space.of(Layout(dp=32, ep=8, shard=16, zero=3))
    between = took("all-reduce", 4.0 * dense / 16, 2, 1) + took("all-reduce", 4.0 * expert / 2, 2, 1)
    assert one(data_exchange(ROUTED, CLUSTER, space, KIT)) == pytest.approx(0.75 * between)
    # ep 32: every rank has experts of its own, there is nobody to reduce them with
    alone = Space.of(Layout(dp=32, ep=32, shard=16, zero=3))
    assert one(data_exchange(ROUTED, CLUSTER, alone, KIT)) == pytest.approx(
        0.75 * took("all-reduce", 4.0 * dense / 16, 2, 1)
    )


@pytest.mark.parametrize(("zero", "times"), [(1, 1), (3, 16)])
def test_compression_pays_with_kernels_in_each_reduction(zero: int, times: int) -> None:
    """fp8: 14 bytes moved for each gradient, at four fifths of the memory's rate; 256/(8·2) micro-batches."""
    layouts = [Layout(tp=2, dp=8, zero=zero, micro_batch=2, compression=name) for name in ("none", "fp8")]
    plain, packed = data_exchange(JOB, CLUSTER, Space.of(layouts), KIT)
    wire = 1 + 4 / 128
    exchanged = (
        took("reduce-scatter", wire * DENSE, 8, 4) + took("all-gather", 2 * DENSE, 8, 4) if zero < 3 else 0.0
    )
    assert packed == pytest.approx(0.75 * exchanged + times * 14 * DENSE / (0.8 * RATE))
    assert (plain == 0) == (zero == 3)


def test_the_optimizer_updates_a_ranks_own_share() -> None:
    """Thirty bytes a parameter at four fifths of the memory's rate."""
    layouts = [Layout(tp=2, dp=8, cp=2, zero=zero) for zero in (0, 1, 3)]
    found = optimizer_time(JOB, CLUSTER, Space.of(layouts), KIT)
    whole_s = 30 * DENSE / (0.8 * RATE)
    assert found.tolist() == pytest.approx([whole_s, whole_s / 16, whole_s / 16])
    out = Space.of(Layout(tp=2, dp=8, offload=("optimizer",)))
    assert one(optimizer_time(JOB, CLUSTER, out, KIT)) == 0
    adapters = msgspec.structs.replace(JOB, adapters_only=True)
    assert optimizer_time(adapters, CLUSTER, Space.of(layouts), KIT)[0] == pytest.approx(0.001 * whole_s)


def test_gradients_are_added_up_layer_by_layer() -> None:
    """In and out in four bytes at nine tenths of the memory's rate; sharded ones are reduced instead."""
    layouts = [Layout(tp=2, dp=8), Layout(tp=2, dp=8, zero=3)]
    found = accumulation_time(JOB, CLUSTER, Space.of(layouts), KIT)
    assert found.tolist() == pytest.approx([2 * 4 * BODY / 2 / 80 / (0.9 * RATE), 0.0])
    adapters = msgspec.structs.replace(JOB, adapters_only=True)
    assert accumulation_time(adapters, CLUSTER, Space.of(layouts), KIT).tolist() == [0, 0]
    counts = count_parameters(QWEN)
    body = counts.total - counts.expert - 2 * 151936 * 2048
    routed = accumulation_time(ROUTED, CLUSTER, Space.of(Layout(tp=2, dp=8, ep=4)), KIT)
    assert one(routed) == pytest.approx(8 * (body / 2 + counts.expert / 4) / 48 / (0.9 * RATE))


def test_each_token_goes_to_the_chips_of_its_experts_and_back_twice() -> None:
    """4,096 tokens of 4,096 bytes, a copy for each of eight experts; under sequence parallelism each chip its own."""
    spread = Layout(dp=8, ep=8)
    copies = 4096 * 4096 * 8.0
    assert one(expert_exchange(ROUTED, CLUSTER, Space.of(spread), KIT)) == pytest.approx(
        0.5 * 4 * took("all-to-all", copies, 8, 8)
    )
    cut = Layout(tp=2, cp=4, dp=4, ep=8, micro_batch=2)
    assert one(expert_exchange(ROUTED, CLUSTER, Space.of(cut), KIT)) == pytest.approx(
        0.5 * 4 * took("all-to-all", copies * 2 / 4 / 2, 8, 8)
    )
    whole = msgspec.structs.replace(cut, sequence_parallel=False)
    assert one(expert_exchange(ROUTED, CLUSTER, Space.of(whole), KIT)) == pytest.approx(
        0.5 * 4 * took("all-to-all", copies * 2 / 4, 8, 8)
    )


def test_a_layer_in_three_without_experts_exchanges_nothing() -> None:
    """DeepSeek-V3: 58 of 61 layers are routed."""
    job = Job(model=SHELF.model("deepseek-v3"), seq=4096, global_batch=256, imbalance=1.0)
    assert moe_share(job) == 58 / 61
    once = took("all-to-all", 4096 * 2 * 7168 * 8.0, 8, 8)
    found = one(expert_exchange(job, CLUSTER, Space.of(Layout(dp=8, ep=8)), KIT))
    assert found == pytest.approx(0.5 * 4 * 58 / 61 * once)


def test_a_token_is_sent_once_to_a_chip_and_once_to_a_domain() -> None:
    """ep 32 over four domains of eight: of 32 chips 32·(1 − (31/32)⁸) are reached, of four domains 4·(1 − (3/4)⁸)."""
    kit = msgspec.structs.replace(KIT, deduplicated=True)
    token_bytes = 4096 * 4096.0
    near = took("all-to-all", token_bytes * 32 * (1 - (31 / 32) ** 8), 8, 8)
    far = took("all-to-all", token_bytes * 4 * (1 - 0.75**8), 4, 1)
    found = one(expert_exchange(ROUTED, CLUSTER, Space.of(Layout(dp=32, ep=32)), kit))
    assert found == pytest.approx(0.5 * 4 * max(near, far))
    inside = one(expert_exchange(ROUTED, CLUSTER, Space.of(Layout(dp=8, ep=8)), kit))
    assert inside == pytest.approx(0.5 * 4 * took("all-to-all", token_bytes * 8 * (1 - (7 / 8) ** 8), 8, 8))


def test_experts_with_a_width_of_their_own_are_gathered_over_it() -> None:
    """tp 4, etp 2: attention is half of the layer's all-reduces; routed copies are gathered and reduced over two."""
    layout = Layout(tp=4, dp=4, ep=8, etp=2)
    dense = 0.5 * 4 * took("all-reduce", 2.0 * 4096 * 2048, 4, 8)
    own = 2 * took("all-reduce", 2.0 * (4096 / 4) * 8 * 2048 * 2, 2, 8)
    found = one(tensor_exchange(ROUTED, CLUSTER, Space.of(layout), KIT))
    assert found == pytest.approx(0.5 * dense + 0.5 * own)
    full = msgspec.structs.replace(layout, recompute="full", sequence_parallel=False)
    again = 3 * took("all-reduce", 2.0 * 4096 * 8 * 2048 * 2, 2, 8)
    assert one(tensor_exchange(ROUTED, CLUSTER, Space.of(full), KIT)) == pytest.approx(
        0.5 * 1.5 * dense + 0.5 * again
    )
    # beside a row without one, and where it is what tp and ep imply, nothing changes
    usual, implied = Layout(tp=4, dp=4, ep=8), Layout(tp=4, dp=4, ep=8, etp=1)
    both = tensor_exchange(ROUTED, CLUSTER, Space.of([usual, implied, layout]), KIT)
    assert both.tolist() == pytest.approx([dense, dense, 0.5 * dense + 0.5 * own])


def test_shared_experts_keep_the_group_of_tp_at_work() -> None:
    job = Job(model=SHELF.model("deepseek-v3"), seq=4096, global_batch=256)
    layout = Layout(tp=4, dp=4, ep=8, etp=2)
    dense = 0.5 * 4 * took("all-reduce", 2.0 * 4096 * 7168, 4, 8)
    own = 2 * took("all-reduce", 2.0 * 1024 * 8 * 7168 * 2, 2, 8)
    found = one(tensor_exchange(job, CLUSTER, Space.of(layout), KIT))
    assert found == pytest.approx(dense + 58 / 61 * 0.5 * own)


def test_the_busiest_rank_by_chance_sees_the_tokens_that_meet() -> None:
    """Halving the tokens of each chip and doubling the batches that meet leaves chance as it was."""
    job = msgspec.structs.replace(ROUTED, imbalance=None)

    def load(batch: float, **cut: float) -> float:
        sharding = ExpertSharding(**{name: np.array([value]) for name, value in cut.items()})  # type: ignore[arg-type]
        return float(busiest_load(job, sharding, batch)[0])

    plain = load(1.0, ep=8.0)
    assert load(2.0, ep=8.0, cp=2.0) == pytest.approx(plain)
    assert load(2.0, ep=8.0, tp=2.0) == pytest.approx(plain)  # four groups instead of eight
    assert load(4.0, ep=8.0) - 1 == pytest.approx((plain - 1) / 2)
    dense = Job(model=LLAMA, seq=8192, global_batch=256)
    assert busiest_load(dense, ExpertSharding(ep=np.array([8.0])), 1.0).tolist() == [1.0]


def test_unfused_attention_moves_its_scores() -> None:
    """64 heads · 8192² scores of two bytes: 6.5 times forward, 10 backward, forward again where it is recomputed."""
    scores = 2.0 * 64 * 8192**2 / (0.8 * RATE)
    cut = (np.array([4.0]), np.array([2.0]), np.array([3.0]))
    assert one(score_traffic(JOB, CLUSTER, *cut, "none")) == pytest.approx(16.5 * 3 / 8 * scores)
    assert one(score_traffic(JOB, CLUSTER, *cut, "full")) == pytest.approx(23 * 3 / 8 * scores)
    assert one(score_traffic(JOB, CLUSTER, *cut, "selective")) == pytest.approx(23 * 3 / 8 * scores)


def test_unfused_scores_come_on_top_of_a_layers_kernels() -> None:
    """A framework that differs only in keeping scores: backward attention takes 2 instead of 3 forwards, and each
    layer waits for the scores; recomputing other modules does not form them again."""
    old = msgspec.structs.replace(KIT, flash_attention=False, compute_factor=2.0)
    layouts = [
        Layout(tp=8, recompute="selective", modules=modules)
        for modules in ((), ("core_attn",), ("layernorm",))
    ]
    usual, core, norms = (kernel_times(JOB, CLUSTER, Space.of(layout), old)[0][0] for layout in layouts)
    assert usual == pytest.approx(core)
    none = kernel_times(JOB, CLUSTER, Space.of(Layout(tp=8)), old)[0][0]
    again_s = 2.0 * 6.5 * 2 * 64 / 8 * 8192**2 / (0.8 * RATE)
    assert usual - none > again_s
    assert norms - none < again_s


def test_unfused_biases_of_experts() -> None:
    """GPT-OSS 120B: four experts of 2,880 on a width of 2,880; 55 passes over the first, 7 over the second."""
    job = Job(model=SHELF.model("gpt-oss-120b"), seq=4096, global_batch=64)
    found = one(bias_traffic(job, CLUSTER, np.array([2.0]), np.array([4.0]), np.array([3.0])))
    copies = 3 * 4096 / 4 * 4 / 2
    assert found == pytest.approx(2 * copies * (55 * 2880 + 7 * 2880) / (0.8 * RATE))
    fused = msgspec.structs.replace(KIT, fused_experts=True, compute_factor=2.0)
    apart = msgspec.structs.replace(fused, fused_experts=False)
    even = msgspec.structs.replace(job, imbalance=1.5)
    space = Space.of(Layout(dp=8, ep=4))
    more = [one(kernel_times(even, CLUSTER, space, kit)[0]) for kit in (fused, apart)]
    alone = one(bias_traffic(job, CLUSTER, np.ones(1), np.ones(1), np.ones(1)))
    assert more[1] - more[0] == pytest.approx(2.0 * 1.5 * alone)


HOSTED = msgspec.structs.replace(KIT, host_s=1e-4)
IN_LAYER = (
    9 + 2 * 4 + 2 + 1 + 1 + 1
)  # nine forward; two for each of four products, two norms, rope, attention, MLP
OUTSIDE = 2 + 2 + 3 + 1  # embedding and final norm and their backward, head and its two, a fused loss


@pytest.mark.parametrize(
    ("layout", "adapters", "captured", "layers", "outside"),
    [
        (Layout(dp=8), False, "none", IN_LAYER, OUTSIDE),
        (Layout(pp=2, dp=4), False, "none", IN_LAYER, OUTSIDE / 2),
        (Layout(pp=4, dp=2), False, "none", IN_LAYER, OUTSIDE / 2),
        (Layout(dp=8, recompute="full"), False, "none", IN_LAYER + 9, OUTSIDE),
        (Layout(dp=8), True, "none", IN_LAYER - 4, OUTSIDE - 1),
        (Layout(dp=8), False, "attention", 3 + 2 + 3, OUTSIDE),  # gate and up, activation, down
        (Layout(dp=8), False, "step", 0, 0),
    ],
)
def test_the_host_launches_every_operator_that_no_graph_replays(
    layout: Layout, adapters: bool, captured: str, layers: float, outside: float
) -> None:
    job = msgspec.structs.replace(JOB, adapters_only=adapters)
    kit = msgspec.structs.replace(HOSTED, captured=captured)
    found = one(launch_times(job, Space.of(layout), kit, np.array([20.0])))
    assert found == pytest.approx(1e-4 * (20 * layers + outside))


def test_reading_how_many_tokens_came_costs_the_host_once_a_routed_layer() -> None:
    deepseek = Job(model=SHELF.model("deepseek-v3"), seq=4096, global_batch=256)
    assert sync_time(deepseek, HOSTED) == pytest.approx(58 / 61 * 1e-4)
    assert sync_time(JOB, HOSTED) == 0
    space = Space.of(Layout(dp=8, ep=8))
    waits = one(
        kernel_times(deepseek, CLUSTER, space, HOSTED)[0] - kernel_times(deepseek, CLUSTER, space, KIT)[0]
    )
    assert waits == pytest.approx(58 / 61 * 1e-4)


BARE = msgspec.structs.replace(
    KIT, tensor_exposed=0.0, pipeline_exposed=0.0, data_exposed=0.0, optimizer_bytes=0.0
)


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
    assert one(times.step_s) == pytest.approx(256 / layout.dp * slot_s + bubble_s)


def test_layers_that_do_not_divide_leave_the_last_stage_short() -> None:
    deep, last, mean = stage_depths(SHELF.model("llama-3.1-405b"), Space.of([Layout(pp=16), Layout(pp=64)]))
    assert deep.tolist() == [8, 2]
    assert last.tolist() == [126 - 15 * 8, 0]
    assert mean.tolist() == [126 / 16, 126 / 64]


def test_exchange_comes_on_top_of_a_slot() -> None:
    """The parts of a slot of a tensor- and pipeline-parallel step, each from its own function."""
    layout = Layout(tp=4, pp=4, dp=4)
    space, cluster = Space.of(layout), cluster_of(H100, 64)
    layer_s, outside_s = (one(times) for times in kernel_times(JOB, cluster, space, KIT))
    tensor_s = one(tensor_exchange(JOB, cluster, space, KIT))
    message_s = one(pipeline_exchange(JOB, cluster, space, KIT))
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
    adapters = msgspec.structs.replace(JOB, adapters_only=True)
    assert step_band(adapters, CLUSTER, kit) == (0.7, 1.3)


def test_older_attention_is_slower_on_newer_chips() -> None:
    kit: Framework = msgspec.structs.replace(KIT, attention_factor=1.5, later_attention_factor=2.0)
    assert attention_factor(kit, "ampere") == 1.5
    assert attention_factor(kit, "hopper") == 3.0


def test_a_module_that_a_model_lacks_is_named() -> None:
    deepseek, gpt_oss = SHELF.model("deepseek-v3"), SHELF.model("gpt-oss-120b")
    assert lacking_module(deepseek, ("core_attn", "mla_up_proj", "moe", "mlp", "shared_experts")) is None
    assert lacking_module(LLAMA, ("layernorm", "moe_act")) == ("moe_act", "experts")
    assert lacking_module(LLAMA, ("mla_up_proj",)) == ("mla_up_proj", "latent attention")
    assert lacking_module(gpt_oss, ("moe", "shared_experts")) == ("shared_experts", "shared experts")
    assert lacking_module(gpt_oss, ("mlp",)) == ("mlp", "layers with a dense MLP")


@pytest.mark.parametrize(
    ("name", "slower"), [("dispatch", True), ("combine_backward", True), ("down", False)]
)
def test_rows_put_into_another_order_move_at_half_the_memorys_rate(name: str, slower: bool) -> None:
    operator = Operator(
        name=name, shape=Stream(1.0), precision="bf16", weight_precision="bf16", flop=0.0, read_bytes=3e9,
        write_bytes=1e9,
    )  # fmt: skip
    (kernel,) = time_operators(H100, [operator]).kernels
    found = float(permuted_time(kernel, RATE))
    assert found == (pytest.approx(4e9 / (0.5 * RATE)) if slower else float(kernel.time_s))
    tiny = msgspec.structs.replace(operator, read_bytes=3.0, write_bytes=1.0)
    (launch,) = time_operators(H100, [tiny]).kernels
    assert float(permuted_time(launch, RATE)) == float(launch.time_s)


def test_only_routed_operators_wait_for_the_busiest_rank() -> None:
    job = msgspec.structs.replace(ROUTED, imbalance=1.0)
    uneven = msgspec.structs.replace(ROUTED, imbalance=1.5)
    space = Space.of(Layout(dp=8, ep=8))
    even_s, uneven_s = (one(kernel_times(each, CLUSTER, space, KIT)[0]) for each in (job, uneven))
    operators = micro_batch_operators(job, KIT, sharding_of(Layout(dp=8, ep=8)), 1.0, "none")
    routed_s = sum(
        float(np.ravel(total)[0])
        for operator, total in operator_times(job, CLUSTER, operators, KIT)
        if operator.name.startswith(("dispatch", "combine", "expert_"))
    )
    assert uneven_s - even_s == pytest.approx(0.5 * routed_s / 48)


def test_predicting_ahead_runs_head_and_loss_again() -> None:
    space = Space.of(Layout(tp=8))
    plain, ahead = (
        kernel_times(msgspec.structs.replace(JOB, num_ahead=num), CLUSTER, space, KIT)[1] for num in (0, 2)
    )
    operators = micro_batch_operators(JOB, KIT, sharding_of(Layout(tp=8)), 1.0, "none")
    embedding_s = sum(
        float(np.ravel(total)[0])
        for operator, total in operator_times(JOB, CLUSTER, operators, KIT)
        if operator.name.startswith("embedding")
    )
    assert one(ahead) - embedding_s == pytest.approx(3 * (one(plain) - embedding_s))


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
