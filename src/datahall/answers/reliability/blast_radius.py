"""What one failed part of a fabric takes down, how often and for how long, and the spares that makes up for it."""

from __future__ import annotations

from datahall.answer import (
    Answer,
    Axis,
    Cell,
    Column,
    LineChart,
    Point,
    Quantity,
    Series,
    StackChart,
    Table,
)
from datahall.answers.follow import explained, follow, our_error
from datahall.cluster.used import used_by_design
from datahall.counted import counted
from datahall.fabric.design.asked import design_for
from datahall.reliability.blast.assess import Assessed, assess, by_size, check_hosts
from datahall.reliability.blast.part import CHIP_HOURS, Part
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.units import fmt, short

OTHER_PRESETS = ("rsc-1", "llama-3")  # to ask the same with
SEEN = 0.01  # of a row: what overlaps less is not spoken of


def show_blast_radius(scenario: Scenario) -> Answer:
    """Every part of a fabric that fails: the chips it takes, how often, for how long, and what that adds up to."""
    asked, rates = scenario.one(FabricDesign), scenario.one(FailureRates)
    made = design_for(asked, scenario.catalog, num_chips=asked.chips or 0, least_domains=1)
    check_hosts(asked, made)
    found = assess(made, rates, scenario.catalog)
    return Answer(
        kind="blast-radius",
        inputs={**used_by_design(scenario, asked.topology, made), "like": found.process.preset.name},
        headline=_headline(found),
        binding=_binding(found),
        results=_results(found),
        tables=tuple(table for table in (_parts(found), _spares(found, rates), _slices(found)) if table.rows),
        figure=found.lost,
        charts=(_chart(found), _curve(found)),
        notes=(*made.notes, *_notes(scenario, found)),
        next_commands=_next(scenario, found),
    )


def _headline(found: Assessed) -> str:
    worst, made = found.costliest, found.made
    return (
        f"Failures take {fmt(found.lost_fraction, 'fraction')} of {made.counts.num_hosts:,} × {made.parts.chip.title}, "
        f"{short(found.lost.value)} chip-hours a month, and the {worst.name} the most of them, "
        f"{short(worst.lost.value)}: {_times(worst)} a year one fails and {_does(worst)} for "
        f"{fmt(worst.out.value, 's', 3)}. "
        f"A job on every chip meets a failure every {fmt(found.mttf_s, 's', 3)}."
    )


def _does(part: Part) -> str:
    if part.num_lost or not part.num_slowed:
        return f"takes {counted(part.num_lost, 'chip')}"
    return f"slows {counted(part.num_slowed, 'chip')}"


def _times(part: Part) -> str:
    return f"{short(part.failures_per_year)} times"


def _binding(found: Assessed) -> str:
    widest = found.widest
    scale = "At this size it is minutes between two failures, not hours. " if found.is_minutes else ""
    if widest == found.costliest:
        return f"{scale}No other part takes more chips at once: the repair of the {widest.name} binds."
    return (
        f"{scale}The widest blast is that of the {widest.name}: {counted(widest.num_lost, 'chip')} at once for "
        f"{fmt(widest.out.value, 's', 3)}, {_times(widest)} a year."
    )


def _results(found: Assessed) -> dict[str, Cell]:
    band = found.lost.band
    return {
        "num_chips": found.made.counts.num_hosts,
        "num_nodes": found.process.num_nodes,
        "rate_per_node_day": found.process.rate_per_node_day,
        "mttf_s": found.mttf_s,
        "lost_chip_hours_per_month": Quantity(
            found.lost.value, CHIP_HOURS, band.low if band else None, band.high if band else None
        ),
        "lost_fraction": found.lost_fraction,
        "costliest": found.costliest.name,
        "costliest_chip_hours_per_month": found.costliest.lost.value,
        "costliest_failures_per_year": found.costliest.failures_per_year,
        "num_costliest_chips": found.costliest.num_lost,
        "costliest_out_s": found.costliest.out.value,
        "widest": found.widest.name,
        "num_widest_chips": found.widest.num_lost,
        "widest_out_s": found.widest.out.value,
        "widest_failures_per_year": found.widest.failures_per_year,
        "num_spares": found.spares.num,
        "num_nodes_away": found.spares.away_mean,
    }


def _parts(found: Assessed) -> Table:
    columns = (
        Column("part"), Column("number", "count"), Column("chips lost", "count"), Column("chips slowed", "count"),
        Column("fail in a year", "count"), Column("out for", "s"), Column("chip-hours a month", "count"),
    )  # fmt: skip
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            part.name, part.num, part.num_lost, part.num_slowed or None, Quantity(part.failures_per_year, "count"),
            part.out.value, Quantity(part.lost.value, "count"),
        )
        for part in found.parts
    )  # fmt: skip
    marked = found.parts.index(found.costliest)
    return Table(
        title="what one failure takes", columns=columns, rows=rows, marked=marked, note=_around(found)
    )


