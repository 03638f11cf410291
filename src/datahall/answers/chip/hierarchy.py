"""The memory hierarchy of a chip, and the cliff at the end of each level."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from datahall.answer import Answer, Axis, Cell, Column, LineChart, Mark, Point, Series, Table
from datahall.answers.bounds import opened
from datahall.answers.chip.citation import Citations
from datahall.breakdown import Breakdown, Source
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.errors import InfeasibleError, ScenarioError, UnitError
from datahall.silicon.hierarchy import Step, cliff, steps
from datahall.units import fmt, parse

NAMES = {
    "shared": "shared memory",
    "l1": "L1",
    "l2": "L2",
    "l3": "L3",
    "llc": "LLC",
    "nvme": "NVMe",
    "host": "host memory",
    "memory": "main memory",
}
SMALLEST_BYTES = 1e6
POINTS_PER_DECADE = 40


def show_hierarchy(
    chip: str,
    *,
    working_set: str | float = "",
    offload: str | None = None,
    prefetch: bool = False,
    catalog: Catalog | None = None,
) -> Answer:
    """The levels of a chip's memory, and what reading a working set over and over costs past each of them."""
    machine = opened(catalog).chip(chip)
    place, policy = offload or "none", "prefetch" if prefetch else "unmanaged"
    ladder = steps(machine, place)
    size = _size(working_set) if working_set != "" else None
    found = None if size is None else _at(machine, ladder, size, policy, place)
    cited = Citations()
    return Answer(
        kind="hierarchy",
        inputs={"chip": machine.name, "working_set_bytes": size, "offload": offload, "prefetch": prefetch},
        headline=_headline(machine, ladder, size, found),
        binding=_binding(ladder, place),
        results=_results(ladder, size, found),
        tables=(_table(machine, ladder, size, found, cited),),
        figure=_figure(machine, ladder, size, found, policy),
        charts=(_chart(machine, ladder, size, found, place),),
        notes=_notes(machine, ladder, policy, place),
        sources=cited.sources,
        next_commands=_next(machine, ladder, size, place),
    )


def _size(text: str | float) -> float:
    try:
        size = parse(text, "bytes")
    except UnitError as error:
        raise ScenarioError(f"--working-set: {error.message}", hint=error.hint) from error
    if size <= 0:
        raise ScenarioError(f"--working-set is {text}; it must be above 0", hint='e.g. --working-set "2 GB"')
    return size


def _at(chip: Chip, ladder: tuple[Step, ...], size: float, policy: str, offload: str) -> tuple[str, float]:
    """The level that a working set lies in and the bandwidth it is read at."""
    scan = cliff(chip, size, policy=policy, offload=offload)
    if scan.level[0] == "none":
        bottom = ladder[-1]
        raise InfeasibleError(
            f"a working set of {fmt(size, 'bytes')} is {size / bottom.capacity_bytes:.2f} times what "
            f"{_named(bottom.name)} of {chip.name} holds ({fmt(bottom.capacity_bytes, 'bytes')})",
            hint=_way_out(chip, offload, size, bottom),
        )
    return scan.level[0], float(scan.bytes_per_s[0])


def _way_out(chip: Chip, offload: str, size: float, bottom: Step) -> str:
    deeper = {"none": "host", "host": "nvme"}.get(offload)
    chips = math.ceil(size / bottom.capacity_bytes)
    known = deeper and any(level.name == deeper and math.isfinite(level.bytes_per_s) for level in chip.levels)
    return f"spread it over {chips} chips" + (
        f", or keep the rest elsewhere: --offload {deeper}" if known else ""
    )


def _named(level: str) -> str:
    return NAMES.get(level, level)


def _headline(
    chip: Chip, ladder: tuple[Step, ...], size: float | None, found: tuple[str, float] | None
) -> str:
    if size is not None and found is not None:
        times = ladder[0].bytes_per_s / found[1]
        slower = f", {times:,.3g} times slower than {_named(ladder[0].name)}" if times > 1 else ""
        return (
            f"A working set of {fmt(size, 'bytes')} lies in {_named(found[0])} of {chip.title} and is "
            f"read at {fmt(found[1], 'bytes_per_s')}{slower}."
        )
    described = ", then ".join(
        f"{_amount(step)} of {_named(step.name)} at {fmt(step.bytes_per_s, 'bytes_per_s', 3)}"
        for step in ladder
    )
    return f"{chip.title}: {described}."


def _amount(step: Step) -> str:
    return (
        fmt(step.capacity_bytes, "bytes", 3)
        if math.isfinite(step.capacity_bytes)
        else "as much as the server has"
    )


def _binding(ladder: tuple[Step, ...], offload: str) -> str:
    drops = list(pairwise(ladder))
    if not drops:
        return "There is one level only, so there is no cliff on the chip."
    upper, lower = max(drops, key=lambda pair: pair[0].drop_ratio)
    more = "" if offload != "none" else " Past main memory it does not run at all, unless it is offloaded."
    return (
        f"The steepest cliff is from {_named(upper.name)} to {_named(lower.name)}: reading is "
        f"{upper.drop_ratio:,.3g} times slower.{more}"
    )


