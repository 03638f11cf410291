"""Terms of money that do nothing: of a way to buy that nobody prices, and of a cache that has no price."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from datahall.catalog.entries.api_price import ApiPrice
from datahall.economics.market import is_listed
from datahall.economics.ways import Way
from datahall.scenario.buying import BUYING_ROWS
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario

OF_OFFERS = ("provider", "as_of")


def idle_terms(
    scenario: Scenario, chip: str, unpriced: Iterable[Way], more: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Of owning what nobody sells, with `more` that only owning has, and of offers where nobody has one."""
    lines: tuple[str, ...] = ()
    owning = next((way for way in unpriced if way.buying == "own"), None)
    if owning is not None:
        lines += idle_together(
            scenario, (*BUYING_ROWS["own"].terms, *more), f"owning is not priced: {owning.why_not}"
        )
    if not is_listed(chip, scenario.catalog):
        lines += idle_together(scenario, OF_OFFERS, f"nobody lists a price of {chip}")
    return lines


def idle_cached(scenario: Scenario, price: ApiPrice) -> tuple[str, ...]:
    """A share that is found in a cache, where the host lists one price of input."""
    if not isnan(price.cached_usd_per_mtok):
        return ()
    return idle_together(scenario, ("cached",), f"{price.name} lists no price of cached input")
