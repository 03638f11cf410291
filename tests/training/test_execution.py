"""A simulated step of a real job: its parts add up, it stays near the closed form, and slow ranks hold up all."""

import math

import numpy as np
import pytest

import datahall as dh
from datahall.catalog import load
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.errors import ScenarioError
from datahall.scenario.words import SCHEDULES
from datahall.training.layout.layout import Layout
from datahall.training.layout.order import check_order
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.straggler import Stragglers, expected_maximum
from datahall.training.pipeline.table import ORDERS, usual_order
from datahall.training.step.framework import framework, frameworks
from datahall.training.step.parts import PARTS
from datahall.training.step.stage import cut_layers
from datahall.training.step.step import Job

JOB = Job(model=load().model("llama-3.1-70b"), seq=8192, global_batch=256)
LAYOUT = Layout(tp=8, pp=8, dp=8)


def cluster(num_chips: int = 512) -> Cluster:
    return cluster_of(load().chip("h100-sxm"), num_chips)


def run(layout: Layout = LAYOUT, order: str = "", who: Stragglers = Stragglers(), seed: int = 0) -> Execution:  # noqa: B008
    return simulate_step(JOB, cluster(), layout, framework("nemo"), order=order, stragglers=who, seed=seed)


@pytest.mark.parametrize("order", [one.name for one in ORDERS.values() if not one.chunked])
@pytest.mark.parametrize("name", sorted(frameworks()))
def test_the_parts_are_the_step_and_the_closed_form_is_near(order: str, name: str) -> None:
    found = simulate_step(JOB, cluster(), LAYOUT, framework(name), order=order)
    assert found.parts.step_s == pytest.approx(found.step_s)
    assert min(found.parts.kernels_s, found.parts.bubble_s, found.parts.data_s) >= 0
    assert found.closed_parts.step_s == pytest.approx(found.step_s, rel=0.08)


def test_the_closed_parts_are_the_closed_form() -> None:
    found = run()
    assert found.closed_parts.step_s == pytest.approx(float(found.closed.step_s[0]))


