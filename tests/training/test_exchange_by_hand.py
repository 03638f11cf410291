"""What the groups of a layout exchange in a step, with sizes, groups and counts worked out by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.training.hand import (
    ADAPTED,
    BODY,
    CLUSTER,
    DENSE,
    JOB,
    KIT,
    RATE,
    SEQUENCE,
    SHELF,
    TABLE,
    one,
    took,
)

from datahall.cluster.cluster import cluster_of
from datahall.cluster.groups import group_times
from datahall.fabric.collectives.algorithms.torus import torus_times
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.exchange import (
    CONTEXT_EXPOSED,
    Halves,
    chip_share,
    data_exchange,
    halves_between_sharers,
    head_exchange,
    messages_alone,
    parameter_exchange,
    tensor_exchange,
)


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
    layout = Layout(tp=2, cp=cp, dp=8, context_exchange="all-to-all", recompute=recompute)  # type: ignore[arg-type]
    each = 2.0**21 / (2 * cp)
    there = took("all-to-all", each * (64 + 2 * kv_heads), cp, 4)
    back = took("all-to-all", each * 64, cp, 4)
    assert one(head_exchange(JOB, CLUSTER, Space.of(layout))) == pytest.approx(times * (there + back))
    # it takes the place of the ring, not of tensor parallelism
    ring = msgspec.structs.replace(layout, context_exchange="ring")
    rings, both = tensor_exchange(JOB, CLUSTER, Space.of([ring, layout]), KIT)
    reduced = 0.5 * (6 if recompute == "full" else 4) * took("all-reduce", SEQUENCE / cp, 2, 8)
    assert both - reduced == pytest.approx(times * (there + back))
    assert rings > reduced


def test_a_message_between_stages_is_a_chips_slice_for_each_virtual_stage() -> None:
    apart = Layout(tp=2, pp=4, vpp=5, cp=2, dp=32)
    found = one(messages_alone(JOB, CLUSTER, Space.of(apart)))
    assert found == pytest.approx(5 * took("send-recv", SEQUENCE / 4, 2, 1))
    near = Layout(pp=4, dp=2, micro_batch=2)
    found = one(messages_alone(JOB, CLUSTER, Space.of(near)))
    assert found == pytest.approx(took("send-recv", 2 * SEQUENCE, 2, 4))
    assert one(messages_alone(JOB, CLUSTER, Space.of(Layout(tp=8, dp=64)))) == 0


def test_a_chips_share_of_the_weights() -> None:
    """Both tables on a single stage, else one on either end."""
    space = Space.of([Layout(), Layout(tp=2), Layout(tp=2, pp=2), Layout(tp=2, pp=4)])
    expected = [BODY + 2 * TABLE, (BODY + 2 * TABLE) / 2, BODY / 4 + TABLE / 2, BODY / 8 + TABLE / 2]
    assert chip_share(JOB, space).dense.tolist() == pytest.approx(expected)
    assert chip_share(JOB, space).expert.tolist() == [0, 0, 0, 0]


def test_gradients_are_scattered_and_weights_gathered_over_all_who_share() -> None:
    """tp 2, dp 8, cp 2: sixteen ranks two apart, four to a domain; 4 bytes of a gradient, 2 of a weight."""
    space = Space.of(Layout(tp=2, dp=8, cp=2))
    scattered, gathered = took("reduce-scatter", 4 * DENSE, 16, 4), took("all-gather", 2 * DENSE, 16, 4)
    assert one(
        data_exchange(JOB, CLUSTER, space, KIT, halves_between_sharers(JOB, CLUSTER, space, KIT))
    ) == pytest.approx(0.75 * (scattered + gathered))
    adapters = msgspec.structs.replace(JOB, adapters=Adapters(rank=16, targets="attention"))
    assert one(
        data_exchange(adapters, CLUSTER, space, KIT, halves_between_sharers(adapters, CLUSTER, space, KIT))
    ) == pytest.approx(
        0.75 * (took("reduce-scatter", 4 * ADAPTED, 16, 4) + took("all-gather", 2 * ADAPTED, 16, 4))
    )
    assert one(parameter_exchange(space, halves_between_sharers(JOB, CLUSTER, space, KIT))) == 0


@pytest.mark.parametrize(("compression", "wire"), [("none", 4.0), ("fp8", 1 + 4 / 128)])
def test_replicas_that_share_nothing_all_reduce_their_gradients(compression: str, wire: float) -> None:
    """Both halves of an all-reduce move gradients as they are on the wire; nobody gathers weights."""
    layout = Layout(tp=2, dp=8, cp=2, zero=0, compression=compression)
    whole = msgspec.structs.replace(KIT, data_exposed=1.0)
    halves = took("reduce-scatter", wire * DENSE, 16, 4) + took("all-gather", wire * DENSE, 16, 4)
    packed = 14 * DENSE / (0.8 * RATE) if compression == "fp8" else 0.0
    found = one(
        data_exchange(
            JOB,
            CLUSTER,
            Space.of(layout),
            whole,
            halves_between_sharers(JOB, CLUSTER, Space.of(layout), whole),
        )
    )
    assert found == pytest.approx(halves + packed)
    # a ring's two halves are the all-reduce, which NCCL may do somewhat faster another way
    assert found - packed == pytest.approx(took("all-reduce", wire * DENSE, 16, 4), rel=0.1)


def test_fully_sharded_weights_are_gathered_twice_for_each_micro_batch() -> None:
    space = Space.of(Layout(tp=2, dp=8, cp=2, zero=3))
    scattered, gathered = took("reduce-scatter", 4 * DENSE, 16, 4), took("all-gather", 2 * DENSE, 16, 4)
    assert one(parameter_exchange(space, halves_between_sharers(JOB, CLUSTER, space, KIT))) == pytest.approx(
        2 * gathered + scattered
    )
    assert one(data_exchange(JOB, CLUSTER, space, KIT, halves_between_sharers(JOB, CLUSTER, space, KIT))) == 0


def test_groups_that_hold_the_same_state_reduce_their_parts_once_a_step() -> None:
    """dp 16 in groups of four: four copies of a quarter each, 2·4 ranks apart."""
    space = Space.of(Layout(tp=2, dp=16, shard=4))
    inside = took("reduce-scatter", 4 * DENSE, 4, 4) + took("all-gather", 2 * DENSE, 4, 4)
    between = took("all-reduce", 4 * DENSE / 4, 4, 1)
    assert one(
        data_exchange(JOB, CLUSTER, space, KIT, halves_between_sharers(JOB, CLUSTER, space, KIT))
    ) == pytest.approx(0.75 * (inside + between), rel=1e-4)
    full = Space.of(Layout(tp=2, dp=16, shard=4, zero=3))
    assert one(
        data_exchange(JOB, CLUSTER, full, KIT, halves_between_sharers(JOB, CLUSTER, full, KIT))
    ) == pytest.approx(0.75 * between, rel=1e-4)


@pytest.mark.parametrize(("zero", "times"), [(1, 1), (3, 16)])
def test_compression_pays_with_kernels_in_each_reduction(zero: int, times: int) -> None:
    """fp8: 14 bytes moved for each gradient, at four fifths of the memory's rate; 256/(8·2) micro-batches."""
    layouts = [Layout(tp=2, dp=8, zero=zero, micro_batch=2, compression=name) for name in ("none", "fp8")]
    plain, packed = data_exchange(
        JOB, CLUSTER, Space.of(layouts), KIT, halves_between_sharers(JOB, CLUSTER, Space.of(layouts), KIT)
    )
    wire = 1 + 4 / 128
    exchanged = (
        took("reduce-scatter", wire * DENSE, 8, 4) + took("all-gather", 2 * DENSE, 8, 4) if zero < 3 else 0.0
    )
    assert packed == pytest.approx(0.75 * exchanged + times * 14 * DENSE / (0.8 * RATE))
    assert (plain == 0) == (zero == 3)


