"""Tables of fabrics: their parts, their reach, what a failure takes, and several of them side by side."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answer import Cell, Column, Quantity, Table
from datahall.fabric.design.bill import Bill
from datahall.fabric.design.design import Design
from datahall.reliability.survival import HOST_AVAILABILITY, Cubes, Survival
from datahall.units import fmt

_LARGEST_COUNT = 1e9


def made_of(cost: Bill) -> Table:
    """The bill, an item a row."""
    columns = (
        Column("part"), Column("number", "count"), Column("what"), Column("modules", "count"),
        Column("power", "w"), Column("price", "usd"), Column("per chip", "usd"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            item.name, item.num, item.part.title, item.num_modules or None, item.power_w or None,
            item.price_usd, cost.item_per_chip_usd(item),
        )
        for item in cost.items
    ]  # fmt: skip
    if len(rows) > 1:
        rows.append(
            (
                "all",
                None,
                "",
                cost.num_modules or None,
                cost.power.value,
                cost.price.value,
                cost.price_per_chip_usd,
            )
        )
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
        ("all-to-all, per chip", each, "the port, or its part of the narrowest way out"),
        ("diameter", found.diameter, "links from chip to chip"),
        ("mean hops", Quantity(found.mean_hops, "count"), "over all pairs"),
        ("shortest paths", _count(found.num_paths), "between the farthest chips"),
    ]  # fmt: skip
    if made.fabric.scale_up_start >= 0:
        rate = fmt(made.parts.chip.scale_up_bytes_per_s, "bytes_per_s")
        values.append(("scale-up domain", found.domain_size, f"{rate} a chip, one way"))
    return Table(
        title="how wide and how far",
        columns=(Column("quantity"), Column("value"), Column("meaning")),
        rows=tuple(values),
    )


def _count(number: int) -> Cell:
    return f"{number:.1e}" if number > _LARGEST_COUNT else number


def survives(failures: Sequence[Survival], cubes: Cubes | None) -> Table:
    """What one failure of each kind takes, with the time until traffic flows around it."""
    columns = (
        Column("one fails"), Column("cut off", "count"), Column("slowed", "count"),
        Column("slowest keeps", "fraction"), Column("bisection left", "fraction"),
        Column("reroute", "s"), Column("by"),
    )  # fmt: skip
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.part, one.blast.num_cut_off, one.blast.num_slowed, one.blast.worst_left_fraction,
            one.blast.bisection_left_fraction, one.reroute_s, one.reroute,
        )
        for one in failures
    )  # fmt: skip
    return Table(title="what one failure takes", columns=columns, rows=rows, note=_cube_note(cubes))


def _cube_note(cubes: Cubes | None) -> str:
    if cubes is None:
        return ""
    every, most = (fmt(share, "fraction") for share in (cubes.all_fraction, cubes.fewer_fraction))
    return (
        f"hosts up {fmt(HOST_AVAILABILITY, 'fraction')} of the time: all {cubes.num_cubes} cubes are up {every} of the "
        f"time, any {cubes.num_fewer} of them {most}; a dead chip costs its whole cube of 64"
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
