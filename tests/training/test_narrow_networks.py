"""A step on a narrow network: no exchange is faster than its bytes over the cut that its group crosses.

The bound is counted rank by rank, without the fabric's own rules: chips stand in the order tp, cp, dp, pp; the first
`num_below` of them are one side of a cut.  Chips with the same parameters (all of cp and dp) are a group; of one with
ranks on both sides, gradients of what the others own leave (reduce-scatter), and parameters it owns (all-gather).
"""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.breakdown import assumed, false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from, cluster_of
from datahall.cluster.collective import group_figure
from datahall.cluster.groups import group_times
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.scenario.sections.fabric import FabricDesign
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import simulate_step
from datahall.training.pipeline.figure import step_figure
from datahall.training.step.exchange import chip_share, data_exchange, halves_between_sharers
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times

SHELF = Catalog(user=False)
NUM_CHIPS = 256
NEMO = framework("nemo")
LLAMA = SHELF.model("llama-3.1-8b")
FABRICS = (
    ("tree", ""), ("fat-tree", "1:1"), ("fat-tree", "8:1"), ("rail-optimised", "4:1"), ("dragonfly", ""),
)  # fmt: skip


@cache
def on(topology: str, oversubscription: str = "", num_chips: int = NUM_CHIPS) -> Cluster:
    design = FabricDesign(topology=topology, chip="h100-sxm", chips=num_chips)
    if oversubscription:
        ratio = float(oversubscription.removesuffix(":1"))
        design = msgspec.structs.replace(design, oversubscription=(ratio,))
    return cluster_from(design, SHELF, num_chips=num_chips)