@pytest.mark.parametrize(
    ("layout", "slot_s", "shown_s"),
    [
        # of three parts of a slot one is forward; 6 s of gradients go beside 2 s, 2 s of parameters beside 1 s
        (Layout(dp=8, zero=1), 3.0, 4 + 1),
        (Layout(dp=8, zero=2), 3.0, 4 + 1),
        # nobody gathers parameters: both halves of the all-reduce are gradients, and behind the backward alone
        (Layout(dp=8, zero=0), 3.0, 8 - 2),
        # of four parts, where forward is done again, one is the first forward: all hides behind 2 s and 6 s
        (Layout(dp=8, zero=1, recompute="full"), 4.0, 3 + 1),
        (Layout(dp=8, zero=1, recompute="full"), 6.0, 1.5 + 0.5),
        (Layout(dp=8, zero=1, recompute="full"), 7.8, 0.15 + 0.05),
        (Layout(dp=8, zero=1, recompute="full"), 8.0, 0),
        (Layout(dp=8, zero=0, recompute="full"), 4.0, 8 - 3),
        (Layout(dp=8, zero=1, recompute="selective"), 3.0, 4 + 1),
        # without recomputation 8 s hide all parameters and 5 ⅓ s of the gradients
        (Layout(dp=8, zero=1), 8.0, 6 - 16 / 3),
        # two chunks on four stages, 3 s apart at the first: the last of them has (6 − 2)/2 s, (2 − 1)/2 s left
        (Layout(dp=8, pp=4, vpp=2, zero=1), 3.0, 2 + 0.5),
        # 6 s of gradients are longer than five chunks of 0.2 s, 2 s of parameters than five of 0.1 s
        (Layout(dp=8, pp=4, vpp=2, zero=1), 0.6, 5 + 1.5),
        # with each micro-batch, not once a step
        (Layout(dp=8, zero=3), 3.0, 0),
    ],
)
def test_what_is_longer_than_the_pass_that_it_goes_beside_shows(
    layout: Layout, slot_s: float, shown_s: float
) -> None:
    """Gradients reduced in 6 s, parameters gathered in 2 s, of which a framework hides all that it can."""
    hides_all = msgspec.structs.replace(KIT, data_exposed=0.0)
    halves = Halves(reduce_s=np.array([6.0]), gather_s=np.array([2.0]))
    found = data_exchange(JOB, CLUSTER, Space.of(layout), hides_all, halves, np.array([slot_s]))
    assert one(found) == pytest.approx(shown_s)


def test_what_a_framework_shows_is_shown_however_long_a_slot_is() -> None:
    """Three quarters of 6 + 2 s."""
    halves = Halves(reduce_s=np.array([6.0]), gather_s=np.array([2.0]))
    space = Space.of(Layout(dp=8, zero=1))
    for slot_s, shown_s in ((100.0, 6.0), (3.0, 6.0), (0.3, 5.8 + 1.9)):
        assert one(data_exchange(JOB, CLUSTER, space, KIT, halves, np.array([slot_s]))) == pytest.approx(
            shown_s
        )
