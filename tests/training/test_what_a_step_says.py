"""What a simulated step says of itself: rates, spread, bands, hosts, and who does what."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.scenario.sections.training import Stragglers
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import EVEN, Execution, simulate_step
from datahall.training.pipeline.figure import step_figure
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_band

SHELF = Catalog(user=False)
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=4096, global_batch=64)
H100 = SHELF.chip("h100-sxm")


def run(
    layout: Layout, *, order: str = "", who: Stragglers = EVEN, num_chips: int = 0, job: Job = JOB
) -> Execution:
    cluster = cluster_of(H100, num_chips or layout.num_chips, servers=SHELF.servers())
    return simulate_step(job, cluster, layout, framework("nemo"), order=order, stragglers=who)


def test_rates_are_tokens_over_the_mean_step() -> None:
    jittery = run(Layout(tp=2, pp=4, dp=4), who=Stragglers(jitter_fraction=0.05))
    steps = jittery.steps_s
    assert len(steps) > 1
    assert jittery.step_s == pytest.approx(float(np.mean(steps)))
    assert jittery.tokens_per_s == pytest.approx(64 * 4096 / jittery.step_s)
    assert jittery.chip_tokens_per_s * 32 == pytest.approx(jittery.tokens_per_s)
    low, high = jittery.spread_s
    assert steps.min() <= low < high <= steps.max()
    assert np.sum((steps >= low) & (steps <= high)) == 6  # of eight, the first and the last lie outside
    assert jittery.bubble_fraction == pytest.approx(jittery.parts.bubble_s / jittery.step_s)


def test_the_band_lies_around_the_step_as_its_framework_was_measured() -> None:
    found = run(Layout(tp=2, pp=2, dp=2))
    low, high = step_band(found.job, found.cluster, found.framework)
    assert 0 < low < 1 < high
    assert found.band_s == pytest.approx((low * found.step_s, high * found.step_s))
    band = step_figure(found).band
    assert band is not None
    assert (band.low, band.high) == pytest.approx(found.band_s)


def test_the_closed_form_is_as_far_as_its_step_is_longer() -> None:
    found = run(Layout(tp=2, pp=4, dp=2))
    longer = found.closed_parts.step_s - found.step_s
    assert found.closed_difference_fraction * found.step_s == pytest.approx(longer)


@pytest.mark.parametrize(("chips", "hosts", "slow"), [(4, 1, 0), (8, 1, 0), (16, 2, 1), (32, 4, 2)])
def test_chips_stand_eight_to_a_host(chips: int, hosts: int, slow: int) -> None:
    """Half of the hosts is slow; of one, half is rounded to none."""
    found = run(Layout(tp=2, dp=chips // 2), who=Stragglers(slow_hosts_fraction=0.5, slow_by_fraction=0.1))
    assert found.num_hosts == hosts
    assert found.num_slow_hosts == slow
    assert run(Layout(tp=2, dp=chips // 2)).num_slow_hosts == 0


def test_a_stage_is_done_by_the_chips_that_split_it() -> None:
    assert run(Layout(tp=2, cp=2, pp=2, dp=2)).num_stage_chips == 4


@pytest.mark.parametrize("order", ["gpipe", "1f1b", "zb", "dualpipe"])
def test_micro_batches_in_flight_are_those_that_a_stage_may_hold(order: str) -> None:
    found = run(Layout(pp=4, dp=2), order=order)
    num_micro = 64 // 2
    held = found.in_flight
    assert len(held) == 4
    if order == "gpipe":
        assert held == (num_micro,) * 4
    elif order == "1f1b":
        assert held == (4, 3, 2, 1)
    assert 0 < min(held) <= max(held) <= num_micro
    assert sum(found.stage_layers) == JOB.model.num_layers * (2 if order == "dualpipe" else 1)


def test_virtual_stages_hold_chunks_of_micro_batches() -> None:
    plain, virtual = run(Layout(pp=4, dp=2)), run(Layout(pp=4, vpp=2, dp=2))
    assert sum(virtual.stage_layers) == sum(plain.stage_layers) == JOB.model.num_layers
    assert virtual.in_flight[0] > plain.in_flight[0]  # it runs ahead further
    assert virtual.in_flight[0] < 2 * plain.in_flight[0]


def test_messages_go_to_neighbours_both_ways_and_not_to_oneself() -> None:
    """32 micro-batches forward and back: two messages each in the middle, one at the ends, none alone."""
    found = run(Layout(pp=4, dp=2))
    assert [found.num_messages(stage) for stage in range(4)] == [32, 64, 64, 32]
    assert run(Layout(dp=8)).num_messages(0) == 0
    folded = run(Layout(pp=4, vpp=2, dp=2))  # chunk 3 hands to chunk 4, on the first stage again
    assert [folded.num_messages(stage) for stage in range(4)] == [96, 128, 128, 96]


def test_exposed_exchange_is_what_nothing_hides_and_the_rest_is_hidden() -> None:
    found = run(Layout(tp=4, pp=2, dp=4, zero=1))
    parts = found.parts
    assert found.exposed_s == pytest.approx(parts.exchange_s + parts.messages_s + parts.data_s)
    assert found.all_hidden_s == pytest.approx(sum(found.hidden_s.values()))
    assert found.hidden_s["messages"] >= 0


def test_model_flops_over_the_peak_of_all_chips() -> None:
    """Six FLOPs a parameter and token besides attention, which adds a few per cent at this length."""
    found = run(Layout(tp=2, dp=4))
    least = 6 * (JOB.model.published_parameters - 2 * 128256 * 4096 / 2) * found.tokens_per_s
    reached = found.mfu_fraction * 8 * H100.peak("bf16")
    assert least < reached < 1.15 * least


def test_the_heaviest_stage_is_the_first_of_those_with_the_most_work() -> None:
    split = Layout(pp=4, dp=2, split=(6, 6, 14, 6))
    assert run(split).heaviest == 2
    last = Layout(pp=4, dp=2, split=(6, 6, 6, 14))
    assert run(last).heaviest == 3


def test_dualpipe_exchanges_two_copies_of_the_gradients() -> None:
    layout = Layout(pp=4, dp=4)
    once, twice = run(layout, order="zb"), run(layout, order="dualpipe")
    assert float(once.closed.data_s[0]) > 0
    assert twice.data_exposed_s == pytest.approx(2 * once.data_exposed_s)


def test_adapters_open_to_what_they_take() -> None:
    """Nothing of a frozen weight is reduced, and next to nothing updated."""
    job = msgspec.structs.replace(JOB, adapters=Adapters(rank=16, targets="attention"))
    layout = Layout(tp=2, pp=2, dp=4, zero=1)
    whole, found = run(layout), run(layout, job=job)
    figure = step_figure(found)
    assert false_nodes(figure) == []
    assert figure.value == pytest.approx(found.step_s, rel=1e-12)
    assert 0 < found.parts.optimizer_s < 0.01 * whole.parts.optimizer_s
    assert found.parts.kernels_s < whole.parts.kernels_s
