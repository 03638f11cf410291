"""The pictures of a site: its power through a step, the spectrum of that, its parts, and its grid's day."""

from __future__ import annotations

from datahall.answer import Axis, LineChart, Mark, Series, StackChart
from datahall.answers.power.words import RISKY_BAND
from datahall.catalog.entries.site.grid import HOURS
from datahall.power.account import compared_grids, site_parts
from datahall.power.assessment import Assessment
from datahall.power.carbon import day_of
from datahall.power.picture import drawn_lines, drawn_spectrum, stop_lines
from datahall.power.swing.remedies import REMEDIES
from datahall.power.swing.spectrum import RISKY_HZ
from datahall.units import fmt


def power_chart(found: Assessment) -> LineChart:
    """Two steps as they are and with a remedy."""
    named = {"as it is": found.trace}
    if found.is_remedied:
        named["as asked"] = found.as_asked.trace
    else:
        both = zip(REMEDIES, found.remedies, strict=True)
        named |= {remedy.drawn: one.trace for remedy, one in both if remedy.drawn}
    return LineChart(
        title="power of the site through two steps",
        x=Axis("time", "s"),
        y=Axis("power", "w"),
        series=tuple(Series(name, *drawn_lines(trace)) for name, trace in named.items()),
    )


def spectrum_chart(found: Assessment) -> LineChart:
    """Amplitudes by frequency, and the band that grids resonate in."""
    low_hz, high_hz = RISKY_HZ
    return LineChart(
        title=f"the swing by frequency; grids and turbines resonate {RISKY_BAND}",
        x=Axis("frequency", "hz", log=True),
        y=Axis("amplitude", "w", log=True),
        series=(Series("as it is", *drawn_spectrum(found.trace)),),
        marks=(Mark(fmt(low_hz, "hz"), low_hz), Mark(fmt(high_hz, "hz"), high_hz)),
    )


def stop_chart(found: Assessment) -> LineChart:
    """The job stopping, and the grid at its ramp."""
    load, grid = stop_lines(found.site_w, found.stop.after_w, found.stop.ramp_s)
    return LineChart(
        title=f"when the job stops; between the lines {fmt(found.stop.need.energy_j, 'j', 3)} to be stored",
        x=Axis("time", "s"),
        y=Axis("power", "w"),
        series=(Series("the site", *load), Series("the grid, at its ramp", *grid)),
    )


def parts_chart(found: Assessment) -> StackChart:
    """Where the power goes, by nameplate and as it is drawn."""
    return StackChart(
        title="power of the site by part",
        unit="w",
        rows=("provisioned", "drawn"),
        parts={one.name: (one.provisioned_w, one.drawn_w) for one in site_parts(found)[:-1]},
    )


def hours_chart(found: Assessment) -> LineChart:
    """Carbon through the day of its grid, and of the one whose hours differ most."""
    hours = tuple(float(hour) for hour in range(HOURS))
    return LineChart(
        title="carbon of a kWh through a day",
        x=Axis("hour of the day", "count"),
        y=Axis("carbon", "kg_per_j"),
        series=tuple(
            Series(grid.title, hours, day_of(grid, found.catalog).hours_kg_per_j)
            for grid in compared_grids(found)
        ),
    )
