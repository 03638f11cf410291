"""Where messages between stages take long, a step takes as long as micro-batches need to the last stage and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from, cluster_of
from datahall.scenario.sections.fabric import FabricDesign
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, StepTimes, round_trip_time, step_times
from datahall.workload.memory.recompute import Recompute

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
LAYOUTS = (
    ("llama-3.1-8b", 64, Layout(pp=8, dp=8)),
    ("llama-3.1-8b", 1024, Layout(pp=4, dp=16)),
    ("llama-3.1-70b", 32, Layout(tp=8, pp=8)),
    ("llama-3.1-8b", 32, Layout(tp=2, pp=16, dp=2)),
    ("llama-3.1-8b", 512, Layout(pp=2, dp=32)),
)
CHUNKED = (
    ("llama-3.1-8b", 256, Layout(pp=4, vpp=4, dp=16)),
    ("llama-3.1-70b", 64, Layout(tp=4, pp=4, vpp=5, dp=4)),
)


def ran(model: str, global_batch: int, layout: Layout, nic_gbit_per_s: float) -> Execution:
    cluster = cluster_of(H100, 64, nic_bytes_per_s=nic_gbit_per_s * 1e9 / 8)
    return simulate_step(
        Job(model=SHELF.model(model), seq=8192, global_batch=global_batch), cluster, layout, framework("nemo")
    )


def times(**known: float) -> StepTimes:
    """A step of which nothing is known but this."""
    columns = {name: np.array([known.get(name, 0.0)]) for name in StepTimes.__struct_fields__}
    return StepTimes(**columns)


def test_by_hand() -> None:
    """Four stages of 1 s hold four micro-batches: 4 · 1 s and six messages of 2 s there and back, twice for eight of
    them; the first and the last meet three messages each way.  All but eight slots of 1.5 s is waiting."""
    found = times(num_micro=8, mean_stage_s=1.0, sent_s=2.0, slot_s=1.5)
    assert round_trip_time(found, Space.of(Layout(pp=4)), "1f1b") == pytest.approx(
        8 / 4 * (4 + 6 * 2) + 6 * 2 - 8 * 1.5
    )
    # two chunks a stage: (2 · 3 + 4 + 1)/2 = 5.5 are held, and fourteen messages of 1 s each
    chunked = round_trip_time(found, Space.of(Layout(pp=4, vpp=2)), "1f1b")
    assert chunked == pytest.approx(8 / 5.5 * (4 + 14 * 1) + 6 * 1 - 8 * 1.5)
    assert round_trip_time(found, Space.of(Layout(pp=1)), "1f1b") == 0
    busier = times(num_micro=8, mean_stage_s=1.0, sent_s=2.0, slot_s=100.0)
    assert round_trip_time(busier, Space.of(Layout(pp=4)), "1f1b") == 0


def test_what_a_schedule_holds_is_what_it_waits_for() -> None:
    """GPipe runs all forwards first and waits for none; DualPipe holds one more; what messages hold up of a bubble is
    in it already."""
    found, space = times(num_micro=8, mean_stage_s=1.0, sent_s=2.0, slot_s=1.5), Space.of(Layout(pp=4))
    assert round_trip_time(found, space, "gpipe") == pytest.approx(6 * 2)
    assert round_trip_time(found, space, "zb") == round_trip_time(found, space, "1f1b")
    assert round_trip_time(found, space, "dualpipe") == pytest.approx(8 / 5 * 16 + 12 - 12)
    held_up = times(num_micro=8, mean_stage_s=1.0, sent_s=2.0, slot_s=1.5, pipeline_s=0.5)
    assert round_trip_time(held_up, space, "gpipe") == pytest.approx(6 * 2 - 3 * 0.5)
    # two chunks a stage: a message of 1 s holds up half as much, for five and a half micro-batches that are held
    chunked = round_trip_time(held_up, Space.of(Layout(pp=4, vpp=2)), "1f1b")
    assert chunked == pytest.approx(8 / 5.5 * (4 + 14) - 12 + 6 - 3 * 0.25)


@pytest.mark.parametrize("nic_gbit_per_s", [10, 400])
def test_the_slowest_chip_is_as_much_slower_where_stages_wait(nic_gbit_per_s: float) -> None:
    """A hundredth for every factor of e in 64 chips: 4.16 %, of kernels and of what is on its way alike."""
    cluster = cluster_of(H100, 64, nic_bytes_per_s=nic_gbit_per_s * 1e9 / 8)
    job = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=64)
    even, uneven = (
        step_times(job, cluster, Space.of(Layout(pp=8, dp=8)), replace(framework("nemo"), jitter=jitter))
        for jitter in (0.0, 0.01)
    )
    assert bool(even.round_trip_s[0] > 0) == (nic_gbit_per_s == 10)
    assert uneven.step_s[0] / even.step_s[0] == pytest.approx(1.0415888)


@pytest.mark.parametrize(("order", "times"), [("zb", 7 * 1.0), ("dualpipe", 3 * 1.5)])
def test_what_messages_hold_up_lengthens_the_gaps_of_a_schedule(order: str, times: float) -> None:
    """Half of it forward, half backward: (p − 1)(F + B − W) has one of each, (p/2 − 1)(F&B + B − 2W) one and two."""
    job = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=128)
    free, held_up = (
        simulate_step(
            job, cluster_of(H100, 64), Layout(pp=8, dp=8), replace(framework("nemo"), pipeline_exposed=share),
            order=order,
        )
        for share in (0.0, 0.25)
    )  # fmt: skip
    message_s = float(held_up.closed.pipeline_s[0])
    assert message_s > 0
    assert free.closed.round_trip_s[0] == held_up.closed.round_trip_s[0] == 0
    more_s = held_up.closed_parts.bubble_s - free.closed_parts.bubble_s
    assert more_s == pytest.approx(times * message_s)


DRAWN_CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm", "a100-sxm-80gb")
DRAWN_MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "mixtral-8x7b", "llama-3.2-1b")


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_drawn_plans_of_one_chunk(data: st.DataObject) -> None:
    """On networks from 10 to 400 Gb/s, whatever ZeRO shards and whether forward is done again: closed form and
    simulation within an eighth of each other; a billion parameters in eight stages or more, whose layers take less time
    than what is exchanged beside them, up to a fifth short.

    Gradients hide behind the last backward alone, and bubbles are as long as stages that wait for their parameters:
    without either, three of ten were off by more than 6 %, the worst by 39 %.
    """
    model = SHELF.model(data.draw(st.sampled_from(DRAWN_MODELS)))
    tp, pp, dp = (
        data.draw(st.sampled_from(degrees)) for degrees in ((1, 2, 4, 8), (2, 4, 8, 16), (1, 2, 4, 8, 16))
    )
    num_micro = pp * data.draw(st.sampled_from((1, 2, 4)))
    assume(model.num_layers % pp == 0 and model.num_kv_heads % tp == 0)
    layout = Layout(
        tp=tp,
        pp=pp,
        dp=dp,
        zero=data.draw(st.integers(0, 3)),
        recompute=data.draw(st.sampled_from(("none", "full"))),
    )
    chip, nic = (
        SHELF.chip(data.draw(st.sampled_from(DRAWN_CHIPS))),
        data.draw(st.sampled_from((10, 25, 40, 100, 400))),
    )
    job = Job(model=model, seq=data.draw(st.sampled_from((2048, 8192))), global_batch=dp * num_micro)
    cluster = cluster_of(chip, layout.num_chips, nic_bytes_per_s=nic * 1e9 / 8)
    short = 0.2 if model.name == "llama-3.2-1b" and pp >= 8 else 0.12
    assert -short < simulate_step(job, cluster, layout, framework("nemo")).closed_difference_fraction < 0.12


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    model=st.sampled_from(DRAWN_MODELS),
    chip=st.sampled_from(DRAWN_CHIPS),
    tp=st.sampled_from((1, 2, 4, 8)),
    dp=st.sampled_from((2, 4, 8, 16, 64)),
    zero=st.integers(0, 2),
    recompute=st.sampled_from(("none", "full")),
    num_micro=st.sampled_from((1, 2, 4)),
    nic_gbit_per_s=st.sampled_from((10, 25, 40, 100, 400)),
)
def test_drawn_plans_of_one_stage(
    model: str,
    chip: str,
    tp: int,
    dp: int,
    zero: int,
    recompute: Recompute,
    num_micro: int,
    nic_gbit_per_s: float,
) -> None:
    """Plain data parallelism: the closed form is up to a seventh short where gradients or parameters just outlast the
    pass that they run beside, which they slow in simulation alone, and never more than 1.5 % long.

    Gradients that are all-reduced run beside the backward alone, both halves: there it is 3 % short at most.
    """
    layout = Layout(tp=tp, dp=dp, zero=zero, recompute=recompute)
    job = Job(model=SHELF.model(model), seq=8192, global_batch=dp * num_micro)
    cluster = cluster_of(SHELF.chip(chip), layout.num_chips, nic_bytes_per_s=nic_gbit_per_s * 1e9 / 8)
    found = simulate_step(job, cluster, layout, framework("nemo"))
    assert (-0.03 if zero == 0 else -0.143) < found.closed_difference_fraction < 0.015


@pytest.mark.parametrize(
    ("zero", "recompute", "nic_gbit_per_s", "short"),
    [
        (
            0,
            "none",
            40,
            0.006,
        ),  # 1.318 s beside 1.325 s; with half of it beside the forward it would be 1.156 s
        (0, "full", 40, 0.024),
        (1, "none", 40, 0.097),
        (1, "full", 40, 0.082),  # 1.29 s beside 1.40 s
        (1, "full", 25, 0.132),
        (1, "full", 10, 0.008),  # far longer than what hides it, it shows alike
        (1, "full", 400, 0.004),
    ],
)
def test_closed_form_and_simulation_of_plain_data_parallelism(
    zero: int, recompute: Recompute, nic_gbit_per_s: float, short: float
) -> None:
    layout = Layout(dp=64, zero=zero, recompute=recompute)
    found = ran("llama-3.1-8b", 64, layout, nic_gbit_per_s)
    assert -short < found.closed_difference_fraction < 0


@pytest.mark.parametrize(("model", "global_batch", "layout"), LAYOUTS)
@pytest.mark.parametrize(("nic_gbit_per_s", "apart"), [(1, 0.14), (10, 0.05), (40, 0.06), (400, 0.011)])
def test_closed_form_and_simulation_of_1f1b(
    model: str, global_batch: int, layout: Layout, nic_gbit_per_s: float, apart: float
) -> None:
    """Before round trips were counted the closed form was up to two thirds short at 1 Gb/s, a third at 10 Gb/s."""
    found = ran(model, global_batch, layout, nic_gbit_per_s)
    assert abs(found.closed_difference_fraction) <= apart
    waits = bool(found.closed.round_trip_s[0] > 0)
    assert waits if nic_gbit_per_s <= 10 else not waits or nic_gbit_per_s == 40


@pytest.mark.parametrize(("model", "global_batch", "layout"), CHUNKED)
@pytest.mark.parametrize(("nic_gbit_per_s", "apart"), [(1, 0.16), (10, 0.24), (40, 0.07), (400, 0.011)])
def test_closed_form_and_simulation_of_chunks(
    model: str, global_batch: int, layout: Layout, nic_gbit_per_s: float, apart: float
) -> None:
    assert abs(ran(model, global_batch, layout, nic_gbit_per_s).closed_difference_fraction) <= apart


def test_the_top_of_a_tree_is_as_narrow() -> None:
    """512 chips, eight stages: the closed form was 41 % short."""
    design = FabricDesign(topology="tree", chip="h100-sxm", chips=512)
    cluster = cluster_from(design, SHELF, num_chips=512)
    job = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=1024)
    found = simulate_step(job, cluster, Layout(pp=8, dp=64), framework("nemo"))
    assert abs(found.closed_difference_fraction) < 0.06
