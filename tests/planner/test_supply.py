"""Where a chip can be had is part of the answer: what is left out is listed with why, and a no says what can be had."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer, Quantity
from datahall.catalog import Catalog
from datahall.economics.supply.distance import METRE_S, PATH_RATIO, distance_m
from datahall.errors import InfeasibleError, ScenarioError

SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "rate": 4, "isl": 300, "osl": 40, "precision": ["bf16"]}
TRAINED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "tokens": "100B",
    "chips": 8,
    "global_batch": 64,
    "seq": 2048,
}
CATALOG = Catalog(user=False)


def serve(**said: Any) -> Answer:
    return dh.plan_serve(**{**SMALL, **said})


def row(answer: Answer, name: str) -> tuple[Any, str]:
    """Value and words of a row of the plan's sections."""
    (found,) = [
        one
        for table in answer.tables
        for one in table.rows
        if one[0] == name and table.columns[-1].name == "which is"
    ]
    return found[1], str(found[2])


def none_of(answer: Answer) -> dict[str, str]:
    """The chips that are weighed and not taken, with why."""
    (table,) = (one for one in answer.tables if one.title == "the best of each chip")
    return {str(one[0]): str(one[1]) for one in table.rows if str(one[1]).startswith("none: ")}


def test_a_chip_that_cannot_be_had_is_listed_with_why_and_the_others_are_weighed() -> None:
    answer = serve(chips=["h100-sxm", "a10", "tpu-v5e"], without=["tsmc"])
    assert answer.results["chip"] == "a10"
    why = none_of(answer)
    assert why["h100-sxm"] == "none: TSMC makes it (2026-04)"
    assert "not known" in why["tpu-v5e"]
    assert answer.results["made_by"] == "Samsung"


def test_where_all_are_left_out_the_answer_is_no_with_what_can_be_had() -> None:
    with pytest.raises(InfeasibleError) as caught:
        serve(chips=["h100-sxm", "h200-sxm"], without=["tsmc"])
    error = caught.value
    assert error.exit_code == 1
    assert error.field == "chips"
    named = error.hint.partition("chips=")[2].strip('"').split(",")
    assert named
    followed = serve(chips=named, without=["tsmc"])
    assert followed.verdict == "yes"


def test_a_chip_of_a_cloud_is_not_bought_and_the_no_says_rent() -> None:
    with pytest.raises(InfeasibleError, match="not sold: gcp alone rents it out") as caught:
        serve(chips=["tpu-v5e"], buy=["own"])
    assert 'buy="rent"' in caught.value.hint
    rented = serve(chips=["tpu-v5e"], buy=["rent"])
    assert rented.results["way"] == "rented on demand"
    assert rented.results["cloud_only"] is True
    assert "lock-in" in row(rented, "supply: sold by")[1]


def test_a_run_on_a_chip_that_may_not_go_there_is_refused_and_a_licence_helps() -> None:
    with pytest.raises(InfeasibleError, match="needs a licence") as caught:
        dh.plan_train(**TRAINED, chip="h100-sxm", country="united-arab-emirates")
    assert caught.value.field == "chip"
    answer = dh.plan_train(**TRAINED, chip="h100-sxm", country="united-arab-emirates", licensed=True)
    assert answer.results["needs_licence"] is True
    assert "needs a licence" in row(answer, "supply: export")[1]


def test_a_licence_is_of_a_country() -> None:
    with pytest.raises(ScenarioError, match="licensed"):
        serve(chips=["h100-sxm"], licensed=True)


def test_each_region_has_its_price_and_two_of_them_a_round_trip_by_hand() -> None:
    answer = serve(chips=["h100-sxm"], regions=["us-east-1", "eu-west-2"], buy=["rent"])
    value, _ = row(answer, "chip-hour in aws-eu-west-2")
    assert value == Quantity(8.944, "usd_per_hour")
    assert (number(answer, "lowest_region_usd_per_hour"), number(answer, "highest_region_usd_per_hour")) == (
        6.88,
        8.944,
    )
    apart = distance_m(CATALOG.region("us-east-1"), CATALOG.region("eu-west-2"))
    assert number(answer, "round_trip_s") == pytest.approx(2 * apart * PATH_RATIO * METRE_S)
    assert number(answer, "chip_usd_per_hour") == pytest.approx((6.88 + 8.944) / 2), "the median of both"


