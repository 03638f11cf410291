"""Simpler layouts that cannot be told apart: where one is taken, and that it never makes a plan worse than another.

Of Llama 3.1 70B on 32 H100 the closed form's third is 2.4 % slower than its first and leaves 20 % of a chip free
instead of 5 %: it is the simplest of them.  What is simulated is replaced by numbers that one can follow on paper.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from, cluster_of
from datahall.planner.training import choice
from datahall.planner.training.candidate import closed_form
from datahall.planner.training.trade import chips_against_time
from datahall.scenario.sections.fabric import FabricDesign
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Loss, Search
from datahall.training.layout.space import Options
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.step.framework import framework
from datahall.training.step.step import Job

SHELF = Catalog(user=False)
KIT = framework("nemo")
BOOKS = bookkeeping_of(KIT)
FEW = Options(micro_batch=(1,), zero=(1,), vpp=(1,), recompute=("none",))
MACHINE = partial(cluster_of, SHELF.chip("h100-sxm"), servers=SHELF.servers())
JOB = Job(model=SHELF.model("llama-3.1-70b"), seq=8192, global_batch=256)
SMALL = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=64)
CHIPS, TOKENS = 32, 1e9


def on(num_chips: int, job: Job = JOB) -> Search:
    return choice.ranked(job, MACHINE, num_chips, KIT, BOOKS, FEW)


def simulate(monkeypatch: pytest.MonkeyPatch, fastest_s: float, simple_s: float, fewer_s: float) -> None:
    """Steps on all chips of the simplest and of any other layout, and of any layout on fewer."""
    simple = on(CHIPS).layout(2)

    def step(_job: Job, cluster: Cluster, layout: Layout, _kit: object) -> SimpleNamespace:
        all_s = simple_s if layout == simple else fastest_s
        return SimpleNamespace(step_s=all_s if cluster.num_chips == CHIPS else fewer_s)

    monkeypatch.setattr(choice, "simulate_step", step)
    monkeypatch.setattr(choice, "_loss", lambda *_: Loss(Layout(), True, 0.0, 2.0, "kernels", 1.0))
    monkeypatch.setattr(choice, "faster_on", lambda *_, **_on: [on(12, SMALL)])


def test_the_third_is_the_simplest_and_as_fast_as_can_be_told() -> None:
    found = on(CHIPS)
    steps_s = [float(found.step_s[row]) for row in found.order[:3]]
    free = [float(found.memory.headroom_bytes[row]) / found.memory.limit_bytes for row in found.order[:3]]
    assert found.best(3) == [0, 1, 2]
    assert 1.01 < steps_s[2] / steps_s[0] < 1.035
    assert max(free[:2]) < 0.06 < 0.19 < free[2]


@pytest.mark.parametrize("num_chips", [64, 128])
def test_on_another_number_of_chips_the_simplest_is_shown_too(num_chips: int) -> None:
    found = on(num_chips)
    rows = chips_against_time(found, MACHINE, closed_form(found, 0), 1)
    (shown,) = (one.candidate for one in rows if one.candidate.num_chips == CHIPS)
    assert shown.place == 2
    assert shown.layout == on(CHIPS).layout(2)
    assert shown.headroom_bytes > on(CHIPS).memory.headroom_bytes[on(CHIPS).order[0]]


@pytest.mark.parametrize(("fewer_s", "step_s"), [(1.01, 1.0), (1.03, 1.03), (2.0, 1.03)])
def test_a_simpler_layout_is_taken_where_it_is_no_slower_than_the_run_on_fewer_chips(
    monkeypatch: pytest.MonkeyPatch, fewer_s: float, step_s: float
) -> None:
    """A step of the simplest takes 1.03 s, of the fastest 1 s: against fewer at 1.01 s only the fastest will do."""
    simulate(monkeypatch, 1.0, 1.03, fewer_s)
    plan = choice.best_of(JOB, MACHINE, CHIPS, TOKENS, KIT, BOOKS, FEW)
    assert (plan.num_chips, plan.step_s) == (CHIPS, step_s)
    assert plan.step_s <= fewer_s
    assert plan.fastest_s == 1.0


def test_what_all_chips_would_take_is_that_of_the_layout_that_would_be_chosen_on_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulate(monkeypatch, 1.0, 1.03, 0.9)
    plan = choice.best_of(JOB, MACHINE, CHIPS, TOKENS, KIT, BOOKS, FEW)
    assert (plan.num_chips, plan.step_s) == (12, 0.9)
    assert plan.on_all_s == pytest.approx(plan.num_steps * 1.03)


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_fewer_chips_are_weighed_by_the_closed_form_and_by_the_simulation_of_all(
    monkeypatch: pytest.MonkeyPatch, ratio: float
) -> None:
    """Fewer chips are promised in closed form: where all are simulated at half of theirs, so may those be.

    What is asked of fewer chips is never less than what the closed form promises of all, nor than what all take.
    """
    closed_s = float(on(CHIPS).step_s.min())
    simulate(monkeypatch, ratio * closed_s, ratio * closed_s, 1.0)
    asked: list[float] = []
    monkeypatch.setattr(choice, "faster_on", lambda *_, than_s, **_on: asked.append(than_s) or [])
    choice.best_of(JOB, MACHINE, CHIPS, TOKENS, KIT, BOOKS, FEW)
    assert asked == [pytest.approx(max(1.0, ratio) * closed_s)]


def test_a_network_without_narrow_places_is_never_said_to_be_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simplest takes 2 % longer there than any does here, another 1 % less: it is the other that is said."""
    chosen = on(CHIPS).layout(2)

    def step(_job: Job, cluster: Cluster, layout: Layout, _kit: object) -> SimpleNamespace:
        wide_s = 1.02 if layout == chosen else 0.99
        return SimpleNamespace(step_s=1.0 if cluster.system.cuts else wide_s)

    monkeypatch.setattr(choice, "simulate_step", step)
    monkeypatch.setattr(choice, "_loss", lambda *_: Loss(Layout(), True, 0.0, 2.0, "kernels", 1.0))
    monkeypatch.setattr(choice, "faster_on", lambda *_, **_on: [])
    plan = choice.plan_on_chips(JOB, _tapered, CHIPS, TOKENS, KIT, options=FEW)
    assert plan.step_s == 1.0
    assert plan.full_bisection is not None
    assert plan.full_bisection.step_s == 0.99
    assert plan.narrow_fraction >= 0.0


def _tapered(num_chips: int) -> Cluster:
    return cluster_from(
        FabricDesign(
            chip="h100-sxm", chips=num_chips, topology="fat-tree", oversubscription=(4.0,), radix=16
        ),
        SHELF,
    )
