"""A plan of a training run priced, held to a budget, and chosen of several numbers of chips, against brute force."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import inf
from typing import Any

import msgspec
import pytest
from tests.results import number

import datahall as dh
from datahall.answers.ask import form_of
from datahall.breakdown import evaluate, false_nodes
from datahall.catalog import Catalog
from datahall.economics.sections.run import TrainingCost
from datahall.errors import DatahallError, InfeasibleError, ScenarioError
from datahall.planner.training.candidate import TOLD_APART
from datahall.planner.training.dated import Question
from datahall.planner.training.deadline import plan_by_deadline
from datahall.planner.training.money.aim import aim_of
from datahall.planner.training.money.cost import cost_usd
from datahall.planner.training.plan import TrainingPlan
from datahall.planner.training.question import plan_training, search_of
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.scenario.words import AIMS, Aims
from datahall.units import DAY_S

SHELF = Catalog(user=False)
MODEL = "llama-3.1-8b"
SERVER, MOST = 8, 64
FIXED = {"tokens": "100G", "global_batch": 64, "seq": 2048}


def asked(**given: Any) -> Scenario:
    return read_names(form_of("plan train"), {"model": MODEL, **FIXED, **given}, SHELF, bare=True)


@cache
def plan(**given: Any) -> TrainingPlan:
    return plan_training(asked(**given))


def bill(found: TrainingPlan) -> TrainingCost:
    return found.part(TrainingCost)


# -- what a run costs ---------------------------------------------------------------------------------------------


def test_a_run_by_hand() -> None:
    """Steps · step / the share of the time that moves it, in hours, times 16 chips at 2 USD."""
    found = dh.plan_train(MODEL, **FIXED, chips=16, buy=["rent"], price=2.0, catalog=SHELF)
    hours = number(found, "elapsed_s") / 3600.0
    assert number(found, "cost_usd") == pytest.approx(16 * hours * 2.0, rel=1e-6)


def test_it_costs_what_show_cost_says_of_it() -> None:
    planned = dh.plan_train(MODEL, tokens="1T", chips=256, chip="h100-sxm", catalog=SHELF)
    shown = dh.show_cost(MODEL, tokens="1T", chips=256, chip="h100-sxm", catalog=SHELF)
    for mine, theirs in (
        ("rent_usd", "rental_usd"),
        ("own_usd", "operated_usd"),
        ("upfront_usd", "upfront_usd"),
    ):
        assert number(planned, mine) == pytest.approx(number(shown, theirs), abs=0.005)


def test_preemptions_of_spot_are_paid_once() -> None:
    """Chip-hours at the price that spot is sold for: with nodes that stay a day there are more of them."""
    spots = [
        bill(plan(chips=16, buy=("spot",), spot_price=0.5, preempted_every=every_s)).had
        for every_s in (86_400.0, 864_000.0)
    ]
    often, seldom = spots
    assert often is not None
    assert seldom is not None
    assert often.way.usd_per_hour == seldom.way.usd_per_hour == 0.5
    assert often.chip_hours.value > 1.01 * seldom.chip_hours.value
    for one in (often, seldom):
        assert one.cost.value == pytest.approx(0.5 * one.chip_hours.value)
        assert one.elapsed_s == pytest.approx(one.chip_hours.value / 16 * 3600.0)


def test_spot_costs_the_same_alone_and_beside_rent_which_is_never_taken_away() -> None:
    said: dict[str, Any] = {"chips": 16, "spot_price": 0.5, "preempted_every": 86_400.0}
    alone, both = plan(buy=("spot",), **said), plan(buy=("rent", "spot"), **said)
    rented = plan(chips=16, buy=("rent",))
    prices = {one.way.buying: one.cost.value for one in bill(both).paid}
    spot = bill(alone).had
    assert spot is not None
    assert prices["spot"] == pytest.approx(spot.cost.value, rel=1e-12)
    assert prices["rent"] == pytest.approx(cost_usd(rented), rel=1e-12)
    assert both.elapsed_s == rented.elapsed_s
    assert alone.elapsed_s == spot.elapsed_s > both.elapsed_s


def test_spot_of_which_nothing_is_kept_is_no_way() -> None:
    both = bill(plan(chips=16, buy=("rent", "spot"), spot_price=0.5, preempted_every=60.0))
    assert [one.way.buying for one in both.paid] == ["rent"]
    assert "comes to nothing" in both.why_not


def test_figures_of_money_follow_from_their_parts() -> None:
    for figure in bill(plan(chips=16, buy=("rent", "own"))).figures:
        assert not false_nodes(figure)
        assert evaluate(figure) == pytest.approx(figure.value)


# -- a budget -----------------------------------------------------------------------------------------------------


def test_a_budget_is_kept_or_missed_by_so_much() -> None:
    cost = cost_usd(plan(chips=16, buy=("rent",)))
    enough = plan(chips=16, buy=("rent",), budget=1.25 * cost)
    assert enough.over is None
    assert enough.under_usd == pytest.approx(0.25 * cost)
    over = plan(chips=16, buy=("rent",), budget=0.8 * cost).over
    assert over is not None
    assert (over.by_usd, over.by_fraction) == (pytest.approx(0.2 * cost), pytest.approx(0.25))


def test_what_is_said_to_be_enough_is() -> None:
    """Each change by itself, asked again, is a yes."""
    cost = cost_usd(plan(chips=16, buy=("rent",)))
    tight: dict[str, Any] = {"chips": 16, "buy": ["rent"], "budget": 0.8 * cost}
    answer = dh.plan_train(MODEL, **FIXED, **tight, catalog=SHELF)
    assert answer.verdict == "no"
    over = plan(chips=16, buy=("rent",), budget=0.8 * cost).over
    assert over is not None
    assert over.fixes
    assert {fix.name for fix in over.fixes} >= {"buy", "tokens"}
    for fix in over.fixes:
        assert f'{fix.name}="{fix.text}"' in answer.binding
        again = dh.plan_train(MODEL, **{**FIXED, **tight, fix.name: fix.text}, catalog=SHELF)
        assert again.verdict == "yes", fix
        assert number(again, "cost_usd") == pytest.approx(fix.cost_usd, rel=1e-6)


def test_no_change_is_enough_for_a_dollar() -> None:
    answer = dh.plan_train(MODEL, **FIXED, chips=16, budget=0.01, catalog=SHELF)
    assert answer.verdict == "no"
    assert answer.headline.startswith("No: ")


def test_a_budget_for_chips_that_nobody_prices_is_a_no() -> None:
    with pytest.raises(InfeasibleError, match="nobody prices trainium2") as caught:
        dh.plan_train(
            MODEL, **FIXED, chips=64, chip="trainium2", buy=["reserved"], budget="1M", catalog=SHELF
        )
    assert caught.value.field == "budget"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"chips": 16, "budget": 0}, "budget"),
        ({"chips": 16, "budget": -1}, "budget"),
        ({"chips": 16, "budget": 1e300}, "budget"),
        ({"chips": 16, "budget": "many"}, "budget"),
        ({"chips": 16, "objective": "chips"}, "objective"),
        ({"chips": 16, "objective": "money"}, "objective"),
        ({"chips": 16, "buy": ["api"]}, "buy"),
        ({"chips": 16, "buy": ["rent", "api"]}, "buy"),
        ({"chips": 16, "spot_price": 1.0}, "spot_price"),
        ({"chips": 16, "buy": ["rent"], "owner": "hyperscaler"}, "owner"),
        ({"chips": 16, "hardware_age": "1y"}, "hardware_age"),
    ],
)
def test_bad_input_says_where_and_what_to_do(given: dict[str, Any], field: str) -> None:
    with pytest.raises(DatahallError) as caught:
        dh.plan_train(MODEL, **FIXED, **given, catalog=SHELF)
    assert caught.value.exit_code == 2
    assert caught.value.field == field
    assert caught.value.hint


# -- the chips of a deadline ---------------------------------------------------------------------------------------


def dated(objective: Aims, **given: Any) -> Question:
    """The question of a deadline as the planner makes it."""
    made = search_of(asked(objective=objective, chip="h100-sxm", deadline="9d", **given))
    question: Question = made.args[0]  # type: ignore[attr-defined]  # it is a partial
    return question


@cache
def by(days: float, objective: Aims = "cost", budget: float = inf) -> TrainingPlan | None:
    """The plan of at most 64 chips; None where no number of them is in time."""
    question = dated(objective, **({} if budget == inf else {"budget": budget}))
    try:
        return plan_by_deadline(question, days * DAY_S, MOST)
    except InfeasibleError:
        return None


@cache
def every(days: float) -> tuple[TrainingPlan, ...]:
    """The plans on all numbers of whole servers that are in time, priced."""
    question, found = dated("cost"), []
    for num_chips in range(SERVER, MOST + 1, SERVER):
        try:
            one = question.on(num_chips, days * DAY_S)
        except (InfeasibleError, ScenarioError):
            continue
        if one.in_time:
            found.append(question.aim.priced(msgspec.structs.replace(one, num_asked=one.num_chips)))
    return tuple(found)


@pytest.mark.parametrize("days", [3.0, 6.0])
@pytest.mark.parametrize("objective", [aim for aim in AIMS if aim != "carbon"])
def test_brute_force_finds_nothing_better(days: float, objective: Aims) -> None:
    found = by(days, objective)
    assert found is not None
    aim = aim_of(asked(objective=objective, chip="h100-sxm", deadline="9d"))
    assert aim.value(found) <= min(aim.value(one) for one in every(days)) * (1 + 1e-9)


@pytest.mark.parametrize("days", [3.0, 6.0])
def test_a_budget_and_a_deadline_both_bind(days: float) -> None:
    """The fastest within a budget that lies between the cheapest and the fastest."""
    fastest, cheapest = by(days, "time"), by(days)
    assert fastest is not None
    assert cheapest is not None
    budget = 0.5 * (cost_usd(fastest) + cost_usd(cheapest))
    bound = by(days, "time", budget)
    assert bound is not None
    assert bound.in_time
    assert cost_usd(bound) <= budget
    assert bound.elapsed_s >= fastest.elapsed_s
    allowed = [one for one in every(days) if cost_usd(one) <= budget]
    assert bound.elapsed_s <= min(one.elapsed_s for one in allowed) * (1 + 1e-9)


@pytest.mark.parametrize("objective", [aim for aim in AIMS if aim != "carbon"])
def test_more_time_never_gives_more_of_what_is_not_wanted(objective: Aims) -> None:
    """A longer deadline costs no more; as little more as layouts cannot be told apart by, of which the simpler is
    taken where there is time."""
    aim = aim_of(asked(objective=objective, chip="h100-sxm", deadline="9d"))
    values = [
        inf if (one := by(days, objective)) is None else aim.value(one) for days in (1.0, 3.0, 6.0, 12.0)
    ]
    assert values[-1] < inf
    for tighter, looser in pairwise(values):
        assert looser <= tighter * (1 + TOLD_APART)


def test_more_money_never_gives_a_slower_run() -> None:
    cheapest = by(6.0)
    assert cheapest is not None
    budgets = (cost_usd(cheapest), 1.02 * cost_usd(cheapest), 1.2 * cost_usd(cheapest), inf)
    times = [one.elapsed_s for budget in budgets if (one := by(6.0, "time", budget)) is not None]
    assert len(times) == len(budgets)
    assert all(more <= less for less, more in pairwise(times))


def test_the_cheapest_may_take_more_chips_than_the_fewest() -> None:
    """864 chips divide the 70B badly, 1,024 do not: the larger number is the cheaper run."""
    said = {"tokens": "2T", "deadline": "30d", "chip": "h200", "catalog": SHELF}
    cheap, few = (dh.plan_train("llama-3.1-70b", objective=aim, **said) for aim in ("cost", "chips"))
    assert number(cheap, "num_chips") > number(few, "num_chips")
    assert number(cheap, "cost_usd") < number(few, "cost_usd")


def test_a_run_that_never_ends_on_spot_takes_no_number_of_days() -> None:
    answer = dh.plan_train(MODEL, **FIXED, chips=64, buy=["spot"], preempted_every="1min", catalog=SHELF)
    assert answer.verdict == "no"
    assert answer.results["elapsed_s"] is None
    assert "interrupted too often to end" in answer.headline
