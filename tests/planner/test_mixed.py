"""Plans where only so many chips of a kind can be had: one kind, or several behind one router, whichever takes less."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError
from datahall.planner.serving.mixed.mixture import Mixture
from datahall.planner.serving.mixed.plan import MixedPlan, mixture_value, plan_within_stock
from datahall.planner.serving.money.aim import aim_of
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.serving.question import plan_serving
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario

SHELF = Catalog(user=False)
BASE: dict[str, Any] = {
    "model": "llama-3.1-8b", "rate": 400, "isl": 500, "osl": 100, "chips": "h100-sxm,h200-sxm", "precision": "fp8",
    "tp": 1,
}  # fmt: skip
NEEDED = 8  # H100s, and as many H200s, that serve it alone


def asked(**more: Any) -> Scenario:
    words = {name: value for name, value in {**BASE, **more}.items() if value is not None}
    return read_names(form_of("plan serve"), words, SHELF, bare=True)


@cache
def _planned(key: bytes) -> ServingPlan | MixedPlan:
    return plan_within_stock(asked(**msgspec.json.decode(key)))


def planned(**more: Any) -> ServingPlan | MixedPlan:
    return _planned(msgspec.json.encode(more))


def mixed(**more: Any) -> MixedPlan:
    found = planned(**more)
    assert isinstance(found, MixedPlan)
    return found


def alone(**more: Any) -> ServingPlan:
    found = planned(**more)
    assert isinstance(found, ServingPlan)
    return found


def answer(**more: Any) -> Answer:
    words = {name: value for name, value in {**BASE, **more}.items() if value is not None}
    return dh.plan_serve(words.pop("model"), **words, catalog=SHELF)


def test_where_there_are_enough_it_is_the_plan_without_a_limit() -> None:
    plain = plan_serving(asked())
    assert plain.chosen.num_chips == NEEDED
    for many in (NEEDED, NEEDED + 1, 10_000):
        found = alone(available=f"h100-sxm={many}")
        assert found.chosen.key == plain.chosen.key
        assert found.value == plain.value
        assert [one.num_chips for one in found.best] == [one.num_chips for one in plain.best]


def test_one_chip_short_is_a_mixture_with_all_that_are_there() -> None:
    found = mixed(available=f"h100-sxm={NEEDED - 1}")
    assert [one.replica.chip.name for one in found.chosen.alone] == ["h100-sxm", "h200-sxm"]
    assert found.chosen.counts == (NEEDED - 1, 1)


@pytest.mark.parametrize("there", range(1, NEEDED))
def test_a_mixture_costs_no_more_than_what_serves_alone_and_less_the_more_there_are(there: int) -> None:
    found = mixed(available=f"h100-sxm={there}")
    plain = plan_serving(asked())
    assert found.value is not None
    assert found.alone_more_fraction is not None
    assert plain.value is not None
    assert plain.value <= found.value * (1 + 1e-12)
    assert found.alone_more_fraction >= 0.0
    if there > 1:
        fewer = mixed(available=f"h100-sxm={there - 1}")
        assert fewer.value is not None
        assert found.value <= fewer.value


def test_no_other_numbers_of_these_replicas_cost_less() -> None:
    """Every number of each kind that holds the load in what a replica of it holds alone, priced as the plan is."""
    scenario, found = asked(available="h100-sxm=5"), mixed(available="h100-sxm=5")
    aim, mix = aim_of(scenario), found.chosen
    others = {
        counts: mixture_value(scenario, aim, other)
        for counts in product(range(1, 6), range(1, NEEDED + 1))
        if (other := msgspec.structs.replace(mix, counts=counts)).held_per_s
        >= mix.full_rate_per_s * (1 - 1e-9)
    }
    assert others[mix.counts] == pytest.approx(min(others.values()))
    assert found.value == pytest.approx(others[mix.counts])


def test_pools_share_the_load_and_the_bill() -> None:
    found = mixed(available="h100-sxm=5", staff=20_000)
    mix = found.chosen
    assert sum(mix.shares) == pytest.approx(1.0)
    assert sum(mix.pool(place).demand.rate_per_s for place in range(2)) == pytest.approx(400.0)
    assert found.totals.month_usd == pytest.approx(found.value)
    without = mixed(available="h100-sxm=5")
    assert without.value is not None
    assert found.value == pytest.approx(without.value + 20_000)  # paid once, however many pools


def test_the_run_has_the_most_capable_spare_ones_out() -> None:
    found = mixed(available="h100-sxm=4", spare=2)
    mix = found.chosen
    best = int(np.argmax(mix.rates_per_s))
    assert sum(mix.spare) == 2
    assert mix.spare[best] == min(2, mix.counts[best])
    run = mix.run
    assert run is not None
    assert np.bincount(run.replicas.pool).tolist() == [one for one in mix.serving if one]
    assert mix.held_per_s >= mix.full_rate_per_s * (1 - 1e-9)
    assert mix.keeps


def test_each_pool_gets_what_it_holds_when_simulated() -> None:
    """By the weights of the plan; without them the slower chips get as many as the faster ones."""
    mix = mixed(available="h100-sxm=4", rate=1200).chosen
    run = mix.run
    assert run is not None
    tokens = np.bincount(run.replicas.pool, weights=run.replicas.output_tokens)
    assert tokens / tokens.sum() == pytest.approx(np.array(mix.shares), abs=0.04)
    assert mix.weights[0] == 1.0


def test_it_keeps_the_limits_that_are_asked() -> None:
    found = mixed(available="h100-sxm=5").chosen
    assert found.run is not None
    assert found.run.stable
    assert found.run.good_fraction >= found.demand.promise.percentile


def test_users_who_ask_again_at_once_are_looked_at_too() -> None:
    found = mixed(rate=None, users=4000, available="h100-sxm=4").chosen
    assert found.hurried is not None
    assert found.keeps


def test_a_kind_that_costs_more_for_what_it_holds_is_not_mixed_in() -> None:
    """Of the cheapest there are enough: how many there are of another is of no matter."""
    found = alone(available="h200-sxm=3")
    assert found.chosen.replica.chip.name == "h100-sxm"
    assert found.mixture is None
    assert "of which 3 can be had" in str(answer(available="h200-sxm=3").tables[0].rows)


def test_a_mixture_that_loses_is_a_line() -> None:
    """Of time a mixture has that of its slowest pool: what the slower chips alone have too."""
    found = answer(objective="time", available="h200-sxm=3")
    assert "h200" not in found.headline
    (line,) = [note for note in found.notes if "behind one router" in note]
    assert line == "2 × h200-sxm and 5 × h100-sxm behind one router would take as much time"


def test_all_of_too_few_say_what_they_hold() -> None:
    with pytest.raises(
        InfeasibleError, match=r"3 h100-sxm, 2 h200-sxm are too few .* all together hold 2\d\d"
    ) as error:
        planned(available="h100-sxm=3,h200-sxm=2")
    assert error.value.field == "available"
    assert "h200-sxm=7" in error.value.hint


def test_a_replica_that_is_larger_than_what_there_is() -> None:
    with pytest.raises(InfeasibleError, match="one replica takes 4 chips, of which 3 can be had"):
        planned(tp=4, chips="h100-sxm", available="h100-sxm=3")


def test_conversations_are_planned_on_one_kind() -> None:
    assert alone(available="h100-sxm=2", turns=3).chosen.replica.chip.name == "h200-sxm"
    with pytest.raises(InfeasibleError, match="conversations stay on their replica"):
        planned(available="h100-sxm=2,h200-sxm=2", turns=3)


def test_a_kind_that_is_not_weighed_is_refused() -> None:
    with pytest.raises(ScenarioError, match="5 l40s can be had, which is not weighed"):
        answer(available="l40s=5")


def test_where_no_chips_are_named_those_that_are_there_are_weighed_too() -> None:
    found = answer(chips=None, available="l40s=4", rate=20)
    assert "l40s" in str(found.inputs["chips"]) + str(found.tables[0].rows)


def test_the_answer_adds_up() -> None:
    found = answer(available="h100-sxm=5")
    assert found.verdict == "yes"
    assert number(found, "num_chips") == sum(row[3] for row in found.tables[0].rows)  # type: ignore[misc]
    assert number(found, "month_usd") == pytest.approx(sum(row[6] for row in found.tables[0].rows))  # type: ignore[misc]
    assert number(found, "num_chips_h100_sxm") == 5
    assert "Supply binds: h100-sxm alone would take 8 chips, and 5 can be had." in str(found.binding)


def test_a_file_is_of_one_kind() -> None:
    from datahall.answers.serving.plan import plan_serve

    with pytest.raises(UnsupportedError, match="runs one kind of chip"):
        plan_serve(asked(available="h100-sxm=5")).artefact("vllm.sh")


def test_weights_are_what_a_router_is_told() -> None:
    mix = mixed(available="h100-sxm=5").chosen
    assert isinstance(mix, Mixture)
    assert all(round(weight, 2) == weight > 0 for weight in mix.weights)
    assert [pool.weight_ratio for pool in mix.fleet(mix.counts).pools] == list(mix.weights)
