"""What keeps a chip from being had: who makes it, where it may go, who sells it; and what a price by region is."""

from __future__ import annotations

from math import nan
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.economics.priced import asked

from datahall.answers.ask import form_of
from datahall.breakdown import derived
from datahall.catalog import Catalog
from datahall.economics.market import ELSEWHERE, market_of
from datahall.economics.supply.export import is_unknown, licence_for, performance
from datahall.economics.supply.limits import left_out, why_left_out
from datahall.economics.supply.stand import stand_of
from datahall.economics.ways import owned_way
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase

CATALOG = Catalog(user=False)
CHIPS = CATALOG.chips()


def question(**said: Any) -> Scenario:
    return asked("plan serve", model="llama-3.1-8b", rate=1, **said)


# as NVIDIA's filings of October 2023 and April 2025 name them
NAMED = (
    "a100-sxm-80gb", "a800-sxm-80gb", "h100-sxm", "h800-sxm", "l40", "l40s", "rtx-4090", "h20",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_a_chip_that_its_maker_names_needs_a_licence_for_china(name: str) -> None:
    assert licence_for(CATALOG.chip(name), "china", CATALOG) is not None
    assert why_left_out(question(country="china"), CATALOG.chip(name))
    assert not why_left_out(question(country="china", licensed=True), CATALOG.chip(name))
    assert not why_left_out(question(country="germany"), CATALOG.chip(name))


@pytest.mark.parametrize(
    ("name", "published"), [("mi325x", 20_800), ("h200-sxm", 15_832)]  # Tom's Hardware on the rule of January 2026
)  # fmt: skip
def test_performance_is_as_the_press_has_it(name: str, published: float) -> None:
    assert performance(CATALOG.chip(name)) == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize(
    ("name", "country", "review"),
    [
        ("h200-sxm", "china", "case by case"), ("mi325x", "macau", "case by case"), ("b200-sxm", "china", "denial"),
        ("h200-sxm", "russia", "denial"), ("h100-sxm", "united-arab-emirates", "needs a licence"),
    ],
)  # fmt: skip
def test_an_application_is_looked_at_as_the_rule_says(name: str, country: str, review: str) -> None:
    rule = licence_for(CATALOG.chip(name), country, CATALOG)
    assert rule is not None
    assert rule.review.endswith(review)


def test_more_memory_bandwidth_than_the_rule_of_china_has_is_presumed_to_be_denied() -> None:
    wide = msgspec.structs.replace(CATALOG.chip("h200-sxm"), memory_bytes_per_s=6.6e12)
    rule = licence_for(wide, "china", CATALOG)
    assert rule is not None
    assert rule.review.endswith("denial")


def test_who_has_a_price_to_buy_a_chip_of_a_cloud_may_buy_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[offer.mine]\nsource = { title = "my contract", date = "2026-08" }\nprovider = "google"\nchip = "tpu-v5p"\n'
        'purchase = "20000 USD"\n',
        encoding="utf-8",
    )
    form, catalog = form_of("plan serve"), Catalog([tmp_path], user=False)
    there = read_names(form, {"model": "llama-3.1-8b", "rate": 1, "buy": ["own"]}, catalog)
    chip = catalog.chip("tpu-v5p")
    assert not why_left_out(there, chip)
    assert owned_way(there, chip, 64).owned is not None


def test_an_ally_of_a_group_is_spared_and_so_are_chips_that_come_from_elsewhere() -> None:
    assert licence_for(CATALOG.chip("h100-sxm"), "israel", CATALOG) is None
    assert licence_for(CATALOG.chip("ascend-910c"), "china", CATALOG) is None


def test_what_hangs_on_the_area_of_a_die_is_not_known_and_not_guessed() -> None:
    l4, t4 = CATALOG.chip("l4"), CATALOG.chip("t4")
    assert is_unknown(l4, "china", CATALOG)
    assert not is_unknown(t4, "china", CATALOG)
    assert not is_unknown(l4, "germany", CATALOG)
    assert not why_left_out(question(country="china"), l4)


def test_without_a_foundry_its_chips_go_and_those_of_whom_nothing_is_known() -> None:
    why = left_out(question(without=["tsmc"]), CHIPS)
    made = {
        name
        for one in CATALOG.foundries()
        if one.company == "TSMC" and one.step == "wafers"
        for name in one.chips
    }
    assert made <= why.keys()
    assert "not known" in why["tpu-v5e"]
    assert {"a10", "a40", "rtx-a6000", "groq-lpu"}.isdisjoint(why)
    assert "ascend-910c" in why, "some of its dies"


def test_without_a_package_chips_in_it_go_and_not_all_of_the_company() -> None:
    why = left_out(question(without=["cowos"]), CHIPS)
    assert "h100-sxm" in why
    assert "b200-sxm" not in why, "CoWoS-L is another"
    assert "a40" not in why, "its wafers are of another company"


