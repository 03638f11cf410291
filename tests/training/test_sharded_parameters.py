"""Fully sharded parameters: what moves for a micro-batch is shown down to its collectives, and checks nothing alone."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datahall.answers.training.words import beside_simulation
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.cluster.cluster import cluster_of
from datahall.scenario.sections.training import Stragglers
from datahall.training.layout.layout import Layout
from datahall.training.layout.legality import broken_rules
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.figure import step_figure
from datahall.training.step.framework import framework
from datahall.training.step.step import Job

SHELF = Catalog(user=False)
CLUSTER = cluster_of(SHELF.chip("h100-sxm"), 64)
ROUNDING = 1e-9
NAME = "sharded parameters and gradients of a micro-batch"


def ran(layout: Layout, model: str = "llama-3.1-8b") -> Execution:
    return simulate_step(
        Job(model=SHELF.model(model), seq=4096, global_batch=128), CLUSTER, layout, framework("nemo")
    )


@pytest.mark.parametrize(
    ("model", "layout"),
    [
        ("llama-3.1-8b", Layout(dp=64, zero=3)),
        ("llama-3.1-8b", Layout(tp=2, dp=32, zero=3, shard=8)),
        ("llama-3.1-8b", Layout(tp=2, pp=4, dp=8, zero=3)),
        ("qwen3-30b-a3b", Layout(tp=2, ep=8, dp=32, zero=3)),
    ],
)
def test_what_moves_for_a_micro_batch_is_gathered_twice_and_reduced_once(model: str, layout: Layout) -> None:
    found = ran(layout, model)
    figure = step_figure(found)
    assert false_nodes(figure) == []
    moved = next(one for _, one in figure.walk() if one.name == NAME)
    assert moved.value == pytest.approx(found.stages.gathered_s)
    gathered, again, reduced = moved.parts[:3]
    assert again.value == gathered.value
    assert again.name == f"{gathered.name}, again backward"
    assert reduced.name.startswith("reduce-scatter")


def test_what_is_gathered_once_a_step_has_no_such_part() -> None:
    assert NAME not in {one.name for _, one in step_figure(ran(Layout(dp=64, zero=1))).walk()}


@pytest.mark.parametrize(
    ("layout", "checked"),
    [
        (Layout(dp=64, zero=3), False),
        (Layout(tp=64, zero=1), False),
        (Layout(dp=64, zero=1), True),
        (Layout(tp=16, cp=4, zero=2), True),  # ranks of a sequence share parameters
        (Layout(tp=16, cp=4, zero=3), False),
        (Layout(dp=64, zero=3, shard=16), True),  # copies of a state reduce between them once a step
        (Layout(pp=4, dp=16, zero=3), True),
        (Layout(pp=4, tp=16, zero=1), True),
    ],
)
def test_a_sum_that_both_share_is_not_said_to_agree(layout: Layout, checked: bool) -> None:
    found = ran(layout)
    assert found.is_checked == checked
    assert ("the same sum" in beside_simulation(found, 0.0)) == (not checked)
    assert (abs(found.closed_difference_fraction) < ROUNDING) == (not checked)


@pytest.mark.parametrize(
    "stragglers", [Stragglers(slow_hosts_fraction=0.5), Stragglers(jitter_fraction=0.05)]
)
def test_who_is_slow_is_simulated_alone(stragglers: Stragglers) -> None:
    job = Job(model=SHELF.model("llama-3.1-8b"), seq=4096, global_batch=128)
    found = simulate_step(job, CLUSTER, Layout(tp=64), framework("nemo"), stragglers=stragglers)
    assert found.is_checked
    assert abs(found.closed_difference_fraction) > ROUNDING


def drawn_layout(data: st.DataObject, model: Model) -> Layout:
    """Any layout of 64 chips without stages that a model allows."""
    degrees = st.sampled_from([1, 2, 4, 8, 16])
    tp, cp = data.draw(degrees, label="tp"), data.draw(st.sampled_from([1, 2, 4]), label="cp")
    dp = 64 // (tp * cp)
    layout = Layout(
        tp=tp,
        cp=cp,
        dp=dp,
        ep=data.draw(degrees, label="ep") if model.moe else 1,
        zero=data.draw(st.integers(0, 3), label="zero"),
        shard=data.draw(st.sampled_from([0, *(one for one in (1, 2, 4, 8, 16) if one < dp)]), label="shard"),
        recompute=data.draw(st.sampled_from(["none", "full"]), label="recompute"),
        compression=data.draw(st.sampled_from(["none", "fp8"]), label="compression"),
        offload=data.draw(st.sampled_from([(), ("optimizer",)]), label="offload"),
    )
    assume(not list(broken_rules(layout, model, 64, 128)))
    return layout


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_called_the_same_sum_is_equal_to_rounding(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b"]), label="model")
    found = ran(drawn_layout(data, SHELF.model(name)), name)
    if not found.is_checked:
        assert abs(found.closed_difference_fraction) < ROUNDING
