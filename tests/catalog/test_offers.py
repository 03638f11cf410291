"""What chips cost: mapped to the catalogue, dated, and old prices called old."""

from __future__ import annotations

import math
from datetime import date

import pytest

from datahall.catalog import Catalog
from datahall.catalog.entries.api_price import api_price, api_prices
from datahall.catalog.entries.offer import OFFER_KINDS
from datahall.errors import UnknownNameError

TODAY = date(2026, 11, 15)


def test_every_offer_has_a_price_a_date_and_a_source(catalog: Catalog) -> None:
    offers = catalog.offers()
    assert len(offers) > 200
    for offer in offers:
        assert math.isfinite(offer.usd_per_hour) or math.isfinite(offer.purchase_usd), offer.name
        assert offer.source.title
        assert offer.kind in OFFER_KINDS, offer.name
        assert 0 <= offer.age_days(TODAY) < 10 * 365, offer.name


def test_an_offer_names_a_chip_of_the_catalogue_or_none(catalog: Catalog) -> None:
    unknown = [offer.gpu for offer in catalog.offers() if not offer.chip]
    assert sorted(unknown) == ["1 GW AI campus", "Gaudi HL-205", "Inferentia"]
    for offer in catalog.offers():
        assert not offer.chip or catalog.chip(offer.chip).name == offer.chip


def test_only_the_newest_price_of_an_offer_is_kept(catalog: Catalog) -> None:
    kept = [(offer.provider, offer.gpu, offer.kind, offer.basis) for offer in catalog.offers()]
    assert len(kept) == len(set(kept))
    assert catalog.offers("h100", "reserved-1y")[0].usd_per_hour == 2.35


def test_offers_of_a_chip_come_cheapest_first(catalog: Catalog) -> None:
    offers = catalog.offers("H100", "on-demand")
    prices = [offer.usd_per_hour for offer in offers]
    assert prices == sorted(prices)
    assert {offer.chip for offer in offers} == {"h100-sxm"}
    assert {"lambda-h100", "aws-h100"} <= {offer.name for offer in offers}


def test_a_spot_price_is_not_above_the_on_demand_price(catalog: Catalog) -> None:
    for offer in catalog.offers():
        if math.isfinite(offer.spot_usd_per_hour):
            assert offer.spot_usd_per_hour <= offer.usd_per_hour, offer.name


def test_an_auction_floor_is_not_an_on_demand_price(catalog: Catalog) -> None:
    assert {offer.provider for offer in catalog.offers(kind="auction")} == {"mithril"}
    assert min(offer.usd_per_hour for offer in catalog.offers(kind="on-demand")) > 0.05


def test_a_price_goes_stale_after_half_a_year(catalog: Catalog) -> None:
    offer = catalog.offers("h100", "on-demand")[0]
    fresh = next(offer for offer in catalog.offers() if offer.date == "2026-08-22")
    assert fresh.age_days(TODAY) == 85
    assert not fresh.stale(TODAY)
    assert offer.date == "2025-09-11"
    assert offer.stale(TODAY)


def test_the_spot_market_is_everybody_with_a_spot_price_cheapest_first(catalog: Catalog) -> None:
    offers = catalog.offers("h100", "spot")
    prices = [offer.hourly_usd("spot") for offer in offers]
    assert prices == sorted(prices)
    listed = catalog.offers("h100")
    assert set(prices) == {
        price
        for one in listed
        for price in ((one.usd_per_hour if one.kind == "spot" else one.spot_usd_per_hour),)
        if math.isfinite(price)
    }
    assert any(offer.kind == "on-demand" for offer in offers)
    assert all(one.hourly_usd() is one.usd_per_hour for one in listed)


def test_a_price_for_many_chips_is_that_of_one_times_their_number(catalog: Catalog) -> None:
    several = [one for one in catalog.offers(kind="purchase") if one.num_chips > 1]
    assert several
    for offer in several:
        assert offer.chip_purchase_usd * offer.num_chips == pytest.approx(offer.purchase_usd)
        assert offer.age_s(TODAY) == 86_400 * offer.age_days(TODAY)


def test_api_prices_come_per_million_tokens() -> None:
    price = api_price("gpt-4o", TODAY)
    assert (price.provider, price.input_usd_per_mtok, price.output_usd_per_mtok) == ("openai", 2.5, 10.0)
    assert price.cached_usd_per_mtok == 1.25


def test_api_prices_cover_many_providers() -> None:
    prices = api_prices(TODAY)
    assert len({price.provider for price in prices}) > 20
    assert all(price.input_usd_per_mtok >= 0 for price in prices)


def test_a_model_can_be_asked_for_at_one_provider() -> None:
    prices = api_prices(TODAY)
    reseller = next(price for price in prices if price.provider == "openrouter")
    assert api_price(reseller.model, TODAY, provider="openrouter") == reseller
    assert api_price(reseller.name, TODAY) == reseller


def test_an_unpriced_model_names_near_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        api_price("gpt-4oo", TODAY)
    assert "gpt-4o" in caught.value.nearest
