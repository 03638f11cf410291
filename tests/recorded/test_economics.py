"""The figures of `economics/` and of `planner/buying/` are what they were: see `record.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.recorded.record import check_calls, check_questions, shipped

from datahall.catalog.entries.offer import PRICE_KINDS
from datahall.economics.capex import capex_of
from datahall.economics.market import market_of
from datahall.economics.own import owned_hour, place_of, terms_of
from datahall.economics.scopes import scopes
from datahall.economics.spot import spot_ettr
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.operations.site import Site

TERMS = {
    "usual": Ownership(),
    "hyperscaler": Ownership(owner="hyperscaler"),
    "market": Ownership(depreciation="market", age_s=3e7),
    "said": Ownership(
        capex_usd=40_000.0, interest_fraction=0.05, life_s=1.2e8, residual_fraction=0.2, colo_usd_per_w_month=0.15,
        energy_usd_per_j=2e-8, repair_fraction=0.03, staff_usd_per_month=1e5, used_fraction=0.8,
    ),
}  # fmt: skip


def rented() -> Iterator[tuple[str, object]]:
    for chip in shipped().chips():
        markets = [market_of(chip.name, kind, Purchase(), shipped()) for kind in PRICE_KINDS]
        if any(one.listings for one in markets):
            found = [(one.price and one.price.value, one.span, one.date, one.why_not) for one in markets]
            listed = [(one.usd_per_hour, one.flags) for market in markets for one in market.listings]
            yield f"market of {chip.name}", [found, listed]


def owned() -> Iterator[tuple[str, object]]:
    for name in ("h100-sxm", "mi300x", "b200-sxm", "gb200", "a100-sxm-80gb"):
        chip = shipped().chip(name)
        for num in (8, 1024, 16_384):
            price = capex_of(chip, num, shipped())
            parts = None if price is None else [(one.name, one.value) for one in price.parts]
            yield (
                f"price of {num} {name}",
                None if price is None else [price.price.value, parts, price.missing],
            )
            for terms, asked in TERMS.items():
                capex = capex_of(chip, num, shipped(), asked.capex_usd)
                place = place_of(chip, num, asked, Site(), shipped())
                if capex is None or place is None:
                    continue
                hour = owned_hour(
                    chip, num, capex, terms_of(asked, shipped()), place, shipped(), span_years=1.5
                )
                rows = [(one.name, one.value) for _, one in hour.hour.walk()]
                yield f"{num} {name}, {terms}", [rows, [one.figure.value for one in scopes(hour, shipped())]]


def calls() -> Iterator[tuple[str, object]]:
    yield from rented()
    yield from owned()
    for blocking_s in (0.0, 5.0, 300.0):
        kept = [spot_ettr(num, 21_600.0, 480.0, blocking_s) for num in (1, 4, 64, 1024)]
        yield f"spot, {blocking_s} s for a checkpoint", kept


def test_figures_of_calls(update: bool) -> None:
    check_calls("economics", calls(), update)


def test_figures_of_questions(update: bool) -> None:
    check_questions("economics", update)
