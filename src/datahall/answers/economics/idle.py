"""Terms of ways to buy that do nothing: of a way that nobody prices, whatever is said of it."""

from __future__ import annotations

from collections.abc import Iterable

from datahall.economics.early import TERMS
from datahall.economics.market import is_listed
from datahall.economics.ways import Way
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario

OF_OWNING = tuple(name for name, ways in TERMS.items() if ways == ("own",))
OF_OFFERS = ("provider", "as_of")


def idle_terms(
    scenario: Scenario, chip: str, unpriced: Iterable[Way], more: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Of owning what nobody sells, with `more` that only owning has, and of offers where nobody has one."""
    lines: tuple[str, ...] = ()
    owning = next((way for way in unpriced if way.buying == "own"), None)
    if owning is not None:
        lines += idle_together(scenario, (*OF_OWNING, *more), f"owning is not priced: {owning.why_not}")
    if not is_listed(chip, scenario.catalog):
        lines += idle_together(scenario, OF_OFFERS, f"nobody lists a price of {chip}")
    return lines
