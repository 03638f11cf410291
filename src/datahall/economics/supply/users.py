"""How far users are from the regions that chips stand in.

left of the limit = TTFT limit − round trip of the users who are farthest away
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from datahall.breakdown import Breakdown
from datahall.catalog.entries.supply.region import Region
from datahall.economics.supply.distance import round_trip
from datahall.economics.supply.places import regions_of
from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.traffic import Traffic
from datahall.units import fmt


def farthest(users: Sequence[Region], regions: Iterable[Region]) -> Breakdown | None:
    """The longest round trip between users and regions; None where nobody says where any of the regions is."""
    found = [trip for one in regions for user in users if (trip := round_trip(user, one)) is not None]
    return max(found, key=lambda trip: trip.value, default=None)


def users_of(scenario: Scenario) -> tuple[Region, ...]:
    """The regions that users are near."""
    return tuple(map(scenario.catalog.region, scenario.one(Traffic).users_in))


def way_to_users(scenario: Scenario) -> Breakdown | None:
    """The longest way to users from a region that counts; None where nobody says where users are."""
    users, asked = users_of(scenario), scenario.one(Purchase)
    for one in (*users, *map(scenario.catalog.region, asked.regions)):
        if users and not one.is_placed:
            raise ScenarioError(
                f"nobody says where {one.name} is",
                field="users_in" if one in users else "regions",
                hint="another region near it",
            )
    return farthest(users, regions_of(asked, scenario.catalog)) if users else None


def left_of(limit_s: float, way: Breakdown) -> float:
    """What the way leaves of a limit to the first token [s]."""
    if way.value < limit_s:
        return limit_s - way.value
    raise InfeasibleError(
        f"{way.name} alone takes {fmt(way.value, 's', 3)} of the {fmt(limit_s, 's', 3)} to the first token",
        field="users_in",
        hint=f"regions nearer to them ({option('regions')}), or a longer {option('ttft')}",
    )
