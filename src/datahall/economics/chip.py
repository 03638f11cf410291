"""What a chip costs for an hour by every way to have it, and which of them an answer leads with."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.economics.market import cost_usd
from datahall.economics.ways import Way, cheapest, owned_way, ways_of
from datahall.fabric.design.parts import usual_server
from datahall.scenario.buying import chip_ways
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.usual import OWNED_CHIPS
from datahall.units import DAY_S, MONTH_S


class ChipCost(msgspec.Struct, frozen=True, kw_only=True):
    """A chip of so many, every way to have it for an hour, cheapest first."""

    chip: Chip
    num_chips: int
    ways: tuple[Way, ...]
    rented: Way
    owned: Way  # by whoever was asked for
    lead: Way | None  # of the answer; None where nothing is priced
    why_not_owned: str = ""  # where owning was asked for, and nobody sells it

    @property
    def all_usd_per_hour(self) -> float:
        """All of them for an hour, the way the answer leads with."""
        assert self.lead is not None
        return self.lead.usd_per_hour * self.num_chips

    @property
    def day_usd(self) -> float:
        return self._over(DAY_S)

    @property
    def month_usd(self) -> float:
        return self._over(MONTH_S)

    def _over(self, time_s: float) -> float:
        """What all of them cost for some time."""
        assert self.lead is not None
        assert self.lead.hour is not None
        return cost_usd(self.lead.hour, self.num_chips, time_s).value

    @property
    def owned_over_rented_ratio(self) -> float | None:
        """None where one of them is not priced."""
        if self.owned.hour is None or self.rented.hour is None:
            return None
        return self.owned.usd_per_hour / self.rented.usd_per_hour

    @property
    def apart_fraction(self) -> float | None:
        """How far owning is from renting, below or above."""
        ratio = self.owned_over_rented_ratio
        return None if ratio is None else abs(1.0 - ratio)


def chip_cost_of(scenario: Scenario) -> ChipCost:
    """All ways; a job on spot capacity is on all chips that were said, or on one host."""
    asked, catalog = scenario.one(Purchase), scenario.catalog
    chip, said = catalog.chip(asked.priced), scenario.one(FabricDesign).chips
    num = said or OWNED_CHIPS
    job = said or usual_server(catalog, chip).num_host_chips
    found = ways_of(scenario, chip, num, job_chips=job, buy=chip_ways())
    own = scenario.one(Ownership).owner
    others = tuple(
        owned_way(scenario, chip, num, owner=one.name) for one in catalog.owners() if one.name != own
    )
    ways = tuple(sorted((*found, *others), key=lambda way: (not way.is_priced, way.usd_per_hour, way.name)))
    rented = next(way for way in ways if way.buying == "rent")
    owned = next(way for way in found if way.buying == "own")
    first = owned if asked.own else rented
    lead = first if first.hour is not None else cheapest(ways)
    if (
        first.hour is None
        and owned.is_priced
        and (scenario.given("owner") or (lead and lead.buying == "own"))
    ):
        lead = owned  # by whoever was asked for, not by another owner who pays less
    unsold = asked.own and owned.hour is None
    return ChipCost(
        chip=chip,
        num_chips=num,
        ways=ways,
        rented=rented,
        owned=owned,
        lead=(rented if rented.hour is not None else lead) if unsold else lead,
        why_not_owned=owned.why_not if unsold else "",
    )