@pytest.mark.parametrize("name", ["tpu-v5p", "trainium2", "inferentia2"])
def test_a_chip_of_a_cloud_cannot_be_bought_unless_somebody_says_for_how_much(name: str) -> None:
    chip = CATALOG.chip(name)
    assert "alone rents it out" in why_left_out(question(buy=["own"]), chip)
    assert not why_left_out(question(buy=["own"], capex=20_000), chip)
    assert not why_left_out(question(buy=["own", "rent"]), chip)
    way = owned_way(question(buy=["own", "rent"]), chip, 64)
    assert way.hour is None
    assert "not sold" in way.why_not


WITHOUT = st.lists(st.sampled_from(["tsmc", "samsung", "smic", "cowos", "globalfoundries"]), unique=True)
COUNTRIES = st.sampled_from(["china", "israel", "japan", "iran"])


@given(WITHOUT, WITHOUT, st.none() | COUNTRIES)
def test_another_limit_never_brings_a_chip_back(
    some: list[str], more: list[str], country: str | None
) -> None:
    there = {} if country is None else {"country": country}
    few = {"without": some} if some else {}
    both = sorted({*some, *more})
    many = ({"without": both} if both else {}) | there
    assert left_out(question(**few), CHIPS).keys() <= left_out(question(**many), CHIPS).keys()


def test_a_price_of_a_region_is_of_offers_there_and_all_others_are_elsewhere() -> None:
    market = market_of("h100-sxm", "on-demand", Purchase(regions=("aws-us-east-1",)), CATALOG)
    assert [one.offer.region for one in market.counting] == ["aws-us-east-1"]
    assert market.price is not None
    assert market.price.value == 6.88
    others = [one for one in market.listings if one.offer.region != "aws-us-east-1"]
    assert others
    assert all(ELSEWHERE in one.flags for one in others)


def test_what_leaves_a_region_costs_the_price_of_its_bytes_and_nothing_where_nobody_lists_one() -> None:
    leaving = derived("bytes that leave", 5e12, "bytes")

    listed = stand_of(CATALOG.region("aws-us-east-1"), CATALOG.chip("h100-sxm"), leaving, Purchase(), CATALOG)
    assert listed.egress is not None
    assert listed.egress.value == pytest.approx(5_000 * 0.09)
    unlisted = msgspec.structs.replace(CATALOG.region("aws-us-east-1"), egress_usd_per_gb=nan)
    assert stand_of(unlisted, CATALOG.chip("h100-sxm"), leaving, Purchase(), CATALOG).egress is None


def test_countries_stand_for_all_of_their_regions() -> None:
    there = market_of("h100-sxm", "on-demand", Purchase(residency=("japan",)), CATALOG)
    named = market_of("h100-sxm", "on-demand", Purchase(regions=("ap-northeast-1",)), CATALOG)
    assert {one.offer.region for one in there.counting} >= {"aws-ap-northeast-1"}
    assert {CATALOG.region(one.offer.region).country for one in there.counting} == {"japan"}
    assert [one.offer.region for one in named.counting] == ["aws-ap-northeast-1"]


@pytest.mark.parametrize(
    "name", ["aws-h200", "aws-b200", "gcp-tpu-v5p", "gcp-tpu-v5litepod", "aws-l40s", "gcp-h100"]
)
def test_prices_by_region_lie_around_the_price_of_all(name: str) -> None:
    """Both were drawn from the same list by two programs: the price of all is within the span of the regions."""
    whole = next(one for one in CATALOG.offers() if one.name == name)
    there = [
        one.usd_per_hour
        for one in CATALOG.regional_offers(whole.chip)
        if (one.provider, one.gpu) == (whole.provider, whole.gpu)
    ]
    assert min(there) <= whole.usd_per_hour <= max(there)
    assert median(there) == pytest.approx(whole.usd_per_hour, rel=0.15)


def test_an_offer_of_ones_own_counts_in_its_region(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[offer.mine]\nsource = { title = "mine", date = "2026-08-20" }\nprovider = "aws"\nchip = "h100-sxm"\n'
        'price = "1.00 USD/h"\nscope = "instance"\nregion = "us-east-1"\n',
        encoding="utf-8",
    )
    catalog = Catalog([tmp_path], user=False)
    market = market_of("h100-sxm", "on-demand", Purchase(regions=("aws-us-east-1",)), catalog)
    assert {one.offer.name for one in market.counting} == {"mine", "aws-h100-us-east-1"}
    elsewhere = market_of("h100-sxm", "on-demand", Purchase(regions=("aws-us-west-2",)), catalog)
    assert "mine" not in {one.offer.name for one in elsewhere.counting}
