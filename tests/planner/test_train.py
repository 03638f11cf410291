"""Plans of training runs: the best layout, the fewest chips, and a clear no."""

from math import nan

import msgspec
import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.errors import InfeasibleError, ScenarioError, UnknownNameError, UnsupportedError
from datahall.planner.train import chips_against_time, plan_by_deadline, plan_on_chips
from datahall.training.layout.space import Options
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.units import DAY_S

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
KIT = framework("nemo")
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=512)


def test_a_plan_on_chips() -> None:
    plan = plan_on_chips(JOB, H100, 128, 1e12, KIT)
    plan.layout.check(JOB.model, 128, 512)
    assert plan.duration_s == pytest.approx(plan.num_steps * plan.step_s)
    assert plan.num_steps == -(-int(1e12) // (512 * 8192))
    assert plan.tokens_per_s * plan.step_s == pytest.approx(512 * 8192)
    assert 0.2 < plan.mfu_fraction < 0.8
    assert plan.headroom_bytes >= 0


def test_the_best_few_are_played_and_the_fastest_of_them_is_chosen() -> None:
    plan = plan_on_chips(JOB, H100, 128, 1e12, KIT)
    assert len(plan.played) == 3
    assert plan.place in plan.played
    assert plan.step_s == min(one.step_s for one in plan.played.values())
    assert plan.played[plan.place].layout == plan.layout
    assert plan.closed_step_s == pytest.approx(plan.step_s, rel=0.2)
    fast = plan_on_chips(JOB, H100, 128, 1e12, KIT, num_played=1)
    assert fast.place == 0


def test_more_chips_take_less_time_on_the_same_batch() -> None:
    plans = chips_against_time(plan_on_chips(JOB, H100, 128, 1e12, KIT))
    assert [one.num_chips for one in plans] == [32, 64, 128, 256]
    times = [one.num_steps * one.closed_step_s for one in plans]
    assert times == sorted(times, reverse=True)


def test_what_a_search_may_offload_is_asked_for() -> None:
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=512)
    options = Options(offload=((), ("optimizer",), ("optimizer", "activations")))
    plan = plan_on_chips(job, H100, 64, 1e12, KIT, options=options, servers=SHELF.servers())
    assert "optimizer" in plan.layout.offload
    assert plan.headroom_bytes >= 0
    assert plan.played[plan.place].parts.offload_s > 0


def test_a_deadline_takes_the_fewest_chips() -> None:
    plan = plan_by_deadline(JOB, H100, 20 * DAY_S, 1e12, KIT)
    assert plan.chosen.duration_s <= 20 * DAY_S
    assert all(other.duration_s > 20 * DAY_S for other in plan.weighed[:-1])
    assert plan.chosen.num_chips % 8 == 0
    counts = [other.num_chips for other in plan.weighed]
    assert counts == sorted(counts)


def test_a_longer_deadline_needs_no_more_chips() -> None:
    chips = [
        plan_by_deadline(JOB, H100, days * DAY_S, 1e12, KIT).chosen.num_chips for days in (5, 10, 20, 60)
    ]
    assert chips == sorted(chips, reverse=True)


def test_what_fits_nowhere_names_the_constraint_and_the_way_out() -> None:
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=512)
    with pytest.raises(InfeasibleError) as caught:
        plan_on_chips(job, H100, 64, 1e12, KIT)
    assert "fits 64 × h100-sxm in none of" in caught.value.message
    assert "lacks" in caught.value.message
    assert "memory: stage" in caught.value.where
    assert "cheapest change: --offload optimizer" in caught.value.hint
    assert "or 128 chips" in caught.value.hint
    linkless = msgspec.structs.replace(H100, host_bytes_per_s=nan)
    with pytest.raises(InfeasibleError) as caught:
        plan_on_chips(job, linkless, 64, 1e12, KIT)
    assert "cheapest change: 128 chips" in caught.value.hint
    assert plan_on_chips(job, H100, 128, 1e12, KIT).headroom_bytes >= 0


def test_a_deadline_nobody_can_meet() -> None:
    with pytest.raises(InfeasibleError) as caught:
        plan_by_deadline(JOB, H100, 3600.0, 15e12, KIT)
    assert "no number of chips" in caught.value.message
    assert "--global-batch 1024" in caught.value.hint


def test_the_answer_holds_the_decision_its_margin_and_its_rivals() -> None:
    answer = dh.plan_train("llama-3.1-70b", tokens="15T", chips=2048, chip="h200", catalog=SHELF)
    assert "15T tokens through Llama 3.1 70B on 2,048 × h200-sxm" in answer.headline
    assert "MFU" in answer.headline
    assert "free" in answer.headline
    best = answer.tables[0]
    assert len(best.columns) <= 7
    assert best.marked == 0
    assert all(row[-1] for row in best.rows[1:])
    assert answer.figure is not None
    assert answer.figure.band is not None
    assert answer.figure.value == pytest.approx(answer.results["duration_s"])
    assert answer.results["num_fitting"] <= answer.results["num_layouts"]
    assert answer.next_commands[0].startswith("datahall show memory llama-3.1-70b --train")


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"chips": 8, "deadline": "30d"}, ScenarioError, "either how many chips"),
        ({}, ScenarioError, "either how many chips"),
        ({"chips": "many"}, ScenarioError, "--chips"),
        ({"chips": 0}, ScenarioError, "at least 1"),
        ({"chips": 8, "tokens": "0"}, ScenarioError, "above 0"),
        ({"chips": 8, "tokens": "lots"}, ScenarioError, "--tokens"),
        ({"deadline": "30"}, ScenarioError, "has no unit"),
        ({"chips": 8, "framework": "nemmo"}, UnknownNameError, "nemo"),
        ({"chips": 8, "state": "fp9"}, UnknownNameError, "state recipe"),
        ({"chips": 8, "precision": "bf17"}, UnknownNameError, "bf16"),
        ({"chips": 8, "chip": "a100-sxm-80gb", "precision": "fp8"}, UnsupportedError, "no FP8"),
        ({"chips": 2047}, ScenarioError, "no layout of llama-3.1-8b divides 2,047 chips"),
    ],
)
def test_bad_questions(options: dict[str, object], kind: type[Exception], said: str) -> None:
    asked: dict[str, object] = {"tokens": "1T"} | options
    with pytest.raises(kind, match=said):
        dh.plan_train("llama-3.1-8b", **asked, catalog=SHELF)
