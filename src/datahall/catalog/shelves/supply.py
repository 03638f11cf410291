"""What the catalogue knows of where a chip can be had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datahall.catalog.entries.offer import Offer
    from datahall.catalog.entries.supply.cloud_only import CloudOnly
    from datahall.catalog.entries.supply.country import Country
    from datahall.catalog.entries.supply.foundry import Foundry
    from datahall.catalog.entries.supply.lead_time import LeadTime
    from datahall.catalog.entries.supply.licence import Licence
    from datahall.catalog.entries.supply.region import Region
    from datahall.catalog.shelves.shelf import Shelves

BY_REGION = "offers_by_region.csv"


class OfSupply:
    """The part of a catalogue that is asked who makes a chip, who has it, and what may be sent where."""

    def region(self: Shelves, name: str) -> Region:
        """Return a region of a cloud by name or alias."""
        found: Region = self._entry("region", name)
        return found

    def regions(self: Shelves) -> tuple[Region, ...]:
        """Every region of a cloud."""
        return tuple(self._all("region"))

    def country(self: Shelves, name: str) -> Country:
        """Return a country by name or alias."""
        found: Country = self._entry("country", name)
        return found

    def foundry(self: Shelves, name: str) -> Foundry:
        """Return a maker of wafers or packages by name or alias."""
        found: Foundry = self._entry("foundry", name)
        return found

    def foundries(self: Shelves) -> tuple[Foundry, ...]:
        """Every maker of wafers or packages."""
        return tuple(self._all("foundry"))

    def cloud_only(self: Shelves, chip: str) -> CloudOnly | None:
        """Why a chip is not sold; None where it may be."""
        return next((one for one in self._all("cloud_only") if chip in one.chips), None)

    def lead_times(self: Shelves, chip: str) -> tuple[LeadTime, ...]:
        """What is known of the time to wait for a chip, the newest first."""
        found = [one for one in self._all("lead_time") if chip in one.chips]
        return tuple(sorted(found, key=lambda one: one.source.date, reverse=True))

    def regional_offers(self: Shelves, chip: str) -> tuple[Offer, ...]:
        """The offers of a chip region by region, where whoever makes them says so."""
        return tuple(_by_region(self.folders[0] / BY_REGION).get(self.name_of("chip", chip), ()))

    def licences(self: Shelves) -> tuple[Licence, ...]:
        """Every export rule, in the order of its file."""
        return tuple(self._all("licence"))


@cache
def _by_region(path: Path) -> Mapping[str, Sequence[Offer]]:
    """The rows that ship, by chip; nothing where none do."""
    from datahall.catalog.entries.offer import read_offers

    found: dict[str, list[Offer]] = defaultdict(list)
    for offer in read_offers(path) if path.exists() else ():
        found[offer.chip].append(offer)
    return found
