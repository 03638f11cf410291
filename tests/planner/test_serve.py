"""Plans of a service: the least hardware, and honest refusals."""

from __future__ import annotations

import pytest

from datahall.catalog import load as catalogue
from datahall.errors import InfeasibleError, ScenarioError
from datahall.inference.closed_form.steady_state import Load
from datahall.planner.serve import Demand, candidates, demand_of_users, plan_serving
from datahall.scenario.promise import Promise
from datahall.workload.precision import BF16

CHAT = Load(prompt=500.0, output=250.0)


def demand(rate: float = 50.0, ttft_s: float = 1.0, tpot_s: float = 0.05) -> Demand:
    return Demand(load=CHAT, slo=Promise(ttft_s=ttft_s, tpot_s=tpot_s), rate_per_s=rate)


def test_users_read_at_the_pace_promised() -> None:
    asked = demand_of_users(10_000, CHAT, Promise(ttft_s=1.0, tpot_s=0.05))
    assert asked.rate_per_s * CHAT.output == pytest.approx(10_000 / 0.05)


def test_the_best_of_each_chip_is_the_one_with_fewest_chips() -> None:
    shelf = catalogue()
    plan = plan_serving(
        shelf.model("llama-3.1-70b"), [shelf.chip("h100-sxm"), shelf.chip("h200")], demand(), "vllm"
    )
    assert {one.replica.chip.name for one in plan.choices} == {"h100-sxm", "h200-sxm"}
    for chosen in plan.choices:
        same = [one for one in plan.others if one.replica.chip.name == chosen.replica.chip.name]
        assert all(one.num_chips >= chosen.num_chips for one in same)
    assert [one.num_chips for one in plan.choices] == sorted(one.num_chips for one in plan.choices)


def test_every_choice_keeps_the_promise_at_the_load_asked() -> None:
    shelf = catalogue()
    asked = demand(200.0)
    plan = plan_serving(
        shelf.model("llama-3.1-70b"), [shelf.chip("h200")], asked, "vllm", precisions=("bf16", "fp8")
    )
    for one in (*plan.choices, *plan.others):
        assert one.state.ttft_high_s <= asked.slo.ttft_s
        assert one.state.tpot_high_s <= asked.slo.tpot_s
        assert one.headroom_fraction >= 0


def test_more_load_never_takes_fewer_chips() -> None:
    shelf = catalogue()
    sizes = [
        plan_serving(shelf.model("qwen3-32b"), [shelf.chip("h100-sxm")], demand(rate), "vllm").best.num_chips
        for rate in (1.0, 10.0, 50.0, 250.0)
    ]
    assert sizes == sorted(sizes)


def test_a_promise_that_no_group_keeps_is_refused_with_the_nearest() -> None:
    shelf = catalogue()
    with pytest.raises(InfeasibleError, match="TPOT"):
        plan_serving(shelf.model("llama-3.1-405b"), [shelf.chip("h100-sxm")], demand(tpot_s=0.001), "vllm")


def test_a_model_that_fits_nowhere_says_what_is_missing() -> None:
    shelf = catalogue()
    with pytest.raises(InfeasibleError, match="missing"):
        plan_serving(shelf.model("deepseek-v3"), [shelf.chip("l40s")], demand(), "vllm", tp=1)


def test_experts_are_also_tried_spread_over_ranks() -> None:
    shelf = catalogue()
    found = list(candidates(shelf.model("deepseek-v3"), shelf.chip("h200"), "vllm", BF16, 0))
    assert any(one.dp == 8 and one.ep == 8 for one in found)
    assert any(one.tp == 8 and one.dp == 1 for one in found)


def test_no_chips_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="no chip"):
        plan_serving(catalogue().model("llama-3.1-8b"), [], demand(), "vllm")
