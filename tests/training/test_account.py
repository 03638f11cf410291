"""The account of a simulated step: shares add up, exchange is seen or hidden, memory is the peak less what left."""

from __future__ import annotations

from functools import cache

import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import fullest, stage_memories
from datahall.training.memory.tensors import ranked, stage_tensors
from datahall.training.pipeline.account import (
    exchange_account,
    idle_fractions,
    largest_loss,
    largest_parts,
    parts_account,
    waiting_account,
)
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES, Execution, simulate_step
from datahall.training.pipeline.step_memory import step_memory
from datahall.training.step.framework import framework
from datahall.training.step.step import Job

SHELF = Catalog(user=False)
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=4096, global_batch=64)
NEMO, BOOKKEEPING = framework("nemo"), BOOKS["nemo"]
LAYOUTS = (
    Layout(tp=4, pp=4, dp=4),
    Layout(tp=2, pp=4, vpp=2, dp=8, recompute="full"),
    Layout(dp=64, zero=3),
    Layout(tp=8, dp=8, zero=2),
)
each = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.words)


@cache
def run_of(layout: Layout, order: str = "") -> Execution:
    return simulate_step(JOB, cluster_of(SHELF.chip("h100-sxm"), 64), layout, NEMO, order=order)


@each
def test_the_parts_add_up_to_the_step_simulated_and_in_closed_form(layout: Layout) -> None:
    run = run_of(layout)
    *parts, step = parts_account(run)
    own = [part for part in parts if part.closed_s is not None]  # the others are inside them
    assert sum(part.simulated_s for part in own) == pytest.approx(run.step_s) == step.simulated_s
    assert sum(part.share_fraction for part in own) == pytest.approx(1.0) == step.share_fraction
    assert sum(part.closed_s or 0.0 for part in own) == pytest.approx(float(run.closed.step_s[0]))
    assert sum(part.difference_fraction or 0.0 for part in own) == pytest.approx(step.difference_fraction)
    assert step.difference_fraction == pytest.approx(1 - float(run.closed.step_s[0]) / run.step_s)
    assert run.closed_difference_fraction == pytest.approx(float(run.closed.step_s[0]) / run.step_s - 1)
    inside = {part.label for part in parts} - {part.label for part in own}
    assert inside == ({"of which recomputed"} if layout.recompute == "full" else set())


@each
def test_what_takes_the_most_is_named(layout: Layout) -> None:
    run = run_of(layout)
    ranked = largest_parts(run)
    assert ranked[0].label == "kernels"
    assert [part.simulated_s for part in ranked] == sorted(
        (part.simulated_s for part in ranked), reverse=True
    )
    assert largest_loss(run).label == ranked[1].label
    assert largest_loss(run).share_fraction == ranked[1].share_fraction
    own = [name for name in PART_NAMES if name not in OF_WHICH]
    assert len(ranked) == sum(getattr(run.parts, name) > 0 for name in own)


@each
def test_all_exchange_is_seen_or_hidden(layout: Layout) -> None:
    *kinds, whole = exchange_account(run_of(layout))
    assert ("parameters" in {one.name for one in kinds}) == (layout.zero == 3)
    assert whole.exposed_s == pytest.approx(sum(one.exposed_s for one in kinds))
    assert whole.hidden_s == pytest.approx(sum(one.hidden_s for one in kinds)) == run_of(layout).all_hidden_s
    for one in (*kinds, whole):
        assert one.share_fraction == pytest.approx(one.exposed_s / run_of(layout).step_s)
        moved_s = one.exposed_s + one.hidden_s
        assert (one.hidden_fraction is None) == (moved_s == 0)
        assert moved_s * (one.hidden_fraction or 0.0) == pytest.approx(one.hidden_s)


@each
def test_synchronisation_is_barriers_messages_waiting_and_work_done_again(layout: Layout) -> None:
    run = run_of(layout)
    costs = {one.name: one for one in waiting_account(run)}
    assert costs["waiting"].time_s == run.parts.bubble_s
    assert costs["again"].time_s == run.parts.redone_s
    assert (costs["again"].time_s > 0) == (layout.recompute == "full")
    assert costs["message"].time_s - run.parts.messages_s == pytest.approx(run.parts.exchange_s)
    assert costs["barrier"].time_s - run.parts.slowest_s == pytest.approx(run.parts.data_s + run.gathering_s)
    assert run.parts.slowest_s > 0
    assert costs["all"].time_s == pytest.approx(sum(one.time_s for one in costs.values()) / 2)
    assert all(one.share_fraction == pytest.approx(one.time_s / run.step_s) for one in costs.values())


@each
def test_a_stage_is_busy_or_idle_until_the_last_is_done(layout: Layout) -> None:
    run = run_of(layout)
    for stage, idle in enumerate(idle_fractions(run)):
        busy_s = float(run.slowest.busy_s[stage])
        assert busy_s / run.slowest.kernels_s + idle == pytest.approx(1.0)


