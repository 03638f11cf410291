"""What the catalogue knows of sites: grids, buildings, ways to cool, batteries and capacitors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datahall.catalog.entries.site.buffer import Buffer
    from datahall.catalog.entries.site.cooling import Cooling
    from datahall.catalog.entries.site.facility import Facility
    from datahall.catalog.entries.site.grid import Grid
    from datahall.catalog.shelves.shelf import Shelves


class OfSites:
    """The part of a catalogue that is asked for what a site is made of."""

    def grid(self: Shelves, name: str) -> Grid:
        """Return an electricity grid by name or alias."""
        found: Grid = self._entry("grid", name)
        return found

    def grids(self: Shelves) -> tuple[Grid, ...]:
        """Every electricity grid."""
        return tuple(self._all("grid"))

    def facility(self: Shelves, name: str) -> Facility:
        """Return a building by name or alias."""
        found: Facility = self._entry("facility", name)
        return found

    def cooling(self: Shelves, name: str) -> Cooling:
        """Return a way to cool by name or alias."""
        found: Cooling = self._entry("cooling", name)
        return found

    def buffer(self: Shelves, name: str) -> Buffer:
        """Return a battery or capacitor by name or alias."""
        found: Buffer = self._entry("buffer", name)
        return found
