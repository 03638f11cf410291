"""What a plan hands on: whole users to some of its replicas, its layout's order to its goodput, no idle network."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.operations import with_operations
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.serving.question import plan_serving
from datahall.planner.training.choice import plan_on_chips
from datahall.planner.training.operations import with_goodput
from datahall.power.sections.service import ServicePower
from datahall.reliability.sections.goodput import Goodput
from datahall.scenario.kinds import Raw
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.training.layout.space import Options
from datahall.training.setup import machine_of
from datahall.training.step.framework import framework
from datahall.training.step.step import Job

SHELF = Catalog(user=False)


def asked(verb: str, **said: Raw) -> Scenario:
    return read_names(form_of(verb), said, SHELF, bare=True)


SERVED = asked("plan serve", model="llama-3.1-8b", rate=30, isl=500, osl=200, chips=["h100-sxm"])


@cache
def served() -> ServingPlan:
    return plan_serving(SERVED)


@pytest.mark.parametrize(
    ("users", "some", "of_all", "whole"),
    [(7, 2, 3, 4), (7, 1, 3, 2), (7, 3, 3, 7), (5, 1, 2, 2), (1, 1, 2, 0)],
)
def test_some_of_the_replicas_get_whole_users(users: int, some: int, of_all: int, whole: int) -> None:
    """Two of three replicas have 4⅔ of 7 users: four of them are whole; of a rate they get their share."""
    best = served().chosen
    demand = msgspec.structs.replace(best.demand, users=users, rate_per_s=30.0)
    one = msgspec.structs.replace(best, num_replicas=of_all, demand=demand)
    num, rate = one.load_of(some)
    assert num == whole
    assert rate == pytest.approx(30.0 * some / of_all)


def with_users(held_per_s: float, came_per_s: float, num_added: int) -> Candidate:
    """Four replicas of users who ask again, of which each was found to get so many requests when simulated."""
    best = served().chosen
    run: Any = SimpleNamespace(
        requests_per_s=2 * came_per_s, replicas=SimpleNamespace(pool=SimpleNamespace(size=2))
    )
    reuse: Any = object()
    return msgspec.structs.replace(
        best, num_replicas=4, num_added=num_added, headroom_fraction=0.0, run=run,
        demand=msgspec.structs.replace(best.demand, users=100, reuse=reuse),
        held=msgspec.structs.replace(best.held, rate_per_s=held_per_s),
    )  # fmt: skip


def test_a_replica_holds_at_least_what_users_were_seen_to_ask_of_it() -> None:
    """In closed form it holds 3/s; users asked 5/s of it and were served: that it holds, or 3/s where they ask 2/s."""
    assert with_users(3.0, 5.0, 0).held_per_s == pytest.approx(5.0)
    assert with_users(3.0, 2.0, 0).held_per_s == pytest.approx(3.0)
    # where replicas were added the closed form promised too much: it is what each then gets
    assert with_users(3.0, 2.0, 1).held_per_s == pytest.approx(2.0)


@pytest.mark.parametrize(("model", "network"), [("llama-3.1-8b", False), ("mixtral-8x7b", True)])
def test_ranks_of_a_dense_model_exchange_nothing_across_domains(model: str, network: bool) -> None:
    """Sixteen ranks stretch over two servers of eight H100: those of a mixture send each other tokens."""
    best = served().chosen
    replica = msgspec.structs.replace(
        best.held.replica, model=SHELF.model(model), tp=1, pp=1, dp=16, ep=16 if network else 1
    )
    wide = msgspec.structs.replace(best, held=msgspec.structs.replace(best.held, replica=replica))
    plan = msgspec.structs.replace(served(), chosen=wide, sections=())
    machines = with_operations(plan, SERVED).part(ServicePower).machines
    assert replica.num_chips == 16 > replica.num_domain == 8
    assert (machines.network.value > 0.0) == network


@pytest.mark.parametrize(("vpp", "schedule"), [(1, "1f1b"), (2, "interleaved")])
def test_the_goodput_of_a_plan_is_that_of_its_layout_with_all_its_chunks(vpp: int, schedule: str) -> None:
    """What is left of a chip beside the run is what the plan says is left, in whatever order its chunks run."""
    scenario = asked("plan train", model="llama-3.1-8b", tokens="1T", chips=16, chip="h100-sxm")
    kit = framework("nemo")
    job = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=64)
    only = Options(tp=(2,), pp=(4,), vpp=(vpp,), micro_batch=(1,), zero=(1,), recompute=("none",))
    plan = plan_on_chips(job, machine_of(scenario), 16, 1e12, kit, options=only)
    assert plan.layout.vpp == vpp
    run = with_goodput(plan, scenario).part(Goodput).run
    assert run.job.setup.schedule == schedule
    assert run.job.headroom_bytes == pytest.approx(plan.chosen.headroom_bytes)
