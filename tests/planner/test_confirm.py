"""A plan is played before it is believed, and replicas are added only as far as they are needed."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import load as catalogue
from datahall.inference.engine.slo import Slo
from datahall.planner.serve import STEP_ADDED, Choice, confirm, demand_of_users, plan_serving
from datahall.show.serving_words import load_of
from datahall.workload.traffic.options import traffic_from
from datahall.workload.traffic.traffic import Traffic


def best(traffic: Traffic, users: int, slo: Slo) -> Choice:
    shelf = catalogue()
    demand = demand_of_users(users, load_of(traffic), slo)
    return plan_serving(shelf.model("llama-3.1-8b"), [shelf.chip("l40s")], demand, "vllm").best


def test_what_is_added_is_the_least_that_keeps_the_promise() -> None:
    slo = Slo(ttft_s=1.0, tpot_s=0.05)
    traffic = traffic_from(users=500, preset_name="lmsys-chat")
    choice = best(traffic, 500, slo)
    few = msgspec.structs.replace(choice, num_replicas=choice.num_replicas * 3 // 4)
    found = confirm(few, traffic)
    assert found.keeps
    assert found.num_added > 1
    step = max(1, round(STEP_ADDED * few.num_replicas))
    a_step_less = msgspec.structs.replace(few, num_replicas=found.choice.num_replicas - step)
    assert confirm(a_step_less, traffic).num_added > 0


def test_a_rival_is_not_followed_beyond_what_the_best_takes() -> None:
    traffic = traffic_from(users=2000, preset_name="lmsys-chat")
    few = msgspec.structs.replace(best(traffic, 2000, Slo(ttft_s=1.0, tpot_s=0.05)), num_replicas=10)
    found = confirm(few, traffic, below=12 * few.replica.num_chips)
    assert not found.keeps
    assert found.choice.num_replicas <= 12


def test_later_turns_of_a_conversation_count_into_the_rate() -> None:
    traffic = traffic_from(users=50, isl=200, osl=100, turns=4)
    choice = best(traffic, 50, Slo(ttft_s=2.0, tpot_s=0.1))
    found = confirm(choice, traffic, headroom=0.0)
    share = choice.demand.rate_per_s * found.num_played / found.choice.num_replicas
    assert found.run.requests_per_s == pytest.approx(share, rel=0.1)
