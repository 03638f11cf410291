"""What kernels, the host and the memory of a chip do in a step, worked out by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.training.hand import (
    ADAPTED,
    BODY,
    CLUSTER,
    DENSE,
    H100,
    JOB,
    KIT,
    LLAMA,
    QWEN,
    RATE,
    ROUTED,
    SHELF,
    one,
)

from datahall.breakdown import false_nodes
from datahall.cluster.cluster import cluster_of
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.layout.modules import lacking_module
from datahall.training.pipeline.execution import simulate_step
from datahall.training.pipeline.figure import step_figure
from datahall.training.step.attention import score_traffic
from datahall.training.step.exchange import chip_share
from datahall.training.step.framework import Framework, attention_factor
from datahall.training.step.launch import launch_times, sync_time
from datahall.training.step.micro_batch import micro_batch_operators, sharding_of
from datahall.training.step.step import (
    Job,
    accumulation_time,
    kernel_times,
    operator_times,
    optimizer_time,
)
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision

HOSTED = msgspec.structs.replace(KIT, host_s=1e-4)
IN_LAYER = (
    9 + 2 * 4 + 2 + 1 + 1 + 1
)  # nine forward; two for each of four products, two norms, rope, attention, MLP
OUTSIDE = 2 + 2 + 3 + 1  # embedding and final norm and their backward, head and its two, a fused loss


def test_the_optimizer_updates_a_ranks_own_share() -> None:
    """Thirty bytes a parameter at four fifths of the memory's rate."""
    layouts = [Layout(tp=2, dp=8, cp=2, zero=zero) for zero in (0, 1, 3)]
    found = optimizer_time(JOB, CLUSTER, Space.of(layouts), KIT)
    whole_s = 30 * DENSE / (0.8 * RATE)
    assert found.tolist() == pytest.approx([whole_s, whole_s / 16, whole_s / 16])
    out = Space.of(Layout(tp=2, dp=8, offload=("optimizer",)))
    assert one(optimizer_time(JOB, CLUSTER, out, KIT)) == 0
    adapters = msgspec.structs.replace(JOB, adapters=Adapters(rank=16, targets="attention"))
    assert optimizer_time(adapters, CLUSTER, Space.of(layouts), KIT)[0] == pytest.approx(
        30 * ADAPTED / (0.8 * RATE)
    )


@pytest.mark.parametrize(
    ("state", "precision", "moved"),
    [
        ("", "bf16", 4 + 2 * 12 + 2),
        ("bf16-gradients", "bf16", 2 + 2 * 12 + 2),
        ("precision-aware", "fp8", 4 + 2 * 8 + 2),
        ("fp8-parameters", "fp8", 4 + 2 * 12 + 1),
        ("pure-bf16", "bf16", 2 + 2 * 4 + 2 * 2),  # no wider copy: the weight itself is read and written
        ("", "fp32", 4 + 2 * 8 + 2 * 4),
        ("", "tf32", 4 + 2 * 8 + 2 * 4),
    ],
)
def test_an_update_moves_the_state_that_is_kept(state: str, precision: str, moved: int) -> None:
    """The gradient once, states both ways, the weight as it is written; the figure says it in these parts."""
    work = msgspec.structs.replace(JOB, state=state, precision=Precision.named(precision))
    layout = Layout(tp=2, pp=4, dp=64)
    run = simulate_step(work, CLUSTER, layout, KIT)
    figure = next(one for _, one in step_figure(run).walk() if one.name == "optimizer")
    owned = float(chip_share(work, Space.of(layout)).dense[0]) / 64
    assert figure.value == pytest.approx(owned * moved / (0.8 * RATE))
    assert figure.value == pytest.approx(run.parts.optimizer_s)
    assert figure.at("gradients and states moved", "moved for a parameter").value == moved
    assert false_nodes(figure) == []


def test_a_rank_updates_the_share_of_its_experts_that_it_keeps() -> None:
    """Of 64 ranks eight hold the same experts: each keeps an eighth of theirs and a 64th of everything else."""
    layout = Layout(dp=64, ep=8, zero=1)
    run = simulate_step(ROUTED, cluster_of(H100, 64), layout, KIT)
    counts = count_parameters(ROUTED.model)
    owned = (counts.total - counts.expert) / 64 + counts.expert / 8 / 8
    assert run.parts.optimizer_s == pytest.approx(30 * owned / (0.8 * RATE))
    figure = next(one for _, one in step_figure(run).walk() if one.name == "optimizer")
    assert figure.value == pytest.approx(run.parts.optimizer_s)


def test_gradients_are_added_up_layer_by_layer() -> None:
    """In and out in four bytes at nine tenths of the memory's rate; sharded ones are reduced instead."""
    layouts = [Layout(tp=2, dp=8), Layout(tp=2, dp=8, zero=3)]
    found = accumulation_time(JOB, CLUSTER, Space.of(layouts), KIT)
    assert found.tolist() == pytest.approx([2 * 4 * BODY / 2 / 80 / (0.9 * RATE), 0.0])
    adapters = msgspec.structs.replace(JOB, adapters=Adapters(rank=16, targets="attention"))
    assert accumulation_time(adapters, CLUSTER, Space.of(layouts), KIT).tolist() == [0, 0]
    counts = count_parameters(QWEN)
    body = counts.total - counts.expert - 2 * 151936 * 2048
    routed = accumulation_time(ROUTED, CLUSTER, Space.of(Layout(tp=2, dp=8, ep=4)), KIT)
    assert one(routed) == pytest.approx(8 * (body / 2 + counts.expert / 4) / 48 / (0.9 * RATE))


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
    again_s = 2.0 * 5.0 * 2 * 64 / 8 * 8192**2 / (0.8 * RATE)
    assert usual - none > again_s
    assert norms - none < again_s


@pytest.mark.parametrize(
    ("layout", "adapters", "captured", "layers", "outside"),
    [
        (Layout(dp=8), False, "none", IN_LAYER, OUTSIDE),
        (Layout(pp=2, dp=4), False, "none", IN_LAYER, OUTSIDE / 2),
        (Layout(pp=4, dp=2), False, "none", IN_LAYER, OUTSIDE / 2),
        (Layout(dp=8, recompute="full"), False, "none", IN_LAYER + 9, OUTSIDE),
        # beside two products three kernels forward, five backward; neither head nor embedding has a gradient
        (Layout(dp=8), True, "none", IN_LAYER - 4 + 2 * (3 + 5), OUTSIDE - 2),
        (Layout(dp=8), False, "attention", 3 + 2 + 3, OUTSIDE),  # gate and up, activation, down
        (Layout(dp=8), False, "step", 0, 0),
    ],
)
def test_the_host_launches_every_operator_that_no_graph_replays(
    layout: Layout, adapters: bool, captured: str, layers: float, outside: float
) -> None:
    job = msgspec.structs.replace(JOB, adapters=Adapters(rank=16, targets="attention") if adapters else None)
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
