"""The memory hierarchy of a chip, and the cliff at the end of each level."""

from __future__ import annotations

import math
from itertools import pairwise

from datahall.answer import Answer, Axis, Cell, Column, LineChart, Mark, Point, Series, Table
from datahall.answers.chip.citation import Citations
from datahall.answers.chip.idle import idle_in_scan
from datahall.answers.follow import follow
from datahall.catalog.entries.chip import Chip
from datahall.errors import InfeasibleError, option
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.views import WorkingSet
from datahall.silicon.hierarchy import Scan, Step, curves, holding_places, level_words, scan, steps
from datahall.units import fmt, short

POLICY_WORDS = {"unmanaged": "left to the cache", "pinned": "what fits is kept", "prefetch": "prefetched"}


def show_hierarchy(scenario: Scenario) -> Answer:
    """The levels of a chip's memory, and what reading a working set over and over costs past each of them."""
    chip, asked = scenario.catalog.chip(scenario.one(Deployment).chip), scenario.one(WorkingSet)
    place = asked.offload or "none"
    ladder = steps(chip, place)
    found = _scan(chip, ladder, asked, place) if asked.working_set_bytes is not None else None
    cited = Citations()
    return Answer(
        kind="hierarchy",
        headline=_headline(chip, ladder, found),
        binding=_binding(ladder, place),
        results=_results(ladder, found),
        tables=(_table(chip, ladder, found, cited),),
        figure=found.figure if found else None,
        charts=(_chart(chip, ladder, found, place),),
        notes=(*_notes(chip, ladder, asked, found), *idle_in_scan(scenario, ladder, found)),
        sources=cited.sources,
        next_commands=_next(scenario, ladder, asked),
    )


def _scan(chip: Chip, ladder: tuple[Step, ...], asked: WorkingSet, place: str) -> Scan:
    """The working set where it lies; one that fits nowhere is a no."""
    size = asked.working_set_bytes
    assert size is not None
    found = scan(chip, size, policy="prefetch" if asked.prefetch else "unmanaged", offload=place)
    if found is not None:
        return found
    bottom = ladder[-1]
    raise InfeasibleError(
        f"a working set of {fmt(size, 'bytes')} is {short(bottom.fill_ratio(size))} times what "
        f"{level_words(bottom.name)} of {chip.name} holds ({fmt(bottom.capacity_bytes, 'bytes')})",
        field="working_set",
        hint=_way_out(chip, size, bottom),
    )


def _way_out(chip: Chip, size: float, bottom: Step) -> str:
    places = holding_places(chip, size)
    return f"spread it over {bottom.chips_to_hold(size):,} chips" + (
        f", or keep the rest elsewhere: {option('offload', places[0])}" if places else ""
    )


def _headline(chip: Chip, ladder: tuple[Step, ...], found: Scan | None) -> str:
    if found is not None:
        times = found.slowdown_ratio
        slower = f", {short(times)} times slower than {level_words(ladder[0].name)}" if times > 1 else ""
        return (
            f"A working set of {fmt(found.size_bytes, 'bytes')} lies in {level_words(found.level)} of {chip.title}: "
            f"one scan takes {fmt(found.figure.value, 's')}, at {fmt(found.bytes_per_s, 'bytes_per_s')}{slower}."
        )
    described = ", then ".join(
        f"{fmt(step.capacity_bytes, 'bytes', 3)} of {level_words(step.name)} "
        f"at {fmt(step.bytes_per_s, 'bytes_per_s', 3)}"
        for step in ladder
    )
    return f"{chip.title}: {described}."


def _binding(ladder: tuple[Step, ...], offload: str) -> str:
    drops = list(pairwise(ladder))
    if not drops:
        return "There is one level only, so there is no cliff on the chip."
    upper, lower = max(drops, key=lambda pair: pair[0].drop_ratio)
    more = "" if offload != "none" else " Past main memory it does not run at all, unless it is offloaded."
    return (
        f"The steepest cliff is from {level_words(upper.name)} to {level_words(lower.name)}: reading is "
        f"{short(upper.drop_ratio)} times slower.{more}"
    )


