"""The tables of a site: its parts, the phases of a step, remedies, events, cooling and grids."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from datahall.answer import Column, Quantity, Table
from datahall.answers.power.words import RISKY_SPAN
from datahall.power.account import REST_HOURS, grids, racks, remedies, site_parts, step_phases
from datahall.power.assessment import Assessment
from datahall.power.cooling import AIR, LIQUID
from datahall.power.rack import Rack
from datahall.power.swing.remedies import REMEDIES
from datahall.units import fmt


def parts_table(found: Assessment) -> Table:
    """What stands between a chip and the grid, by nameplate and as it is drawn."""
    return Table(
        title="parts of the site",
        columns=(
            Column("part"),
            Column("provisioned", "w"),
            Column("drawn", "w"),
            Column("share", "fraction"),
            Column("drawn per chip", "w"),
        ),
        rows=site_parts(found),
        note="provisioned: what nameplates add up to, which a site is built and connected for; drawn: the mean of a "
        f"step, {fmt(found.as_asked.trace.peak_w, 'w', 3)} at its peak",
    )


def phases_table(found: Assessment) -> Table:
    """What a chip does in a step, and draws meanwhile."""
    return Table(
        title="phases of the step",
        columns=(
            Column("phase"),
            Column("time", "s"),
            Column("share", "fraction"),
            Column("power of a chip", "w"),
            Column("energy of a chip", "j"),
        ),
        rows=step_phases(found),
        note="times in the mean over all stages; exchange inside layers, and waiting for parameters that move "
        "beside them, is part of forward and backward",
    )


def remedies_table(found: Assessment) -> Table:
    """Each remedy alone, and those that were asked for together."""
    rows = remedies(found)
    return Table(
        title="remedies, each alone",
        columns=(
            Column("remedy"),
            Column("units", "count"),
            Column("swing", "w"),
            Column("fastest ramp", "w_per_s"),
            Column(f"{RISKY_SPAN}, RMS", "w"),
            Column("more energy", "fraction"),
            Column("stored", "j"),
        ),
        rows=tuple((*one[:1], one.num_units or None, *one[2:6], one.stored_j or None) for one in rows),
        marked=len(rows) - 1 if found.is_remedied else 0,
        note="; ".join(
            (*_sizes(found), "the others as many as even the step out, unless said"),
        ),
    )


def _sizes(found: Assessment) -> Iterator[str]:
    for remedy, size in zip(REMEDIES, found.remedy_sizes, strict=True):
        if remedy.said:
            yield remedy.said.format(fmt(size, remedy.unit, 3))


def events_table(found: Assessment) -> Table:
    """All chips stopping at once, and what a battery must hold so that the grid may follow at its ramp."""
    return Table(
        title="when all chips leave the step at once",
        columns=(
            Column("event"),
            Column("falls by", "w"),
            Column("to", "w"),
            Column("energy to hold the ramp", "j"),
            Column("ramp takes", "s"),
            Column(f"{found.battery.unit}s", "count"),
        ),
        rows=tuple(
            (one.name, one.change_w, one.after_w, one.need.energy_j, one.ramp_s, one.num_batteries)
            for one in found.events
        ),
        note=f"ramp of {fmt(found.ramp_w_per_min, 'w', 3)} a minute; {found.battery.title}, "
        "with its depth of discharge and losses",
    )


def cooling_table(found: Assessment, rack: Rack) -> Table:
    """What has to flow through racks of some densities, this one marked."""
    air, liquid = found.catalog.cooling(AIR), found.catalog.cooling(LIQUID)
    rows = racks(found, rack)
    return Table(
        title="cooling by rack",
        columns=(
            Column("rack"),
            Column(f"air at {fmt(air.rise_kelvin, 'kelvin')}", "m3_per_s", "air_m3_per_s"),
            Column("through its door, m/s", "count", "air_m_per_s"),
            Column(f"water at {fmt(liquid.rise_kelvin, 'kelvin')}", "m3_per_s", "water_m3_per_s"),
            Column("cooled by"),
        ),
        rows=tuple((Quantity(one.power_w, "w"), *one[1:]) for one in rows),
        marked=[one.power_w for one in rows].index(rack.power_w),
        note=f"air stops at about {fmt(air.rack_limit_w, 'w')} a rack",
    )


def grids_table(found: Assessment) -> Table:
    """The same job elsewhere, and resting in the dirtiest hours."""
    rows = grids(found)
    return Table(
        title="grids",
        columns=(
            Column("grid"),
            Column("carbon", "kg_per_j"),
            Column("carbon of a day", "kg"),
            Column("price", "usd_per_j"),
            Column(f"resting {REST_HOURS} h saves", "fraction"),
            Column("hours of a day"),
        ),
        rows=tuple(
            (
                one.grid.title,
                one.grid.carbon_kg_per_j,
                one.day_kg,
                None if isnan(one.grid.price_usd_per_j) else one.grid.price_usd_per_j,
                one.rest_fraction,
                "a usual shape" if one.is_estimate else "published",
            )
            for one in rows
        ),
        marked=[one.grid for one in rows].index(found.grid),
        note=f"resting: of the carbon of a kWh, in the {REST_HOURS} dirtiest hours of a day",
    )
