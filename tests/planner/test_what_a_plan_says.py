"""What a plan says of a run besides its layout: durations, bands, other machines, and what would hold it."""

from __future__ import annotations

from functools import cache, partial

import msgspec
import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.errors import InfeasibleError, ScenarioError, spelled
from datahall.planner.training.choice import plan_on_chips, ranked
from datahall.planner.training.plan import TrainingPlan
from datahall.planner.training.shortage import chips_that_hold, on_the_host
from datahall.scenario.sections.fabric import FabricDesign
from datahall.training.layout.search import search
from datahall.training.layout.space import WIDE
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_band
from datahall.workload.memory.recipe import RECIPES

SHELF = Catalog(user=False)
KIT = framework("nemo")
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=4096, global_batch=256)


def machine(num_chips: int, **said: object) -> Cluster:
    return cluster_from(FabricDesign(chips=num_chips, **said), SHELF)


TREE = partial(machine, topology="tree")


@cache
def planned() -> TrainingPlan:
    return plan_on_chips(JOB, machine, 64, 1e10, KIT)


def test_a_run_takes_its_steps_and_every_chip_all_of_them() -> None:
    plan = planned()
    assert plan.num_steps == -(-int(1e10) // (4096 * 256))
    assert plan.duration_s == pytest.approx(plan.num_steps * plan.step_s)
    late = msgspec.structs.replace(plan, deadline_s=plan.duration_s + 7.0, done_s=plan.duration_s)
    assert late.spare_s == pytest.approx(7.0)


@pytest.mark.parametrize(("tokens", "steps"), [(1.0, 1), (4096 * 256, 1), (4096 * 256 + 1, 2), (3e9, 2862)])
def test_steps_are_whole(tokens: float, steps: int) -> None:
    assert JOB.num_steps(tokens) == steps


def test_eight_of_ten_runs_are_expected_around_it() -> None:
    plan = planned()
    low, high = step_band(JOB, plan.cluster, KIT)
    assert plan.band == (low, high)
    assert plan.band_s == pytest.approx((low * plan.duration_s, high * plan.duration_s))
    assert plan.band_s[0] < plan.duration_s < plan.band_s[1]


def test_a_narrow_network_costs_what_the_run_takes_longer_than_on_a_wide_one() -> None:
    plain, narrow = (plan_on_chips(JOB, wired, 128, 1e10, KIT) for wired in (machine, TREE))
    assert (plain.full_bisection, plain.narrow_fraction) == (None, 0.0)
    wide = narrow.full_bisection
    assert wide is not None
    assert narrow.narrow_fraction == pytest.approx(narrow.step_s / wide.step_s - 1)
    assert narrow.narrow_fraction > 0
    assert wide.step_s == pytest.approx(plain.step_s, rel=1e-9)


def test_twice_the_chips_are_found_among_those_weighed() -> None:
    plan = planned()
    twice = plan.twice_the_chips
    if twice is None:
        assert all(one.candidate.num_chips != 128 for one in plan.chips_front)
    else:
        assert twice.num_chips == 128
    assert msgspec.structs.replace(plan, chips_front=()).twice_the_chips is None


def test_more_chips_hold_what_one_does_not() -> None:
    """A model of 70B does not fit four chips: doubled until it does, and one half of that does not."""
    job = Job(model=SHELF.model("llama-3.1-70b"), seq=4096, global_batch=256)
    few = search(job, machine(4), KIT, options=WIDE, books=bookkeeping_of(KIT))
    assert few.num_fitting == 0
    enough = chips_that_hold(few, machine)
    assert enough % 4 == 0
    assert enough > 4
    assert ranked(job, machine, enough, KIT, bookkeeping_of(KIT), WIDE).num_fitting > 0
    half = search(job, machine(enough // 2), KIT, books=bookkeeping_of(KIT))
    assert half.num_fitting == 0


def test_the_chips_proposed_are_those_that_hold_it_with_what_may_be_offloaded() -> None:
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=1024)
    kept, moved = (
        search(
            job,
            machine(16),
            KIT,
            options=msgspec.structs.replace(WIDE, offload=offload),
            books=bookkeeping_of(KIT),
        )
        for offload in (((),), ((), ("optimizer",)))
    )
    assert kept.num_fitting == moved.num_fitting == 0
    enough = chips_that_hold(moved, machine)
    assert 16 < enough < chips_that_hold(kept, machine)
    half = search(job, machine(enough // 2), KIT, options=moved.options, books=bookkeeping_of(KIT))
    assert half.num_fitting == 0


@pytest.mark.parametrize("state", sorted({*RECIPES} - {"pure-bf16", "fp8-parameters"}))
def test_a_leaner_state_is_proposed_where_there_is_one(state: str) -> None:
    assert 'state="pure-bf16"' in refused_hint(state=state)


def test_the_leanest_state_is_not_proposed_to_who_has_it() -> None:
    hint = refused_hint(state="pure-bf16")
    assert "state" not in hint
    assert "seq" in hint


def test_a_narrow_format_is_proposed_with_a_narrow_state_where_a_wide_one_was_asked_for() -> None:
    assert "state" not in refused_hint(precision="fp32").replace("a leaner state", "")
    hint = refused_hint(precision="fp32", state="fp32")
    assert 'precision="bf16"' in hint
    assert 'state="pure-bf16"' in hint


def refused_hint(**asked: str) -> str:
    with pytest.raises(InfeasibleError) as refused:
        dh.plan_train("llama-3.1-405b", chips=16, tokens="1B", catalog=SHELF, **asked)
    return spelled(str(refused.value.hint))


def test_a_machine_that_has_no_more_chips_holds_it_on_none() -> None:
    job = Job(model=SHELF.model("llama-3.1-70b"), seq=4096, global_batch=256)
    few = search(job, machine(4), KIT, options=WIDE, books=bookkeeping_of(KIT))

    def whole(num_chips: int) -> Cluster:
        raise ScenarioError(f"there are no {num_chips} chips")

    assert chips_that_hold(few, whole) == 0


def test_a_host_without_a_known_link_holds_nothing() -> None:
    job = Job(model=SHELF.model("llama-3.1-70b"), seq=4096, global_batch=256)
    few = search(job, machine(8), KIT, books=bookkeeping_of(KIT))
    bare = msgspec.structs.replace(few.cluster.host, link_bytes_per_s=float("nan"))
    nobody = msgspec.structs.replace(few, cluster=msgspec.structs.replace(few.cluster, host=bare))
    assert on_the_host(nobody) is None
    outside = on_the_host(few)
    assert outside is not None
    assert outside.layout.offload
    assert outside.headroom_bytes >= 0
    assert outside.step_s > 0
    vast = Job(model=SHELF.model("deepseek-v3"), seq=4096, global_batch=256)
    assert on_the_host(search(vast, machine(1), KIT, books=bookkeeping_of(KIT))) is None