def inside_of_groups(layout: Layout, num_below: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Ranks of each group with the same parameters that stand on the first side of a cut."""
    chips = np.arange(layout.num_chips)
    group = chips // (layout.num_chips // layout.pp) * layout.tp + chips % layout.tp
    return np.bincount(group[chips < num_below], minlength=layout.tp * layout.pp)


def gradient_bound_s(job: Job, cluster: Cluster, layout: Layout, gradient_bytes: float) -> float:
    """Gradients and parameters of all groups over the narrowest cut, the busier way."""
    values, bounds = float(chip_share(job, Space.of(layout)).total[0]), [0.0]
    for cut in cluster.system.cuts:
        inside = inside_of_groups(layout, cut.num_below) / (layout.dp * layout.cp)
        outside = np.where(inside > 0, 1.0 - inside, 0.0)
        inside = np.where(outside > 0, inside, 0.0)  # who is all on one side crosses nothing
        out = values * (gradient_bytes * outside + 2.0 * inside).sum()
        back = values * (gradient_bytes * inside + 2.0 * outside).sum()
        bounds.append(max(out, back) / cut.bytes_per_s)
    return max(bounds)


@st.composite
def laid_out(draw: st.DrawFn) -> Layout:
    tp, cp, pp = (draw(st.sampled_from(sizes)) for sizes in ((1, 2, 4, 8), (1, 2), (1, 2, 4)))
    vpp = draw(st.sampled_from((1, 2))) if pp > 1 else 1
    zero = draw(st.sampled_from((0, 1, 2)))
    return Layout(tp=tp, cp=cp, pp=pp, vpp=vpp, dp=NUM_CHIPS // (tp * cp * pp), zero=zero)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FABRICS), laid_out(), st.sampled_from((128, 1024, 8192)), st.integers(1, 4))
def test_a_step_takes_no_less_than_its_gradients_over_the_narrowest_cut(
    fabric: tuple[str, str], layout: Layout, seq: int, num_micro: int
) -> None:
    cluster = on(*fabric)
    job = Job(model=LLAMA, seq=seq, global_batch=layout.dp * num_micro * (layout.pp if layout.vpp > 1 else 1))
    least_s = gradient_bound_s(job, cluster, layout, NEMO.gradient_bytes)
    closed_s = float(step_times(job, cluster, Space.of(layout), NEMO).step_s[0])
    simulated_s = simulate_step(job, cluster, layout, NEMO).step_s
    assert closed_s >= least_s
    assert simulated_s >= least_s


# eight chips a domain, joined by 0.1 GB/s a chip: every exchange between domains is far longer than kernels beside it
SLOW = cluster_of(SHELF.chip("h100-sxm"), 64, nic_bytes_per_s=1e8)
JOB = Job(model=LLAMA, seq=4096, global_batch=64)  # 32 layers of width 4,096; eight key-value heads of 128
WHOLE = msgspec.structs.replace(
    NEMO, tensor_exposed=1.0, data_exposed=1.0, pipeline_exposed=1.0, expert_exposed=1.0
)
ACTIVATIONS = 2.0 * 4096 * 4096  # bytes of a micro-batch of one sequence


def alone_s(collective: Collective, size_bytes: float, num_ranks: int, stride: int) -> float:
    columns = (np.array([value]) for value in (size_bytes, float(num_ranks), float(stride)))
    return float(group_times(SLOW.system, collective, *columns)[0])


@pytest.mark.parametrize(
    ("layout", "least_s"),
    [
        # four all-reduces a layer, on each of 16 micro-batches
        (Layout(tp=16, dp=4), 16 * 32 * 4 * alone_s("all-reduce", ACTIVATIONS, 16, 1)),
        # keys and values pass by three times a layer, on each of 16 micro-batches
        (
            Layout(tp=1, cp=16, dp=4),
            16 * 32 * 3 * alone_s("all-gather", 2 * ACTIVATIONS * 8 / 32, 16, 1),
        ),
        # two virtual stages send what 64 micro-batches leave them, the other way at the same time
        (Layout(tp=8, pp=8, vpp=2, dp=1), 64 * 2 * alone_s("send-recv", ACTIVATIONS / 8, 2, 8)),
    ],
    ids=["tensor", "context", "pipeline"],
)
def test_kernels_hide_no_more_than_lasts_as_long_as_they_do(layout: Layout, least_s: float) -> None:
    assert least_s > 0
    for kit in (NEMO, WHOLE):
        times = step_times(JOB, SLOW, Space.of(layout), kit)
        assert (
            float(times.slot_s[0] * times.num_micro[0]) >= least_s
        )  # without the gradients, which are longer still
        assert simulate_step(JOB, SLOW, layout, kit).step_s >= least_s


def test_kernels_hide_no_more_of_the_experts_exchange_than_lasts_as_long_as_they_do() -> None:
    """48 layers send every token to eight experts and back, forward and backward, on each of four micro-batches."""
    job = Job(model=SHELF.model("qwen3-30b-a3b"), seq=4096, global_batch=256, imbalance=1.0)
    layout = Layout(ep=64, dp=64)
    kit = msgspec.structs.replace(NEMO, expert_exposed=0.1, deduplicated=False)
    least_s = 4 * 48 * 4 * alone_s("all-to-all", 2.0 * 4096 * 2048 * 8, 64, 1)
    assert float(step_times(job, SLOW, Space.of(layout), kit).step_s[0]) >= least_s
    assert simulate_step(job, SLOW, layout, kit).step_s >= least_s


def test_heads_for_tokens_hide_nothing_and_so_show_once() -> None:
    times = step_times(JOB, SLOW, Space.of(Layout(cp=16, dp=4, context_exchange="all-to-all")), NEMO)
    assert times.slot_s == pytest.approx(times.compute_s + times.tensor_s)


def test_a_step_bound_by_its_gradients_takes_as_long_as_they_and_what_makes_them() -> None:
    """One micro-batch passes beside them; the others come before, with bubble and round trips, and the update after."""
    calm = msgspec.structs.replace(NEMO, jitter=0.0)
    space = Space.of(Layout(pp=4, dp=16))
    times = step_times(JOB, SLOW, space, calm)
    whole_s = data_exchange(
        JOB,
        SLOW,
        space,
        msgspec.structs.replace(calm, data_exposed=1.0),
        halves_between_sharers(JOB, SLOW, space, msgspec.structs.replace(calm, data_exposed=1.0)),
    )
    assert times.bubble_s[0] > 0
    before_s = (times.num_micro - 1.0) * times.slot_s + times.bubble_s
    assert times.step_s == pytest.approx(before_s + whole_s + times.optimizer_s + times.fixed_s)


def test_what_kernels_do_hide_is_left_hidden() -> None:
    """On a usual network a framework shows its own share of an exchange, and no more."""
    cluster, space = cluster_of(SHELF.chip("h100-sxm"), 64), Space.of(Layout(tp=8, pp=2, dp=4))
    shown = step_times(JOB, cluster, space, NEMO)
    whole = step_times(JOB, cluster, space, WHOLE)
    assert shown.data_s == pytest.approx(NEMO.data_exposed * whole.data_s)
    assert shown.tensor_s == pytest.approx(NEMO.tensor_exposed * whole.tensor_s)
    assert shown.slot_s - shown.pipeline_s == pytest.approx(shown.compute_s + shown.tensor_s)


@pytest.mark.parametrize(
    "layout", [Layout(tp=8, dp=32), Layout(tp=4, pp=4, vpp=2, dp=16), Layout(tp=1, dp=256)]
)
def test_the_narrower_the_ways_out_of_a_leaf_the_longer_a_step(layout: Layout) -> None:
    job = Job(model=LLAMA, seq=8192, global_batch=256)
    clusters = [on("fat-tree", ratio) for ratio in ("1:1", "2:1", "4:1", "8:1", "16:1")]
    closed_s = [
        float(step_times(job, one, Space.of(layout), NEMO).step_s[0]) for one in (*clusters, on("tree"))
    ]
    simulated_s = [simulate_step(job, one, layout, NEMO).step_s for one in (*clusters, on("tree"))]
    for steps_s in (closed_s, simulated_s):
        assert steps_s == sorted(steps_s)
        assert steps_s[-1] > steps_s[0]


@pytest.mark.parametrize(
    ("fabric", "is_narrow"),
    [(("tree", ""), True), (("fat-tree", "8:1"), False), (("fat-tree", "1:1"), False)],
)
def test_an_exchange_explains_itself_by_the_narrow_place_that_it_crosses(
    fabric: tuple[str, str], is_narrow: bool
) -> None:
    job = Job(model=LLAMA, seq=2048, global_batch=64)
    run = simulate_step(job, on(*fabric), Layout(tp=4, dp=64), NEMO)
    figure = step_figure(run)
    assert false_nodes(figure) == []
    assert figure.value == pytest.approx(run.step_s)
    whole = figure.at("gradients and parameters", "all of it, hidden or not")
    scatter = whole.at("reduce-scatter, dense")
    passed = {part.name: part.value for part in scatter.parts} if scatter.operation == "maximum" else {}
    binding = max(passed, key=lambda name: passed[name], default="closed form")
    assert (binding == "out of a leaf") == is_narrow
    # inside a domain nothing is narrow
    inside = {node.name for _, node in figure.at("tensor and expert exchange").walk()}
    assert not any(name.startswith("out of a") for name in inside)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(FABRICS),
    st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]),
    st.floats(1e2, 1e10),
    st.sampled_from([(8, 1), (2, 1), (8, 8), (64, 1), (32, 8), (4, 64)]),
)
def test_a_chain_of_a_collective_is_what_the_columns_have(
    fabric: tuple[str, str], collective: Collective, size_bytes: float, group: tuple[int, int]
) -> None:
    machine, (ranks, stride) = on(*fabric), group
    moved = assumed("moved", size_bytes, "bytes", "of the test")
    figure = group_figure(machine, collective, moved, ranks, stride)
    column = group_times(
        machine.system, collective, np.array([size_bytes]), np.array([ranks]), np.array([stride])
    )
    assert figure.value == pytest.approx(float(column[0]), rel=1e-9)
    assert not false_nodes(figure)
    link = "scale-up" if ranks * stride <= machine.num_domain else "network of a chip"
    assert any(link in node.name for _, node in figure.walk())


@pytest.mark.parametrize(
    "layout", [Layout(dp=64, zero=1), Layout(tp=2, dp=32, zero=2), Layout(tp=8, dp=8, zero=0)]
)
@pytest.mark.parametrize("nic_bytes_per_s", [1e8, 5e8, 1e9])
@pytest.mark.parametrize("num_micro", [1, 4, 16])
def test_gradients_hide_behind_one_micro_batch_in_the_closed_form_as_when_simulated(
    layout: Layout, nic_bytes_per_s: float, num_micro: int
) -> None:
    """They are whole with the last backward only; the step before it hides none of them."""
    cluster = cluster_of(SHELF.chip("h100-sxm"), 64, nic_bytes_per_s=nic_bytes_per_s)
    job = Job(model=LLAMA, seq=4096, global_batch=num_micro * layout.dp)
    closed_s = float(step_times(job, cluster, Space.of(layout), NEMO).step_s[0])
    assert closed_s == pytest.approx(simulate_step(job, cluster, layout, NEMO).step_s, rel=0.06)