def test_egress_is_of_the_answers_of_a_month_at_the_first_tier() -> None:
    answer = serve(chips=["h100-sxm"], regions=["us-east-1"])
    tokens = number(answer, "month_tokens") * 40 / 340
    text = CATALOG.dataset("llm-text").facts["sample_bytes"].value
    assert number(answer, "egress_usd") == pytest.approx(tokens * text / 1e9 * 0.09)


def test_in_one_region_there_is_no_round_trip_and_where_nobody_asks_no_region() -> None:
    assert "round_trip_s" not in serve(chips=["h100-sxm"], regions=["us-east-1"]).results
    assert "num_regions" not in serve(chips=["h100-sxm"]).results


def test_residency_leaves_out_a_chip_that_nobody_rents_out_there() -> None:
    answer = serve(chips=["h100-sxm", "mi300x"], residency=["japan"], buy=["rent"])
    assert none_of(answer)["mi300x"] == "none: nobody is known to rent it out there"
    assert number(answer, "chip_usd_per_hour") == 8.6


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"regions": ["us-east-1"], "residency": ["japan"]}, "none of aws-us-east-1 is in Japan"),
        ({"residency": ["macau"]}, "no region that is known is in Macau"),
    ],
)
def test_places_that_leave_no_region_are_refused(said: dict[str, Any], why: str) -> None:
    for ask in (lambda: serve(chips=["h100-sxm"], **said), lambda: dh.show_cost(priced="h100-sxm", **said)):
        with pytest.raises(ScenarioError, match=why) as caught:
            ask()
        assert caught.value.field == "residency"
        assert caught.value.hint


def test_a_country_that_all_regions_are_in_says_so() -> None:
    notes = serve(chips=["h100-sxm"], regions=["us-east-1"], residency=["united-states"]).notes
    assert "residency does nothing here: all of the regions are there" in notes


def test_a_limit_that_keeps_all_chips_says_so() -> None:
    notes = serve(chips=["h100-sxm"], without=["samsung"]).notes
    assert "without does nothing here: none of the chips is made there" in notes
    notes = serve(chips=["h100-sxm"], country="germany", licensed=True).notes
    assert "licensed does nothing here: no chip needs a licence for Germany" in notes


def test_a_limit_never_makes_it_cheaper() -> None:
    chips = ["h100-sxm", "a10", "l4"]
    free = number(serve(chips=chips), "month_usd")
    for limit in ({"without": ["samsung"]}, {"without": ["tsmc"]}, {"country": "united-arab-emirates"}):
        assert number(serve(chips=chips, **limit), "month_usd") >= free * (1 - 1e-12)


def test_compare_leaves_chips_out_and_says_why() -> None:
    answer = dh.compare(things=["h100-sxm", "a10", "a40"], without=["tsmc"])
    assert "h100-sxm is left out: TSMC makes it (2026-04)" in answer.notes
    assert not any(name.startswith("h100") for name in answer.results)
    with pytest.raises(InfeasibleError, match="TSMC makes it"):
        dh.compare(things=["h100-sxm", "h200-sxm"], without=["tsmc"])
    with pytest.raises(ScenarioError, match="none are compared"):
        dh.compare(things=["llama-3.1-8b", "llama-3.1-70b"], without=["tsmc"])


def test_build_or_buy_leaves_the_same_chips_out() -> None:
    answer = dh.show_build_or_buy(
        model="llama-3.1-8b", tokens_per_month="2B", chips=["h100-sxm", "a10"], without=["tsmc"]
    )
    assert answer.results["chip"] == "a10"
    assert "h100-sxm is left out: TSMC makes it (2026-04)" in answer.notes


def test_owning_what_is_not_sold_is_a_no_with_its_rent() -> None:
    answer = dh.show_cost(priced="tpu-v5p", own=True)
    assert answer.verdict == "no"
    assert "gcp alone rents it out" in answer.headline
    assert answer.results["chip_usd_per_hour"] == answer.results["rented_usd_per_hour"]
    assert dh.show_cost(priced="tpu-v5p").verdict == "yes"