def _around(found: Assessed) -> str:
    lines = []
    if found.overlap_fraction > SEEN:
        twice = fmt(found.overlap_fraction, "fraction", 2)
        lines.append(f"chip-hours that two outages take count once, which takes {twice} off each row")
    ways = dict.fromkeys(part.reroute_s for part in found.parts if part.reroute_s)
    if ways:
        times = " or ".join(fmt(way, "s") for way in ways)
        lines.append(
            f"around parts that only slow chips traffic finds its way in {times}; slowed until they are repaired"
        )
    return "; ".join(lines)


def _spares(found: Assessed, rates: FailureRates) -> Table:
    spares = found.spares
    return Table(
        title="spares",
        columns=(
            Column("nodes", "count"), Column("chips of a node", "count"), Column("away for repair", "count"),
            Column("suffice for", "fraction"), Column("spares", "count"), Column("of the nodes", "fraction"),
        ),
        rows=(
            (
                found.process.num_nodes, found.process.num_node_chips, Quantity(spares.away_mean, "count"),
                rates.enough_fraction, spares.num, found.spare_fraction,
            ),
        ),
        note="nodes away are Poisson whatever the spread of repairs; what takes a rack takes all its nodes at once",
    )  # fmt: skip


def _slices(found: Assessed) -> Table:
    return Table(
        title="slices of any healthy cubes",
        columns=(
            Column("cubes of a job", "count"), Column("of", "count"), Column("can be had", "fraction"),
            Column("waits after a failure", "s"),
        ),
        rows=tuple((one.num_needed, one.num_cubes, one.enough_fraction, one.wait_s) for one in found.slices),
        note="an optical circuit switch turns to another cube; without one to spare the job waits for the repair",
    )  # fmt: skip


def _chart(found: Assessed) -> StackChart:
    return StackChart(
        title="chip-hours lost in a month, by part",
        unit=CHIP_HOURS,
        rows=tuple(part.name for part in found.parts),
        parts={"lost": tuple(part.lost.value for part in found.parts)},
    )


def _curve(found: Assessed) -> LineChart:
    curve = by_size(found)
    return LineChart(
        title="time between failures over the size of a job",
        x=Axis("chips", "count", log=True),
        y=Axis("mean time to failure", "s", log=True),
        series=(Series(found.process.preset.name, tuple(map(float, curve.num_chips)), curve.mttf_s),),
        points=(
            Point(
                "all chips", float(found.made.counts.num_hosts), found.mttf_s, note=fmt(found.mttf_s, "s", 3)
            ),
        ),
    )


def _notes(scenario: Scenario, found: Assessed) -> tuple[str, ...]:
    catalog, preset = scenario.catalog, found.process.preset
    blameless = fmt(found.without_part_fraction, "fraction")
    titles = " or ".join(one.title for one in found.blameless)
    rest = f"; {blameless} of them, by {titles}, take no part" if found.blameless else ""
    lines = [f"rates of {preset.title}, which count interruptions of jobs by cause{rest}"]
    if found.without_row:
        names = ", ".join(one.name for one in found.without_row)
        share = fmt(found.without_row_fraction, "fraction")
        lines.append(
            f"{share} of them blame parts of a network that are not counted here, and stand in no row: {names}"
        )
    if preset.causes_of:
        lines.append(f"its causes are split as those of {catalog.failure_preset(preset.causes_of).title}")
    process, theirs = found.process, fmt(found.lemon_failures_fraction, "fraction")
    lines.append(
        f"{fmt(process.lemon_fraction, 'fraction')} of nodes fail {short(process.lemon_ratio)} times as often as "
        f"others, which makes {theirs} of failures theirs: find them and leave them out"
    )
    if found.is_stated and found.has_counted_parts:
        lines.append(
            "the rate that was stated is of nodes; cables and switches fail as often as was counted of them"
        )
    if found.stops_all:
        lines.append(
            "chips are wired to their neighbours alone: a hole that nothing closes stops all of them until the repair, "
            "where optical circuit switches put another cube in its place"
        )
    if found.leaves_out_domain_links:
        lines.append(
            f"chips of a domain of {found.made.parts.num_domain} are wired to each other: how often such a cable fails "
            "nobody published, and it is no part here"
        )
    if any(part.num_slowed for part in found.parts):
        lines.append(
            "slowed chips count by the bandwidth they lack; a synchronous job waits for the slowest of them"
        )
    if found.process.num_rack_nodes > 1:
        swap = fmt(catalog.component("compute-tray").repair_mean_s, "s")
        lines.append(f"a tray is out until it is repaired; swapped for a spare one it is {swap}")
    return tuple(lines)


def _next(scenario: Scenario, found: Assessed) -> tuple[str, ...]:
    other = next(name for name in OTHER_PRESETS if name != found.process.preset.name)
    return (
        explained(follow(scenario)),
        follow(scenario, changes={"failures_like": other}),
        our_error(scenario, "reliability"),
    )
