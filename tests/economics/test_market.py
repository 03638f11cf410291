"""Which prices headline: the median of fresh offers of whole machines, and what keeps the others out."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from datahall.catalog import Catalog
from datahall.economics.hosted import blended, hosted, is_same
from datahall.economics.market import AUCTION, FAR, NO_DISCOUNT, NO_HOST, STALE, market_of
from datahall.scenario.sections.money.hosted import HostedModel
from datahall.scenario.sections.money.purchase import Purchase

CATALOG = Catalog(user=False)


def flags(kind: str = "on-demand", **asked: object) -> dict[str, tuple[str, ...]]:
    market = market_of("h100-sxm", kind, Purchase(**asked), CATALOG)  # type: ignore[arg-type]
    return {one.offer.name: one.flags for one in market.listings}


@pytest.mark.parametrize(
    ("offer", "flag"),
    [("mithril-h100", AUCTION), ("oci-h100", STALE), ("gcp-h100", NO_HOST)],
)
def test_what_does_not_headline_is_listed_with_why(offer: str, flag: str) -> None:
    assert flags()[offer] == (flag,)


def test_a_price_far_outside_the_others_is_listed_as_one() -> None:
    """$8.51 of an H200 beside $2.60 to $4.59.  Of an H100 $7.36 lies within the fences of $1.89 to $4.41."""
    market = market_of("h200-sxm", "on-demand", Purchase(), CATALOG)
    assert {one.offer.name for one in market.listings if one.flags == (FAR,)} == {"aws-h200"}
    assert flags()["aws-h100"] == ()


def test_a_spot_price_without_a_discount_is_none() -> None:
    assert NO_DISCOUNT in flags("spot")["runpod-h100-sxm"]


def test_half_a_year_later_all_prices_are_stale_and_none_headlines() -> None:
    market = market_of("h100-sxm", "on-demand", Purchase(as_of="2027-06-01"), CATALOG)
    assert market.price is None
    assert "stale" in market.why_not


def test_prices_that_were_not_known_yet_do_not_count() -> None:
    assert not flags(as_of="2024-01-01")


def test_one_price_of_ones_own_stands_for_all() -> None:
    price = market_of("h100-sxm", "on-demand", Purchase(price_usd_per_hour=2.0), CATALOG).price
    assert price is not None
    assert (price.value, price.origin) == (2.0, "input")


def test_a_providers_prices_alone() -> None:
    market = market_of("h100-sxm", "on-demand", Purchase(providers=("lambda",)), CATALOG)
    assert [one.offer.provider for one in market.listings] == ["lambda"]


def test_a_chip_that_nobody_lists_is_not_priced_and_not_free() -> None:
    market = market_of("trainium3", "on-demand", Purchase(), CATALOG)
    assert market.price is None
    assert market.why_not == "nobody lists it on demand"


def test_an_offer_of_ones_own_counts(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[offer.mine]\nprovider = "me"\nchip = "trainium3"\nprice = "2 USD/h"\n'
        'source = { title = "a quote", date = "2026-08-01", kind = "datasheet" }\n'
    )
    found = market_of("trainium3", "on-demand", Purchase(), Catalog([tmp_path], user=False)).price
    assert found is not None
    assert found.value == 2.0


DAY = datetime.date(2026, 8, 22)


@pytest.mark.parametrize(
    ("model", "listed", "same"),
    [
        ("llama-3.1-70b", "aws/meta.llama3-1-70b-instruct-v1:0", True),
        ("llama-3.1-70b", "meta-llama/Meta-Llama-3.1-70B-Instruct", True),
        ("llama-3.1-70b", "llama-3.3-70b-instruct", False),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3", True),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3.1", False),
    ],
)
def test_a_host_sells_the_same_model_or_another(model: str, listed: str, same: bool) -> None:
    assert is_same(model, listed) is same


def test_gpt_4o_costs_what_it_is_listed_at_and_half_in_batches() -> None:
    found = hosted(HostedModel(api="gpt-4o"), "", 0.75, DAY, CATALOG)
    assert found is not None
    assert (found.price.input_usd_per_mtok, found.price.output_usd_per_mtok) == (2.5, 10.0)
    assert found.price.cached_usd_per_mtok == 1.25
    batched = blended(found.price, HostedModel(batch_fraction=1.0), 0.75, CATALOG)
    assert batched.value == pytest.approx(found.blended.value / 2)


def test_a_cache_saves_what_it_hits() -> None:
    found = hosted(HostedModel(api="gpt-4o"), "", 1.0, DAY, CATALOG)
    assert found is not None
    half = blended(found.price, HostedModel(cached_fraction=0.5), 1.0, CATALOG)
    assert half.value == pytest.approx(2.5 * 0.5 + 1.25 * 0.5)


def test_a_model_that_nobody_hosts_has_no_price() -> None:
    assert hosted(HostedModel(), "tinyllama-1.1b", 0.5, DAY, CATALOG) is None
