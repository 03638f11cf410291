"""Tables of fabrics: their parts, their reach, what a failure takes, and several of them side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.answer import Cell, Column, Quantity, Table
from datahall.breakdown import Source
from datahall.catalog import Catalog
from datahall.fabric.design.availability import at_least, unit_availability
from datahall.fabric.design.bill import Bill, has_circuit_switches
from datahall.fabric.design.design import Design
from datahall.fabric.flows.failures import BlastRadius, Outage, blast_radius
from datahall.fabric.topology.graph import SCALE_UP_TIER
from datahall.fabric.topology.tpu_pod import CUBE_CHIPS, crosses_cubes
from datahall.units import fmt

HOST_AVAILABILITY = 0.999
_LARGEST_COUNT = 1e9


class Failures(NamedTuple):
    """The table of failures and the sources of its times."""

    table: Table
    sources: tuple[Source, ...]


def made_of(cost: Bill, chips: int) -> Table:
    """The bill, an item a row."""
    columns = (
        Column("part"), Column("number", "count"), Column("what"), Column("modules", "count"),
        Column("power", "w"), Column("price", "usd"), Column("per chip", "usd"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            item.name, item.num, item.part.title, item.num_modules or None, item.power_w or None,
            item.price_usd, item.price_usd / chips,
        )
        for item in cost.items
    ]  # fmt: skip
    if len(rows) > 1:
        total = cost.price.value
        rows.append(("all", None, "", cost.num_modules or None, cost.power.value, total, total / chips))
    return Table(title="made of", columns=columns, rows=tuple(rows))


def reach(made: Design) -> Table:
    """How wide and how far it is."""
    found = made.counts
    each = Quantity(made.all_to_all_bytes_per_s, "bytes_per_s")
    full = Quantity(found.full_bisection_fraction, "fraction")
    values: list[tuple[str, Cell, str]] = [
        ("bisection, cables", Quantity(found.num_bisection_links, "count"), "cut where it is narrowest"),
        ("bisection, one way", Quantity(found.bisection_bytes_per_s, "bytes_per_s"), ""),
        ("of full bisection", full, "half the chips × their ports"),
        ("port of a chip, one way", Quantity(made.injection_bytes_per_s, "bytes_per_s"), "into the network"),
        ("all-to-all, per chip", each, "min(port, 4 × bisection / chips)"),
        ("diameter", found.diameter, "links from chip to chip"),
        ("mean hops", Quantity(found.mean_hops, "count"), "over all pairs"),
        ("shortest paths", _count(found.num_paths), "between the farthest chips"),
    ]  # fmt: skip
    if found.domain_size > 1 and made.fabric.scale_up_start >= 0:
        wire = made.parts.domain_wire
        values.append(
            ("scale-up domain", found.domain_size, f"{fmt(wire.bytes_per_s, 'bytes_per_s')} a chip, one way")
        )
    return Table(
        title="how wide and how far",
        columns=(Column("quantity"), Column("value"), Column("meaning")),
        rows=tuple(values),
    )


def _count(number: int) -> Cell:
    return f"{number:.1e}" if number > _LARGEST_COUNT else number


def survives(made: Design, catalog: Catalog) -> Failures:
    """What one failure of each kind takes, with the time until traffic flows around it."""
    columns = (
        Column("one fails"), Column("cut off", "count"), Column("slowed", "count"),
        Column("slowest keeps", "fraction"), Column("bisection left", "fraction"),
        Column("reroute", "s"), Column("by"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    sources: list[Source] = []
    for name, outage, way in _outages(made):
        blast = blast_radius(made.fabric, outage)
        how = catalog.reroute(way)
        sources.append(how.facts["reroute_s"].source)
        rows.append(
            (name, int(blast.cut_off.size), int(blast.slowed.size), *_left(blast), how.reroute_s, how.name)
        )
    note = _cube_note(made) if made.topology == "tpu-pod" else ""
    return Failures(
        Table(title="what one failure takes", columns=columns, rows=tuple(rows), note=note),
        tuple(dict.fromkeys(sources)),
    )


def _left(blast: BlastRadius) -> tuple[Cell, Cell]:
    return blast.worst_left_fraction, blast.bisection_left_fraction


def _outages(made: Design) -> list[tuple[str, Outage, str]]:
    fabric = made.fabric
    infiniband = made.parts.port is not None and made.parts.port.name.startswith("infiniband")
    way = "infiniband-subnet-manager" if infiniband else "ethernet-link-down"
    found: list[tuple[str, Outage, str]] = []
    if made.parts.switch is None:
        sides = getattr(fabric.shape, "sides", ())
        if has_circuit_switches(made):
            optical = int(np.flatnonzero(crosses_cubes(fabric, sides))[0])
            found.append(("optical cable", Outage(links=(optical,)), "optical-circuit"))
            found.append(("cube of 64, for a chip in it", Outage(cubes=(0,)), "optical-circuit"))
        return found
    if made.counts.num_switches:
        found.append(("NIC", Outage(nics=(0,)), "nic-failover"))
    tier = fabric.node_tier[fabric.num_hosts :]
    for level in [int(value) for value in np.unique(tier) if value != SCALE_UP_TIER]:
        first = int(np.flatnonzero(tier == level)[0])
        name = {1: "leaf switch", 2: "second-tier switch", 3: "core switch"}.get(
            level, f"tier-{level} switch"
        )
        found.append((name, Outage(switches=(first,)), way))
    if fabric.scale_up_start >= 0 and fabric.num_domains > 1:
        found.append((f"server or rack of {made.counts.domain_size}", Outage(domains=(0,)), way))
    return found


def _cube_note(made: Design) -> str:
    cubes = made.counts.num_hosts // CUBE_CHIPS
    if cubes < 2:
        return ""
    share = unit_availability(HOST_AVAILABILITY)
    fewer = int(cubes * 0.9375)
    every, most = (fmt(at_least(n, cubes, share), "fraction") for n in (cubes, fewer))
    return (
        f"hosts up {HOST_AVAILABILITY:.1%} of the time: all {cubes} cubes are up {every} of the time, "
        f"any {fewer} of them {most}; a dead chip costs its whole cube of 64"
    )


def compared(names: list[str], designs: list[Design], bills: list[Bill], best: int) -> tuple[Table, ...]:
    """Cost beside width, then how each is built."""
    rows = list(zip(names, designs, bills, strict=True))
    cost = Table(
        title="side by side",
        columns=(
            Column("fabric"), Column("scale-up, one way"), Column("all-to-all, per chip", "bytes_per_s"),
            Column("bisection", "bytes_per_s"), Column("diameter", "count"), Column("power", "w"),
            Column("price", "usd"),
        ),
        rows=tuple(
            (
                name, _domain(made), made.all_to_all_bytes_per_s, made.counts.bisection_bytes_per_s,
                made.counts.diameter, bill.power.value, bill.price.value,
            )
            for name, made, bill in rows
        ),
        marked=best,
    )  # fmt: skip
    built = Table(
        title="how each is built",
        columns=(
            Column("fabric"), Column("switches", "count"), Column("tiers", "count"),
            Column("cables", "count"), Column("modules", "count"),
            Column("mean hops", "count"), Column("paths"),
        ),
        rows=tuple(
            (
                name, bill.num_switches, made.counts.num_tiers, bill.num_cables, bill.num_modules,
                made.counts.mean_hops, _count(made.counts.num_paths),
            )
            for name, made, bill in rows
        ),
        marked=best,
    )  # fmt: skip
    return cost, built


def _domain(made: Design) -> str:
    """Chips of a scale-up domain and what each sends into it."""
    found, speed = made.counts, made.parts.chip.scale_up_bytes_per_s
    if found.domain_size == 1:
        return "none"
    return f"{found.domain_size:,} × {fmt(speed, 'bytes_per_s', 3)}"
