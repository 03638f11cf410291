"""A plan is simulated before it is believed, and replicas are added only as far as they are needed."""

from __future__ import annotations

import msgspec
import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.inference.closed_form.capacity import held, num_replicas
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.confirm import MOST_SIMULATED, STEP_ADDED, confirm
from datahall.planner.serving.demand import demand_of
from datahall.planner.serving.groups import groups
from datahall.scenario.kinds import Raw
from datahall.scenario.read import read_names
from datahall.scenario.sections.deployment import Deployment


def first_way(headroom: float = 0.1, **given: Raw) -> Candidate:
    """Llama 8B on one L40S each, as the closed form has it."""
    shelf = Catalog(user=False)
    scenario = read_names(form_of("plan serve"), {"model": "llama-3.1-8b", **given}, shelf, bare=True)
    model = scenario.model()
    demand = demand_of(scenario, model)
    most = held(next(groups(Deployment(chip="l40s"), model, shelf)), demand.load, demand.promise)
    return Candidate(
        held=most, precision="bf16", num_replicas=num_replicas(most, demand.rate_per_s, headroom), demand=demand,
        headroom_fraction=headroom,
    )  # fmt: skip


def test_what_is_added_is_the_least_that_keeps_the_limits() -> None:
    way = first_way(users=500, traffic="lmsys-chat")
    few = msgspec.structs.replace(way, num_replicas=way.num_replicas * 3 // 4)
    found = confirm(few, seed=0)
    assert found.keeps
    assert found.num_added > 1
    assert found.num_replicas == few.num_replicas + found.num_added
    step = max(1, round(STEP_ADDED * few.num_replicas))
    a_step_less = msgspec.structs.replace(few, num_replicas=found.num_replicas - step)
    assert confirm(a_step_less, seed=0).num_added > 0


def test_a_rival_is_not_followed_beyond_what_the_best_takes() -> None:
    few = msgspec.structs.replace(first_way(users=2000, traffic="lmsys-chat"), num_replicas=10)
    found = confirm(few, below=12 * few.replica.num_chips, seed=0)
    assert not found.keeps
    assert found.num_replicas <= 12


def test_later_turns_of_a_conversation_count_into_the_rate() -> None:
    way = first_way(0.0, users=50, isl=200, osl=100, turns=4, ttft=2.0, tpot=0.1)
    found = confirm(way, seed=0)
    assert found.run is not None
    share = way.demand.rate_per_s * min(MOST_SIMULATED, found.num_replicas) / found.num_replicas
    assert found.run.requests_per_s == pytest.approx(share, rel=0.1)


def test_the_seed_is_the_run() -> None:
    way = first_way(users=300, isl=200, osl=100)
    runs = [confirm(way, seed=seed).run for seed in (1, 1, 2)]
    firsts = [run.ttft_s(0.5) for run in runs if run is not None]
    assert firsts[0] == firsts[1] != firsts[2]