def _results(ladder: tuple[Step, ...], found: Scan | None) -> dict[str, Cell]:
    known: dict[str, Cell] = {}
    for step in ladder:
        known[f"{step.name}_capacity_bytes"] = step.capacity_bytes
        known[f"{step.name}_bytes_per_s"] = step.bytes_per_s
        known[f"{step.name}_drop_ratio"] = _finite(step.drop_ratio)
    if found is not None:
        known |= {
            "level": found.level,
            "read_bytes_per_s": found.bytes_per_s,
            "slowdown_ratio": found.slowdown_ratio,
            "scan_s": found.figure.value,
        }
    return known


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table(chip: Chip, ladder: tuple[Step, ...], found: Scan | None, cited: Citations) -> Table:
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
    marked = next((index for index, step in enumerate(ladder) if found and step.name == found.level), None)
    title = "levels" if found is None else f"levels; {fmt(found.size_bytes, 'bytes')} lies in the marked one"
    return Table(title=title, columns=columns, rows=rows, marked=marked)


def _row(chip: Chip, step: Step, cited: Citations) -> tuple[Cell, ...]:
    level = chip.level(step.name)
    fact = level.facts.get("bytes_per_s")
    return (
        level_words(step.name),
        step.capacity_bytes,
        step.bytes_per_s,
        _finite(level.latency_s),
        _finite(step.drop_ratio),
        fact.source.kind if fact else None,
        cited.number(fact.source) if fact else None,
    )


def _chart(chip: Chip, ladder: tuple[Step, ...], found: Scan | None, place: str) -> LineChart:
    drawn = curves(chip, place)
    yours = (
        (Point("yours", found.size_bytes, found.bytes_per_s, note=fmt(found.bytes_per_s, "bytes_per_s")),)
        if found and drawn.holds(found.size_bytes)
        else ()
    )
    return LineChart(
        title=f"bandwidth over working set, {chip.title}",
        x=Axis("working set", "bytes", log=True),
        y=Axis("bandwidth", "bytes_per_s", log=True),
        series=tuple(
            Series(POLICY_WORDS[policy], drawn.sizes_bytes, rates)
            for policy, rates in drawn.rates_bytes_per_s.items()
        ),
        marks=tuple(Mark(f"{level_words(step.name)} full", step.capacity_bytes) for step in ladder),
        points=yours,
    )


def _notes(chip: Chip, ladder: tuple[Step, ...], asked: WorkingSet, found: Scan | None) -> tuple[str, ...]:
    there = {step.name for step in ladder} | {"registers", "host", "nvme"}
    unknown = [level.name for level in chip.levels if level.name not in there]
    lines = ["the set is read from end to end, over and over; LRU eviction then keeps nothing useful"]
    if found is not None and found.level != ladder[0].name:
        lines.append(
            "prefetched: what does not fit is fetched while what fits is worked on"
            if asked.prefetch
            else "not prefetched: what does not fit is waited for"
        )
    if unknown:
        lines.append(
            f"left out, for nobody published their bandwidth: {', '.join(map(level_words, unknown))}"
        )
    if asked.offload == "host":
        held = fmt(ladder[-1].capacity_bytes, "bytes")
        lines.append(f"links to the host are one way; its own memory is taken to hold {held}")
    return tuple(lines)


def _next(scenario: Scenario, ladder: tuple[Step, ...], asked: WorkingSet) -> tuple[str, ...]:
    page = follow(scenario, tail="-o hierarchy.html")
    chip = scenario.catalog.chip(scenario.one(Deployment).chip)
    if asked.working_set_bytes is not None:
        return (page, follow(scenario, "show chip", {"chip": chip.name}))
    reachable = any(level.name == "host" and math.isfinite(level.bytes_per_s) for level in chip.levels)
    if not reachable:
        half = fmt(ladder[-1].filled_bytes(0.5), "bytes", 3)
        return (follow(scenario, changes={"working_set": half}), page)
    twice = "200 GB" if asked.offload else fmt(ladder[-1].filled_bytes(2.0), "bytes", 3)
    changes: dict[str, Plain | None] = {
        "working_set": twice,
        "offload": asked.offload or "host",
        "prefetch": True,
    }
    return (follow(scenario, changes=changes), page)