def test_later_stages_hold_fewer_micro_batches_and_less_memory() -> None:
    """Under 1F1B stage s of 4 holds 4 − s micro-batches: each stage takes one micro-batch's tensors less, and slack."""
    run = run_of(Layout(tp=4, pp=4, dp=4))
    found = step_memory(run, BOOKKEEPING)
    stages = stage_memories(JOB, run.cluster.chip, run.layout, BOOKKEEPING)
    assert [(one.run.first, one.run.last) for one in stages] == [(0, 0), (1, 2), (3, 3)]
    inner = stages[1]
    assert inner.num_in_flight == 3
    one_micro = inner.taken("activation_bytes") / 3
    less = one_micro * (1.0 + BOOKKEEPING.slack_fraction)
    assert found.by_stage_bytes[1] == pytest.approx(inner.total_bytes)
    assert found.by_stage_bytes[1] - found.by_stage_bytes[2] == pytest.approx(less)
    assert found.by_stage_bytes[0] == pytest.approx(stages[0].total_bytes)
    assert found.by_stage_bytes[3] == pytest.approx(stages[2].total_bytes)


@pytest.mark.parametrize("order", ["1f1b", "gpipe", "zb"])
def test_the_fullest_stage_decides_whether_a_step_fits(order: str) -> None:
    run = run_of(Layout(tp=4, pp=4, dp=4), order)
    found = step_memory(run, BOOKKEEPING)
    stages = stage_memories(JOB, run.cluster.chip, run.layout, BOOKKEEPING, schedule=order)
    assert found.most_bytes == max(found.by_stage_bytes) == pytest.approx(stages[fullest(stages)].total_bytes)
    assert found.headroom_bytes == pytest.approx(found.limit_bytes - max(found.by_stage_bytes))
    assert found.fits
    long = Job(model=JOB.model, seq=131_072, global_batch=64)
    full = simulate_step(long, run.cluster, run.layout, NEMO, order=order)
    lacking = step_memory(full, BOOKKEEPING)
    assert lacking.headroom_bytes < 0
    assert not lacking.fits


def test_what_takes_a_stages_memory_adds_up() -> None:
    stages = stage_memories(JOB, SHELF.chip("h100-sxm"), Layout(tp=4, pp=4, dp=4), BOOKKEEPING)
    for stage in stages:
        parts = ("activation_bytes", "working_bytes", "buffer_bytes", "slack_bytes", "outside_bytes")
        assert stage.state_bytes + stage.taken(*parts) == pytest.approx(stage.total_bytes)
        assert stage.total_bytes + stage.headroom_bytes == pytest.approx(stage.memory.limit_bytes)
        assert stage.free_bytes == stage.headroom_bytes > 0
        assert stage.used_ratio + stage.share("headroom_bytes") == pytest.approx(1.0)
        largest = stage.taken(stage.largest)
        assert all(stage.taken(name) <= largest for name in ("weight_bytes", "optimizer_bytes", *parts[:3]))
        assert stage.share_of_used(stage.largest) == pytest.approx(largest / stage.total_bytes)
    lacking = stage_memories(JOB, SHELF.chip("h100-sxm"), Layout(dp=64, micro_batch=64), BOOKKEEPING)[0]
    assert lacking.headroom_bytes < 0 == lacking.free_bytes
    assert lacking.used_ratio > 1


@each
def test_the_tensors_in_flight_are_the_activations(layout: Layout) -> None:
    for stage in stage_memories(JOB, SHELF.chip("h100-sxm"), layout, BOOKKEEPING):
        tensors = stage_tensors(JOB, layout, stage, BOOKKEEPING)
        held = sum(one.held_bytes for one in tensors)
        few = ranked(tensors, 3)
        assert few.smaller_held_bytes == pytest.approx(held - sum(one.held_bytes for one in few.largest))
        assert min(one.size_bytes for one in few.largest) >= max(
            (one.size_bytes for one in few.smaller), default=0.0
        )
        assert held == pytest.approx(stage.taken("activation_bytes"))


@pytest.mark.parametrize("nic", ["10 Gb/s", "50 Gb/s", "400 Gb/s"])
@pytest.mark.parametrize("zero", [1, 3])
def test_what_nothing_hides_is_said_once(zero: int, nic: str) -> None:
    """The result, the table of exchange, what waiting costs; parameters gathered with every micro-batch count."""
    found = dh.simulate_train("llama-3.1-8b", chips=64, chip="h200", global_batch=256, zero=zero, nic=nic)
    (table,) = (one for one in found.tables if one.title.startswith("communication"))
    assert found.results["exposed_s"] == pytest.approx(table.rows[-1][1])
    (waits,) = (one for one in found.tables if "synchronisation" in one.title)
    assert waits.rows[-1][2] >= found.results["exposed_s"] * (1 - 1e-9)
