"""Plans of a service: the least hardware, and honest refusals."""

from __future__ import annotations

import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.cluster.wiring import Wiring
from datahall.errors import InfeasibleError, ScenarioError
from datahall.planner.plan import FEWEST_CHIPS
from datahall.planner.serving.confirm import _at_rate
from datahall.planner.serving.demand import demand_of
from datahall.planner.serving.groups import groups
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.serving.question import plan_serving
from datahall.scenario.kinds import Raw
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fabric import FabricDesign

CHAT = {"isl": 500, "osl": 250}


@pytest.fixture(scope="module")
def shelf() -> Catalog:
    return Catalog(user=False)


def asked(shelf: Catalog, model: str, **given: Raw) -> Scenario:
    return read_names(form_of("plan serve"), {"model": model, **CHAT, **given}, shelf, bare=True)


def plan(shelf: Catalog, model: str, **given: Raw) -> ServingPlan:
    return plan_serving(asked(shelf, model, **given))


def test_users_read_at_the_pace_of_the_limit(shelf: Catalog) -> None:
    scenario = asked(shelf, "llama-3.1-8b", users=10_000, tpot=0.05)
    demand = demand_of(scenario, scenario.model())
    assert demand.rate_per_s * demand.load.output == pytest.approx(10_000 / 0.05)


def test_users_who_think_offer_less(shelf: Catalog) -> None:
    scenario = asked(shelf, "llama-3.1-8b", users=10_000, tpot=0.05, think=30.0)
    demand = demand_of(scenario, scenario.model())
    assert demand.rate_per_s == pytest.approx(10_000 / (250 * 0.05 + 30.0))


def test_the_best_of_each_chip_is_the_one_with_fewest_chips(shelf: Catalog) -> None:
    found = plan(shelf, "llama-3.1-70b", rate=50, chips="h100-sxm,h200", precision="bf16", objective="chips")
    assert {way.replica.chip.name for way in found.best} == {"h100-sxm", "h200-sxm"}
    for best in found.best:
        same = [
            lost for lost in found.alternatives if lost.candidate.replica.chip.name == best.replica.chip.name
        ]
        assert same
        assert all(lost.candidate.num_chips == best.num_chips + lost.num_more for lost in same)
    assert [way.num_chips for way in found.best] == sorted(way.num_chips for way in found.best)
    assert found.chosen is found.best[0]
    assert found.objective == FEWEST_CHIPS


def test_every_way_keeps_the_limits_at_the_load_asked(shelf: Catalog) -> None:
    found = plan(shelf, "llama-3.1-70b", rate=200, chips="h200", precision="bf16,fp8")
    promise = found.demand.promise
    for way in (*found.best, *(lost.candidate for lost in found.alternatives)):
        assert way.state.ttft_high_s <= promise.ttft_s
        assert way.state.tpot_high_s <= promise.tpot_s
        assert way.spare_fraction >= 0
    assert all(way.keeps for way in found.best)


def test_more_load_never_takes_fewer_chips(shelf: Catalog) -> None:
    sizes = [
        plan(shelf, "qwen3-32b", rate=rate, chips="h100-sxm", precision="bf16").chosen.num_chips
        for rate in (1, 10, 50, 250)
    ]
    assert sizes == sorted(sizes)


def test_limits_that_no_group_keeps_are_refused_with_the_nearest(shelf: Catalog) -> None:
    with pytest.raises(InfeasibleError, match="TPOT"):
        plan(shelf, "llama-3.1-405b", rate=50, tpot=0.001, chips="h100-sxm", precision="bf16")


def test_a_model_that_fits_nowhere_says_what_is_missing(shelf: Catalog) -> None:
    with pytest.raises(InfeasibleError, match="missing"):
        plan(shelf, "deepseek-v3", rate=50, chips="l40s", precision="bf16", tp=1)


def test_experts_are_also_tried_spread_over_ranks(shelf: Catalog) -> None:
    found = list(groups(Deployment(chip="h200-sxm"), shelf.model("deepseek-v3"), shelf))
    assert any(replica.dp == 8 and replica.ep == 8 for replica in found)
    assert any(replica.tp == 8 and replica.dp == 1 for replica in found)


def test_a_group_that_was_asked_for_is_the_only_one(shelf: Catalog) -> None:
    found = plan(shelf, "llama-3.1-70b", rate=20, chips="h200", tp=4)
    assert {way.replica.tp for way in (found.chosen, *(lost.candidate for lost in found.alternatives))} == {4}


def test_what_was_asked_of_the_engine_reaches_every_replica(shelf: Catalog) -> None:
    given = {"engine": "sglang", "draft": "ngram", "adapters": 10, "max_sequences": 64, "max_context": 4096}
    for way in plan(shelf, "llama-3.1-8b", rate=20, chips="h100-sxm,l40s", **given).best:
        replica = way.replica
        assert (replica.engine.name, replica.engine.max_sequences) == ("sglang", 64)
        assert replica.max_context == 4096
        assert replica.speculation is not None
        assert replica.adapters is not None
        assert replica.adapters.num == 10


def test_no_chips_is_an_error(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match="nothing is named"):
        plan(shelf, "llama-3.1-8b", rate=5, chips="")


def test_a_format_that_no_chip_runs_is_a_refusal_and_not_a_way(shelf: Catalog) -> None:
    found = plan(shelf, "llama-3.1-8b", rate=5, chips="a100-sxm-80gb", precision="bf16,fp8")
    assert found.chosen.precision == "bf16"
    assert any("FP8" in refusal.why for refusal in found.refusals)


@pytest.mark.parametrize(
    ("chip", "fabric", "ranks"),
    [("h200-sxm", None, {8, 16, 32}), ("gb200", Wiring(FabricDesign(topology="nvl72")), {8, 16, 32, 64})],
)
def test_groups_stay_in_a_domain_but_for_experts_that_the_network_joins(
    shelf: Catalog, chip: str, fabric: Wiring | None, ranks: set[int]
) -> None:
    """Layers are shared by eight chips at most; experts are spread over 32, or over all of a larger domain."""
    found = list(groups(Deployment(chip=chip), shelf.model("deepseek-v3"), shelf, fabric))
    assert {replica.tp for replica in found} == {1, 2, 4, 8}
    assert {replica.dp for replica in found if replica.dp > 1} == ranks
    assert all(replica.ep in (1, replica.tp * replica.dp) for replica in found)
    degrees = [(replica.tp, replica.pp, replica.dp, replica.ep) for replica in found]
    assert len(degrees) == len(set(degrees))


def test_a_model_without_experts_spreads_none(shelf: Catalog) -> None:
    found = list(groups(Deployment(chip="h200-sxm"), shelf.model("llama-3.1-8b"), shelf))
    assert [(replica.tp, replica.dp, replica.ep) for replica in found] == [
        (1, 1, 1),
        (2, 1, 1),
        (4, 1, 1),
        (8, 1, 1),
    ]


@pytest.mark.parametrize(("turns", "sessions"), [(1.0, 12.0), (3.0, 4.0)])
def test_a_rate_of_requests_is_one_of_conversations_with_their_turns(
    shelf: Catalog, turns: float, sessions: float
) -> None:
    scenario = asked(shelf, "llama-3.1-8b", rate=5, turns=turns)
    traffic = demand_of(scenario, scenario.model()).traffic
    assert _at_rate(traffic, 12.0, 1.0).rate_per_s == sessions
