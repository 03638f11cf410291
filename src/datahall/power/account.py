"""A site as an account: its parts, the phases of a step, remedies side by side, racks, grids, energy and carbon."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import msgspec

from datahall.catalog.entries.site.grid import Grid
from datahall.power.assessment import Assessment
from datahall.power.carbon import carbon_figure, carbon_kg, day_of, embodied_kg_per_s
from datahall.power.cooling import AIR, LIQUID, rack_flow, usual_cooling
from datahall.power.rack import Rack
from datahall.power.sections.figure import run_figure
from datahall.power.site import parts_of
from datahall.power.swing.remedy import Remedied
from datahall.power.swing.spectrum import spectrum
from datahall.units import DAY_S

RACKS_W = (10e3, 20e3, 40e3, 80e3, 120e3, 250e3)
REST_HOURS = 8
NUM_GRIDS = 12


class SitePart(NamedTuple):
    """One part of a site."""

    name: str
    provisioned_w: float
    drawn_w: float
    share_fraction: float  # of what is drawn
    chip_w: float  # of it, for one chip


class StepPhase(NamedTuple):
    """What a chip does for some of the step."""

    name: str
    time_s: float
    share_fraction: float
    power_w: float
    energy_j: float


class Smoothed(NamedTuple):
    """A site with one remedy."""

    name: str
    num_units: int
    swing_w: float
    ramp_w_per_s: float
    band_rms_w: float
    more_fraction: float  # energy
    stored_j: float


class RackRow(NamedTuple):
    """What must flow through a rack of some power."""

    power_w: float
    air_m3_per_s: float
    air_m_per_s: float
    liquid_m3_per_s: float
    cooling: str


class GridRow(NamedTuple):
    """The same job on a grid."""

    grid: Grid
    day_kg: float
    rest_fraction: float  # carbon of a kWh that resting in the dirtiest hours saves
    is_estimate: bool


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """What a job takes, and what that emits on its grid; of the run only where its tokens are said."""

    token_j: float
    step_j: float
    day_j: float
    day_kg: float
    embodied_day_kg: float | None  # of boards, over their life
    run_s: float | None = None
    run_j: float | None = None
    run_kg: float | None = None


def site_parts(found: Assessment) -> tuple[SitePart, ...]:
    """Whatever adds up to the site, as it is in its figure: servers, network, …, cooling, and the site they make."""
    plates, taken = ((*parts_of(one), one.named("site")) for one in (found.provisioned, found.drawn))
    whole_w = found.drawn.value
    return tuple(
        SitePart(now.name, plate.value, now.value, now.value / whole_w, now.value / found.num_chips)
        for plate, now in zip(plates, taken, strict=True)
    )


def step_phases(found: Assessment) -> tuple[StepPhase, ...]:
    """The phases of the step in the mean over its chips, and the step."""
    step_s, mean_w = found.timeline.step_s, found.chip.value
    rows = [
        StepPhase(name, time_s, time_s / step_s, found.levels_w[name], found.levels_w[name] * time_s)
        for name, time_s in found.timeline.times_s().items()
    ]
    return (*rows, StepPhase("step", step_s, 1.0, mean_w, mean_w * step_s))


def remedies(found: Assessment) -> tuple[Smoothed, ...]:
    """The site as it is, with each remedy alone, and with those that were asked for."""
    plain = Remedied(name="as it is", trace=found.trace, cost_w=0.0)
    together = (found.as_asked,) if found.is_remedied else ()
    return tuple(
        Smoothed(
            one.name,
            one.num_units,
            one.trace.swing_w,
            one.trace.ramp_w_per_s,
            spectrum(one.trace).band_rms_w,
            one.cost_w / found.trace.mean_w,
            one.stored.energy_j,
        )
        for one in (plain, *found.remedies, *together)
    )


def racks(found: Assessment, mine: Rack) -> tuple[RackRow, ...]:
    """Racks of some densities, that of the site among them."""
    air, liquid = found.catalog.cooling(AIR), found.catalog.cooling(LIQUID)
    rows = []
    for power_w in sorted({*RACKS_W, mine.power_w}):
        blown, pumped = rack_flow(air, power_w), rack_flow(liquid, power_w)
        by = mine.cooling if power_w == mine.power_w else usual_cooling(found.catalog, power_w)
        rows.append(RackRow(power_w, blown.m3_per_s, blown.speed_m_per_s, pumped.m3_per_s, by.title))
    return tuple(rows)


def grids(found: Assessment) -> tuple[GridRow, ...]:
    """The job on its own grid and on others, those whose hours are published first; the cleanest on top."""
    mine = found.grid
    ranked = sorted(found.catalog.grids(), key=lambda one: (one.name != mine.name, not one.hourly_kg_per_j))
    rows = []
    for grid in sorted(ranked[:NUM_GRIDS], key=lambda one: one.carbon_kg_per_j):
        day = day_of(grid, found.catalog)
        rows.append(
            GridRow(
                grid, carbon_kg(found.site_w * DAY_S, grid), day.saved_fraction(REST_HOURS), day.is_estimate
            )
        )
    return tuple(rows)


def compared_grids(found: Assessment) -> tuple[Grid, ...]:
    """The grid of a site, and the one where it matters most at which hours a job rests."""
    known = [one for one in found.catalog.grids() if one.hourly_kg_per_j]
    swinging = max(known, key=lambda one: day_of(one, found.catalog).saved_fraction(REST_HOURS))
    mine = found.grid
    return (mine,) if swinging.name == mine.name else (mine, swinging)


def energy_of(found: Assessment, num_tokens: float | None) -> Energy:
    """Energy and carbon of a token, a step, a day and, of so many tokens, the run."""
    grid, day_j = found.grid, found.site_w * DAY_S
    embodied = embodied_kg_per_s(found.machines.server, found.machines.num_servers) * DAY_S
    known = Energy(
        token_j=found.token_j,
        step_j=found.site_w * found.execution.step_s,
        day_j=day_j,
        day_kg=carbon_kg(day_j, grid),
        embodied_day_kg=embodied if isfinite(embodied) else None,
    )
    if num_tokens is None:
        return known
    run = run_figure(found, num_tokens)
    return msgspec.structs.replace(
        known,
        run_j=run.value,
        run_s=run.at("time of the steps").value,
        run_kg=carbon_figure(run, grid).value,
    )