def _results(
    ladder: tuple[Step, ...], size: float | None, found: tuple[str, float] | None
) -> dict[str, Cell]:
    known: dict[str, Cell] = {}
    for step in ladder:
        known[f"{step.name}_capacity_bytes"] = _finite(step.capacity_bytes)
        known[f"{step.name}_bytes_per_s"] = step.bytes_per_s
        known[f"{step.name}_drop_ratio"] = _finite(step.drop_ratio)
    if size is not None and found is not None:
        known |= {"level": found[0], "read_bytes_per_s": found[1], "scan_s": size / found[1]}
    return known


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table(
    chip: Chip,
    ladder: tuple[Step, ...],
    size: float | None,
    found: tuple[str, float] | None,
    cited: Citations,
) -> Table:
    columns = (
        Column("level"),
        Column("capacity", "bytes"),
        Column("bandwidth", "bytes_per_s"),
        Column("latency", "s"),
        Column("next is slower by", "ratio", "drop_ratio"),
        Column("kind"),
        Column("source", "citation"),
    )
    rows = tuple(_row(chip, step, cited) for step in ladder)
    marked = next((index for index, step in enumerate(ladder) if found and step.name == found[0]), None)
    title = "levels" if size is None else f"levels; {fmt(size, 'bytes')} lies in the marked one"
    return Table(title=title, columns=columns, rows=rows, marked=marked)


def _row(chip: Chip, step: Step, cited: Citations) -> tuple[Cell, ...]:
    level = chip.level(step.name)
    fact = level.facts.get("bytes_per_s")
    return (
        _named(step.name),
        _finite(step.capacity_bytes),
        step.bytes_per_s,
        _finite(level.latency_s),
        _finite(step.drop_ratio),
        fact.source.kind if fact else None,
        cited.number(fact.source) if fact else None,
    )


def _figure(
    chip: Chip, ladder: tuple[Step, ...], size: float | None, found: tuple[str, float] | None, policy: str
) -> Breakdown | None:
    """The time of one scan of the working set, or the steepest drop where none was named."""
    if size is None or found is None:
        return None
    index = next(place for place, step in enumerate(ladder) if step.name == found[0])
    here, above = ladder[index], ladder[max(0, index - 1)]
    parts = [_rate(chip, here)]
    formula = "working set / bandwidth of its level"
    if policy == "prefetch" and index:
        formula = "max(working set / bandwidth above, what does not fit above / bandwidth of its level)"
        parts = [_rate(chip, above), _held(chip, above), *parts]
    return Breakdown(
        name=f"one scan of {fmt(size, 'bytes')}",
        value=size / found[1],
        unit="s",
        formula=formula,
        parts=(Breakdown(name="working set", value=size, unit="bytes"), *parts),
        basis="datasheet only",
    )


def _rate(chip: Chip, step: Step) -> Breakdown:
    name = f"bandwidth of {_named(step.name)}"
    return Breakdown(
        name=name, value=step.bytes_per_s, unit="bytes_per_s", sources=_sources(chip, step, "bytes_per_s")
    )


def _held(chip: Chip, step: Step) -> Breakdown:
    name = f"capacity of {_named(step.name)}"
    return Breakdown(
        name=name, value=step.capacity_bytes, unit="bytes", sources=_sources(chip, step, "capacity_bytes")
    )


def _sources(chip: Chip, step: Step, attribute: str) -> tuple[Source, ...]:
    fact = chip.level(step.name).facts.get(attribute)
    return (fact.source,) if fact else ()


def _chart(
    chip: Chip, ladder: tuple[Step, ...], size: float | None, found: tuple[str, float] | None, offload: str
) -> LineChart:
    held = [step.capacity_bytes for step in ladder if math.isfinite(step.capacity_bytes)]
    largest = max(held) * (8 if offload == "host" else 1)
    smallest = min(SMALLEST_BYTES, min(held) / 4)
    decades = math.log10(largest / smallest)
    sizes = np.geomspace(smallest, largest * (1 - 1e-9), int(decades * POINTS_PER_DECADE))
    lines = []
    for policy, words in (
        ("unmanaged", "left to the cache"),
        ("pinned", "what fits is kept"),
        ("prefetch", "prefetched"),
    ):
        scan = cliff(chip, sizes, policy=policy, offload=offload)
        lines.append(Series(words, tuple(sizes.tolist()), tuple(scan.bytes_per_s.tolist())))
    mine = (Point("yours", size, found[1], note=fmt(found[1], "bytes_per_s")),) if size and found else ()
    return LineChart(
        title=f"bandwidth over working set, {chip.title}",
        x=Axis("working set", "bytes", log=True),
        y=Axis("bandwidth", "bytes_per_s", log=True),
        series=tuple(lines),
        marks=tuple(
            Mark(f"{_named(step.name)} full", step.capacity_bytes)
            for step in ladder
            if math.isfinite(step.capacity_bytes)
        ),
        points=tuple(point for point in mine if smallest <= point.x <= largest),
    )


def _notes(chip: Chip, ladder: tuple[Step, ...], policy: str, offload: str) -> tuple[str, ...]:
    missing = [
        level.name
        for level in chip.levels
        if level.name not in {step.name for step in ladder} | {"registers"}
    ]
    lines = [
        "the set is read from end to end, over and over; evicting the least recent then keeps nothing useful",
        "prefetched: what does not fit is fetched while what fits is worked on"
        if policy == "prefetch"
        else "--prefetch fetches what does not fit while what fits is worked on",
    ]
    unknown = [name for name in missing if name not in {"host", "nvme"}]
    if unknown:
        lines.append(f"left out, for nobody published their bandwidth: {', '.join(map(_named, unknown))}")
    if offload != "none":
        lines.append("links to the host are one way; its own memory is taken as large enough")
    return tuple(lines)


def _next(chip: Chip, ladder: tuple[Step, ...], size: float | None, offload: str) -> tuple[str, ...]:
    twice = fmt(2 * ladder[-1].capacity_bytes, "bytes", 3) if offload == "none" else "200 GB"
    ask = f'datahall show hierarchy {chip.name} --working-set "{twice}" --offload host --prefetch'
    page = f"datahall show hierarchy {chip.name} -o hierarchy.html"
    return (ask, page) if size is None else (page, f"datahall show chip {chip.name}")
