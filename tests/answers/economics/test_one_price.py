"""One question, one price: whoever is asked what a chip-hour costs asks the same market, as of the same day."""

from __future__ import annotations

import datetime

import pytest

import datahall as dh
from datahall.answer import Quantity
from datahall.catalog import Catalog
from datahall.catalog.entries.offer import PRICE_KINDS
from datahall.economics.market import market_of
from datahall.scenario.sections.money.purchase import Purchase

CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm")


@pytest.fixture(scope="module")
def compared() -> dict[str, object]:
    return dict(dh.compare(CHIPS).results)


def number(value: object) -> float:
    """A result by its value, whether it has a unit or not."""
    found = value.value if isinstance(value, Quantity) else value
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize("chip", CHIPS)
def test_chips_side_by_side_cost_what_each_costs_alone(chip: str, compared: dict[str, object]) -> None:
    own = dh.show_cost(chip).results["rented_usd_per_hour"]
    assert number(compared[f"{chip.replace('-', '_')}_on_demand_usd_per_hour"]) == number(own)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", PRICE_KINDS)
def test_the_lowest_that_counts_is_the_lowest_everywhere(
    kind: str, chip: str, compared: dict[str, object]
) -> None:
    span = market_of(chip, kind, Purchase(), Catalog(user=False)).span
    listed = dh.catalog_prices(chip=chip, kind=kind).results["lowest_usd_per_hour"]
    if span is None:
        assert listed is None
        return
    side = f"{chip.replace('-', '_')}_lowest_{PRICE_KINDS[kind].key}_usd_per_hour"
    assert span[0] == number(listed) == number(compared[side])


def test_an_auction_and_an_outlier_are_no_lowest_price() -> None:
    """$1.00 is the lowest bid of an auction; AWS's $8.51 of an H200 is far above all others, and alone of its own."""
    found = dh.catalog_prices(chip="h100-sxm", kind="spot")
    assert "$1.00 " not in found.headline
    assert dh.catalog_prices(chip="h100-sxm", kind="auction").results["lowest_usd_per_hour"] == 1.0


@pytest.mark.parametrize(
    "asked",
    [
        lambda: dh.compare(["h100-sxm", "h200-sxm"]),
        lambda: dh.compare(["aws", "lambda"], chip="h100-sxm"),
        lambda: dh.catalog_prices(chip="h100-sxm"),
        lambda: dh.catalog_api_prices("gpt-4o"),
        lambda: dh.show_cost("h100-sxm"),
    ],
    ids=["compare", "clouds", "prices", "api prices", "cost"],
)
def test_an_answer_does_not_change_when_the_clock_moves_by_a_year(
    asked: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(asked)
    now = asked()

    class Later(datetime.date):
        @classmethod
        def today(cls) -> Later:
            return cls(2027, 8, 22)

    monkeypatch.setattr(datetime, "date", Later)
    later = asked()
    assert (later.headline, later.results, later.tables) == (now.headline, now.results, now.tables)


def test_a_day_that_is_said_is_the_day_of_all() -> None:
    """Half a year and more after the newest price none is fresh, whoever is asked."""
    day = "2027-06-01"
    assert dh.catalog_prices(chip="h100-sxm", as_of=day).results["lowest_usd_per_hour"] is None
    assert "stale" in dh.catalog_prices(chip="h100-sxm", as_of=day).headline
    assert not [key for key in dh.compare(CHIPS, as_of=day).results if "on_demand" in key]
    assert "rented_usd_per_hour" not in dh.show_cost("h100-sxm", as_of=day).results
