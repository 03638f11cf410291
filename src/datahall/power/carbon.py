"""The carbon of what a site draws, and what moving the load to other hours or another place saves.

    operational = energy · intensity of the grid             embodied = carbon of manufacture · time / life

Where the hours of a grid are not published, they are the mean shape of the grids whose hours are, and marked as such.
"""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

from datahall.breakdown import Breakdown, again, fact, product
from datahall.catalog import Catalog
from datahall.catalog.entries.server import Server
from datahall.catalog.entries.site.grid import HOURS, Grid
from datahall.units import DAY_S

LIFE_YEARS = 5  # over which what was made is written off
LIFE_S = LIFE_YEARS * 365.0 * DAY_S


class Day(NamedTuple):
    """Carbon through a day, in local standard time from midnight."""

    hours_kg_per_j: tuple[float, ...]
    is_estimate: bool

    @property
    def mean_kg_per_j(self) -> float:
        return fmean(self.hours_kg_per_j)

    def paused_kg_per_j(self, num_hours: int) -> float:
        """Mean of the hours that are left when a job rests in the dirtiest ones."""
        return fmean(sorted(self.hours_kg_per_j)[: HOURS - num_hours])

    def saved_fraction(self, num_hours: int) -> float:
        """Carbon of a kWh that resting in the dirtiest hours saves."""
        return 1.0 - self.paused_kg_per_j(num_hours) / self.mean_kg_per_j

    def cleanest_hours(self, num_hours: int) -> tuple[int, ...]:
        """The hours with the least carbon, in order of the day."""
        ranked = sorted(range(HOURS), key=self.hours_kg_per_j.__getitem__)
        return tuple(sorted(ranked[:num_hours]))


def day_of(grid: Grid, catalog: Catalog) -> Day:
    """The day of a grid as it was published, or the mean shape of the others around its own mean."""
    if grid.hourly_kg_per_j:
        return Day(grid.hourly_kg_per_j, is_estimate=False)
    known = [one for one in catalog.grids() if one.hourly_kg_per_j]
    shape = (fmean(one.hourly_kg_per_j[hour] / one.carbon_kg_per_j for one in known) for hour in range(HOURS))
    return Day(tuple(grid.carbon_kg_per_j * ratio for ratio in shape), is_estimate=True)


def carbon_kg(energy_j: float, grid: Grid) -> float:
    """Carbon of some energy, in the mean of a year [kg].

    Llama 3.1 405B took 30.84 million GPU-hours at 700 W; its model card says 8,930 t, at the mean of its grids.
    """
    return energy_j * grid.carbon_kg_per_j


def embodied_kg_per_s(server: Server, num_servers: int) -> float:
    """Carbon of manufacture, written off over a server's life [kg/s]; NaN where nobody published it."""
    return num_servers * server.embodied_kg / LIFE_S


def carbon_figure(energy: Breakdown, grid: Grid) -> Breakdown:
    """Carbon of some energy, in the mean of a year."""
    known = grid.facts["carbon_kg_per_j"]
    each = fact(f"carbon in {grid.title}", known.value, known.unit, known.source, note=known.note)
    return product(f"carbon of the {energy.name}", (again(energy), each), "kg")
