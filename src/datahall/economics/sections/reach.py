"""Users and the regions that could serve them: what another region saves in price, and adds in latency and egress.

saved = chips · hours of a month · (chip-hour here − chip-hour there)
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown, derived, product
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.supply.region import Region
from datahall.economics.market import market_of
from datahall.economics.own import MONTH_HOURS
from datahall.economics.supply.stand import Stand, stand_of
from datahall.economics.supply.users import farthest, users_of, way_to_users
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase

MOST_REGIONS = 6  # that a plan speaks of


class Elsewhere(NamedTuple):
    """A region that all chips could stand in instead."""

    region: Region
    chips: Breakdown  # of a month, on demand, before overheads
    way: Breakdown  # to the users who are farthest away and back
    egress: Breakdown | None  # of answers of a month; None where nobody lists a price


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The way to users from where the chips stand, and the cheapest other regions whose way leaves time enough."""

    users: tuple[str, ...]
    way: Breakdown
    limit_s: float  # to the first token, at the users
    first_token_s: float  # of the service at the percentile
    chips: Breakdown | None  # of a month here, on demand, before overheads; None where nobody lists a price
    others: tuple[Elsewhere, ...]  # cheapest first
    num_too_far: int  # regions where the same chips would break the limit

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        here = () if self.chips is None else (self.chips,)
        return (self.way, *here, *(part for one in self.others for part in (one.chips, one.way)))

    @property
    def left_s(self) -> float:
        """What the way leaves of the limit."""
        return self.limit_s - self.way.value

    @property
    def users_first_token_s(self) -> float:
        """At the users who are farthest away."""
        return self.first_token_s + self.way.value

    def saved_usd(self, other: Elsewhere) -> float | None:
        """What chips of a month cost less there; below 0: more."""
        return None if self.chips is None else self.chips.value - other.chips.value

    def added_s(self, other: Elsewhere) -> float:
        """What the way is longer from there; below 0: shorter."""
        return other.way.value - self.way.value


def reach_of(
    scenario: Scenario, chip: Chip, num_chips: int, limit_s: float, first_token_s: float, leaving: Breakdown
) -> Reach | None:
    """The regions that could serve users; None where nobody says where they are."""
    way, users, asked = way_to_users(scenario), users_of(scenario), scenario.one(Purchase)
    if way is None:
        return None
    catalog = scenario.catalog
    anywhere = msgspec.structs.replace(asked, regions=())
    names = dict.fromkeys(offer.region for offer in catalog.regional_offers(chip.name))
    found, num_too_far = [], 0
    for region in map(catalog.region, names):
        there = farthest(users, (region,))
        if region.name in asked.regions or there is None or not _may(region, asked):
            continue
        if first_token_s + there.value > limit_s:
            num_too_far += 1
            continue
        stand = stand_of(region, chip, leaving, anywhere, catalog)
        chips = _month(stand, num_chips)
        if chips is not None:
            found.append(Elsewhere(region=region, chips=chips, way=there, egress=stand.egress))
    found.sort(key=lambda one: (one.chips.value, one.way.value, one.region.name))
    here = market_of(chip.name, "on-demand", asked, catalog)
    return Reach(
        users=tuple(user.name for user in users),
        way=way,
        limit_s=limit_s,
        first_token_s=first_token_s,
        chips=None if here.price is None else _chips("here", here.price, num_chips),
        others=tuple(found[:MOST_REGIONS]),
        num_too_far=num_too_far,
    )


def _may(region: Region, asked: Purchase) -> bool:
    """Whether chips may stand there at all."""
    return not asked.residency or region.country in asked.residency


def _month(stand: Stand, num_chips: int) -> Breakdown | None:
    return None if stand.hour is None else _chips(f"in {stand.region.name}", stand.hour, num_chips)


def _chips(where: str, hour: Breakdown, num_chips: int) -> Breakdown:
    return product(
        f"chips of a month {where}",
        (
            derived("chips", num_chips, "count"),
            derived("hours of a month", MONTH_HOURS, "count"),
            hour,
        ),
        "usd",
    )
