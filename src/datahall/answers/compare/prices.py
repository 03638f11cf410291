"""What a chip costs by the hour in every kind of price: what stands for all that count, and the lowest of them."""

from __future__ import annotations

from datahall.answer import Cell
from datahall.breakdown import Source
from datahall.catalog import Catalog
from datahall.catalog.entries.offer import PRICE_KINDS, Offer
from datahall.counted import counted
from datahall.economics.market import market_of
from datahall.scenario.sections.money.purchase import Purchase


def prices(chip: str, asked: Purchase, catalog: Catalog) -> tuple[dict[str, Cell], tuple[Source, ...]]:
    """The price of each kind with how many offers it stands for, and the lowest with its date and who asks it."""
    found: dict[str, Cell] = {}
    sources: dict[Source, None] = {}
    for kind in PRICE_KINDS.values():
        market = market_of(chip, kind.word, asked, catalog)
        if market.price is None:
            continue
        lowest = market.counting[0]
        found |= {
            f"{kind.key}_usd_per_hour": market.price.value,
            f"{kind.key}_offers": f"{counted(len(market.counting), 'offer')}, newest {market.date}",
            f"lowest_{kind.key}_usd_per_hour": lowest.usd_per_hour,
            f"lowest_{kind.key}_offer": _who(lowest.offer),
        }
        sources |= dict.fromkeys((*market.price.citations(), lowest.offer.source))
    return found, tuple(sources)


def _who(offer: Offer) -> str:
    """Who asks a price, of which day it is, and what an hour holds."""
    where = " ".join(filter(None, (offer.provider, offer.region)))
    return ", ".join(filter(None, (where, offer.date, offer.scope)))
