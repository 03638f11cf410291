"""What a chip costs by the hour: the lowest price of each kind that is not stale, with its date and who asks it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from math import isnan

from datahall.answer import Cell
from datahall.breakdown import Source
from datahall.catalog.entries.offer import Offer

# as a buyer asks for it; an auction's lowest bid and what somebody reports are no prices to plan with
WAYS = {"on-demand": "on_demand", "spot": "spot", "reserved-1y": "reserved_1y", "reserved-3y": "reserved_3y"}
PUBLISHED = "market report", "InferenceX model"  # who tells of prices and rents nothing out


def prices(offers: Iterable[Offer], day: datetime.date) -> tuple[dict[str, Cell], tuple[Source, ...]]:
    """The lowest fresh price of each way to rent, with its date, who asks it, and what an hour holds."""
    fresh = [
        one
        for one in offers
        if one.provider not in PUBLISHED and not one.stale(day) and one.age_s(day) >= 0.0
    ]
    found: dict[str, Cell] = {}
    sources: dict[Source, None] = {}
    for way, name in WAYS.items():
        kind = way if way == "spot" else ""
        asked = [one for one in fresh if one.kind == way or way == "spot"]
        asked = [one for one in asked if one.kind != "auction" and not isnan(one.hourly_usd(kind))]
        lowest = min(asked, key=lambda one: one.hourly_usd(kind), default=None)
        if lowest is None:
            continue
        found[f"{name}_usd_per_hour"] = lowest.hourly_usd(kind)
        where = " ".join(filter(None, (lowest.provider, lowest.region)))
        scope = f", {lowest.scope}" if lowest.scope else ""
        found[f"{name}_offer"] = f"{where}, {lowest.date}{scope}"
        sources[lowest.source] = None
    return found, tuple(sources)