@pytest.mark.parametrize(
    "layout",
    [LAYOUT, Layout(tp=8, pp=8, vpp=5, dp=8), Layout(tp=8, dp=64), Layout(dp=512 // 2, cp=2, zero=3)],
)
def test_exchange_is_exposed_or_hidden_and_never_less_than_nothing(layout: Layout) -> None:
    job = Job(model=JOB.model, seq=8192, global_batch=512)
    found = simulate_step(job, cluster(), layout, framework("nemo"))
    assert all(value >= 0 for value in found.hidden_s.values())
    assert 0.05 < found.mfu_fraction < 0.8
    assert found.tokens_per_s == pytest.approx(512 * 8192 / found.step_s)


def test_better_schedules_have_smaller_bubbles() -> None:
    bubbles = {order: run(order=order).parts.bubble_s for order in ("1f1b", "zb", "dualpipe")}
    virtual = run(Layout(tp=8, pp=8, vpp=5, dp=8)).parts.bubble_s
    assert bubbles["dualpipe"] < bubbles["zb"] < bubbles["1f1b"]
    assert virtual < 0.3 * bubbles["1f1b"]


def test_recomputation_is_work_done_again() -> None:
    none, full = run(), run(Layout(tp=8, pp=8, dp=8, recompute="full"))
    assert none.parts.redone_s == 0
    assert full.parts.kernels_s - none.parts.kernels_s == pytest.approx(full.parts.redone_s, rel=1e-9)
    assert 0.2 < full.parts.redone_s / none.parts.kernels_s < 1 / 3 + 0.02


def test_one_slow_host_holds_up_everyone() -> None:
    alone, slow = run(), run(who=Stragglers(slow_hosts_fraction=0.05, slow_by_fraction=0.2))
    busy = alone.parts.kernels_s + alone.parts.exchange_s
    assert 0.4 * 0.2 * busy < slow.step_s - alone.step_s < 0.2 * alone.step_s  # the last stage has less slack
    assert slow.parts.slowest_s > alone.parts.slowest_s
    assert slow.num_simulated < LAYOUT.dp + 2


def test_pruning_finds_the_slowest_of_all_replicas() -> None:
    from datahall.training.pipeline.simulate import simulate
    from datahall.training.pipeline.straggler import stage_speeds

    who = Stragglers(slow_hosts_fraction=0.1, jitter_fraction=0.05)
    found = run(who=who, seed=5)
    speeds = stage_speeds(who, num_replicas=8, num_stages=8, num_chips=8, num_host_chips=8, seed=5, step=0)
    every = [simulate(found.plan, found.stages.work, row).makespan_s for row in speeds]
    assert found.slowest.makespan_s == pytest.approx(max(every))


def test_jitter_costs_about_the_expected_maximum() -> None:
    """Each stage is as slow as the slowest of its chips, the step as the slowest of all: between the two."""
    calm = run(who=Stragglers(jitter_fraction=1e-9))
    found = run(who=Stragglers(jitter_fraction=0.02))
    busy = found.parts.kernels_s + found.parts.exchange_s
    grew = (found.step_s - calm.step_s) / (0.02 * busy)
    assert expected_maximum(8) < grew < expected_maximum(512) * calm.step_s / busy
    assert found.steps_s.size == 8


def test_the_same_seed_gives_the_same_steps() -> None:
    who = Stragglers(slow_hosts_fraction=0.02, jitter_fraction=0.02)
    assert (run(who=who, seed=3).steps_s == run(who=who, seed=3).steps_s).all()
    assert not (run(who=who, seed=3).steps_s == run(who=who, seed=4).steps_s).all()


def test_layers_are_cut_evenly_and_the_ends_are_short() -> None:
    for num_layers, num_parts in ((126, 16), (80, 32), (61, 16), (7, 7), (96, 1)):
        cut = cut_layers(num_layers, num_parts, head_layers=1.0)
        assert cut.sum() == num_layers
        assert cut.max() - cut.min() <= 1
        assert cut[-1] == cut.min()
    assert np.diff(cut_layers(61, 16, head_layers=1.0)).tolist().count(1) <= 1


def test_a_hundred_thousand_chips_are_simulated_by_symmetry() -> None:
    job = Job(model=load().model("llama-3.1-405b"), seq=8192, global_batch=768 * 128)
    layout = Layout(tp=8, pp=16, vpp=4, dp=768)
    found = simulate_step(job, cluster(98_304), layout, framework("nemo"))
    assert found.num_simulated == 1
    assert found.plan.kind.size == 2 * 16 * 4 * 128
    assert math.isfinite(found.step_s)


def check(layout: Layout, order: str) -> None:
    layout.check(JOB.model, cluster().num_chips, JOB.global_batch)
    num_micro, name = layout.num_micro(JOB.global_batch), order or usual_order(layout.vpp)
    check_order(name, num_stages=layout.pp, num_micro=num_micro, num_chunks=layout.vpp)


@pytest.mark.parametrize(
    ("layout", "order", "text"),
    [
        (Layout(tp=8, pp=8, dp=4), "", "dp=8 would fit"),
        (LAYOUT, "interleaved", "vpp=2 or more"),
        (Layout(tp=8, pp=8, vpp=2, dp=8), "zb", "one chunk"),
        (Layout(tp=8, pp=16, vpp=6, dp=4), "", "80 layers"),
        (Layout(tp=8, pp=4, dp=16, micro_batch=4), "dualpipe", "at least two for each stage"),
    ],
)
def test_layouts_that_cannot_run_say_why(layout: Layout, order: str, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        check(layout, order)


def test_waiting_for_the_busiest_experts_is_part_of_kernels_and_exchange() -> None:
    layout = Layout(dp=64, ep=8)
    found = {}
    for imbalance in (1.0, 1.4):
        job = Job(model=load().model("qwen3-30b-a3b"), seq=4096, global_batch=512, imbalance=imbalance)
        found[imbalance] = simulate_step(job, cluster(64), layout, framework("megatron-bridge-graph")).parts
    even, skewed = found[1.0], found[1.4]
    assert even.uneven_s == pytest.approx(0.0, abs=1e-9)
    more_s = skewed.kernels_s + skewed.exchange_s - even.kernels_s - even.exchange_s
    assert skewed.uneven_s == pytest.approx(more_s, rel=0.01)
    assert skewed.uneven_s > 0.1 * even.kernels_s


@pytest.mark.parametrize("order", [one for one in SCHEDULES if one != "1f1b"])
def test_one_stage_has_nothing_to_order(order: str) -> None:
    alone = Layout(tp=8, dp=64)
    assert run(alone, "1f1b").parts.bubble_s == 0
    with pytest.raises(ScenarioError, match="there is one stage") as caught:
        check(alone, order)
    assert caught.value.field == "schedule"


@pytest.mark.parametrize("nic", ["400Gb/s", "100Gb/s", "25Gb/s"])
@pytest.mark.parametrize("kit", ["megatron-bridge-graph", "nemo"])
def test_even_routing_has_no_busiest_experts(kit: str, nic: str) -> None:
    """Exchange that outlasts the kernels is no imbalance."""
    asked = {"chips": 64, "ep": 64, "global_batch": 64, "framework": kit, "nic": nic}
    even = dh.simulate_train("qwen3-30b-a3b", imbalance=1, **asked).results
    assert even["uneven_s"] == 0
    found = dh.simulate_train("qwen3-30b-a3b", imbalance=1.5, **asked)
    taken = {str(row[0]): float(row[1]) for row in found.tables[0].rows}
    both_s = taken[PARTS["kernels"]] + taken[PARTS["exchange"]]
    assert 0 < taken[PARTS["uneven"]] == found.results["uneven_s"] <= both_s


@pytest.mark.parametrize(("way", "hidden"), [("ring", 0.7), ("all-to-all", 0.0)])
def test_a_ring_of_contexts_hides_what_it_is_said_to(way: str, hidden: float) -> None:
    found = dh.simulate_train(
        "llama-3.1-8b", chips=16, cp=8, seq=131072, global_batch=16, context_exchange=way
    )
    (table,) = (one for one in found.tables if one.title.startswith("communication"))
    exposed_s, hidden_s = next(row[1:3] for row in table.rows if "context" in str(row[0]))
    assert hidden_s == pytest.approx(hidden * (exposed_s + hidden_s), abs=1e-12)


def test_a_stage_that_holds_two_parts_updates_both() -> None:
    """DualPipe: twice the states of the optimizer, and twice the time to move them."""
    asked = {"chips": 256, "chip": "h200", "pp": 8, "tp": 4, "ep": 8, "zero": 1, "global_batch": 256}
    one_s, two_s = (
        next(
            float(row[1])
            for row in dh.simulate_train("deepseek-v3", **asked, schedule=name).tables[0].rows
            if row[0] == PARTS["optimizer"]
        )
        for name in ("1f1b", "dualpipe")
    )
    assert two_s == pytest.approx(2 * one_s)
