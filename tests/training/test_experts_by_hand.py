"""What experts spread over chips exchange and multiply, worked out by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.training.hand import CLUSTER, H100, KIT, LLAMA, QWEN, RATE, ROUTED, SHELF, one, took

from datahall.silicon.kernel import time_operators
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.exchange import chip_share, data_exchange, halves_between_sharers, tensor_exchange
from datahall.training.step.experts import (
    bias_traffic,
    busiest_load,
    expert_exchange,
    moe_share,
    permuted_time,
)
from datahall.training.step.micro_batch import ExpertSharding, micro_batch_operators, sharding_of
from datahall.training.step.step import Job, kernel_times, operator_times
from datahall.workload.operator import Operator, Stream
from datahall.workload.parameters import count_parameters


def test_a_chips_share_of_the_experts() -> None:
    """128 experts of 3·2048·768 in 48 layers."""
    experts = 48 * 128 * 3 * 2048 * 768
    layouts = [Layout(dp=8, ep=8), Layout(tp=4, dp=2, ep=2, pp=2), Layout(tp=4, dp=4, ep=4, etp=2)]
    found = chip_share(ROUTED, Space.of(layouts))
    assert found.expert.tolist() == pytest.approx([experts / 8, experts / 8, experts / 8])
    rest = count_parameters(QWEN).total - experts
    assert found.dense[0] == rest
    assert found.total.tolist() == (found.dense + found.expert).tolist()


def test_experts_are_exchanged_over_their_own_ranks() -> None:
    """ep 8 of 32 ranks: four chips, eight apart, hold the same experts."""
    counts = count_parameters(QWEN)
    dense, expert = counts.total - counts.expert, counts.expert / 8
    space = Space.of(Layout(dp=32, ep=8))
    expected = took("reduce-scatter", 4.0 * dense, 32, 8) + took("all-gather", 2.0 * dense, 32, 8)
    expected += took("reduce-scatter", 4.0 * expert, 4, 1) + took("all-gather", 2.0 * expert, 4, 1)
    assert one(
        data_exchange(ROUTED, CLUSTER, space, KIT, halves_between_sharers(ROUTED, CLUSTER, space, KIT))
    ) == pytest.approx(0.75 * expected)


def test_experts_of_groups_that_hold_the_same_state() -> None:
    """dp 32 in two groups of 16, ep 8: two ranks of a group share an expert's state, and two groups hold it."""
    counts = count_parameters(QWEN)
    dense, expert = counts.total - counts.expert, counts.expert / 8
    space = Space.of(Layout(dp=32, ep=8, shard=16, zero=3))
    between = took("all-reduce", 4.0 * dense / 16, 2, 1) + took("all-reduce", 4.0 * expert / 2, 2, 1)
    assert one(
        data_exchange(ROUTED, CLUSTER, space, KIT, halves_between_sharers(ROUTED, CLUSTER, space, KIT))
    ) == pytest.approx(0.75 * between)
    # ep 32: every rank has experts of its own, there is nobody to reduce them with
    alone = Space.of(Layout(dp=32, ep=32, shard=16, zero=3))
    assert one(
        data_exchange(ROUTED, CLUSTER, alone, KIT, halves_between_sharers(ROUTED, CLUSTER, alone, KIT))
    ) == pytest.approx(0.75 * took("all-reduce", 4.0 * dense / 16, 2, 1))


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
