"""One chip: every value with unit, kind, source and date; and whether a number stated about it is right."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.chip.citation import Citations, figure, quantity
from datahall.answers.follow import follow
from datahall.breakdown import Breakdown, quotient
from datahall.catalog.claim import judge
from datahall.catalog.entries.chip import Chip, Level
from datahall.catalog.fact import Fact
from datahall.catalog.number_formats import PEAK_FORMATS
from datahall.errors import ScenarioError, option
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.views import Claim
from datahall.units import fmt

COLUMNS = (
    Column("quantity"), Column("value"), Column("kind"), Column("date"), Column("source", "citation"),
    Column("note", aside=True),
)  # fmt: skip
_COMPUTE = ("num_sms", "clock_hz")
_LINKS = (
    "scale_up_bytes_per_s",
    "num_scale_up_domain",
    "host_bytes_per_s",
    "measured_host_bytes_per_s",
    "nic_bytes_per_s",
)
_MEMORY = ("memory_bytes", "visible_memory_bytes", "memory_bytes_per_s", "measured_memory_bytes_per_s")
_POWER = ("power_limit_w", "power_idle_w", "price_usd", "year")
_LEVEL = ("capacity_per_sm_bytes", "addressable_per_sm_bytes", "capacity_bytes", "bytes_per_s", "latency_s")
_LEVEL_NAMES = {"l2": "L2", "l1": "L1", "nvme": "NVMe", "l3": "L3", "llc": "LLC", "sram": "SRAM"}


def show_chip(scenario: Scenario) -> Answer:
    """Everything the catalogue knows of a chip, or its verdict on a claim such as "peak.fp8=3958 TFLOP/s"."""
    asked = scenario.one(Claim)
    if asked.claim:
        return _judged(scenario, asked)
    with scenario.at(field="chip"):
        chip = scenario.catalog.chip(asked.chip)
    cited = Citations()
    balance = _balance(chip)
    return Answer(
        kind="chip",
        headline=_headline(chip),
        binding=_binding(chip, balance),
        results=_results(chip),
        tables=_tables(chip, cited),
        figure=balance,
        notes=_notes(chip),
        sources=cited.sources,
        next_commands=(
            follow(scenario, "show hierarchy", {"chip": chip.name}),
            follow(scenario, "show roofline", {"chip": chip.name, "model": "llama-3.1-8b"}),
            follow(scenario, "catalog prices", {"chip": chip.name}),
        ),
    )


def widest(chip: Chip) -> str:
    """The precision that stands for a chip in a sentence: BF16, or the first one it has a peak in."""
    order = ("bf16", "fp16", "int8", "fp8", *PEAK_FORMATS)
    return next((one for one in order if one in chip.peak_flop_per_s), "")


def _headline(chip: Chip) -> str:
    memory = fmt(chip.memory_bytes, "bytes") + (f" of {chip.memory_type}" if chip.memory_type else "")
    speed = f" at {fmt(chip.memory_bytes_per_s, 'bytes_per_s')}" if isfinite(chip.memory_bytes_per_s) else ""
    precision = widest(chip)
    rate = f", {fmt(chip.peak(precision), 'flop_per_s')} dense {precision.upper()}" if precision else ""
    power = f", {fmt(chip.power_limit_w, 'w')}" if isfinite(chip.power_limit_w) else ""
    return f"{chip.title}: {memory}{speed}{rate}{power}."


def _balance(chip: Chip) -> Breakdown | None:
    """The arithmetic per byte at which compute and memory take equally long."""
    precision = widest(chip)
    peak, memory = chip.facts.get(f"peak.{precision}"), chip.facts.get("memory_bytes_per_s")
    if peak is None or memory is None:
        return None
    return quotient("balance", figure(peak), figure(memory), "flop_per_byte").with_note(
        basis="datasheet only"
    )


def _binding(chip: Chip, balance: Breakdown | None) -> str:
    if balance is None:
        return "The catalogue lacks a peak or a bandwidth, so what binds cannot be said."
    return (
        f"Work below {fmt(balance.value, 'flop_per_byte')} waits for memory: a {widest(chip).upper()} "
        f"product needs about {balance.value:,.0f} rows before arithmetic binds."
    )


def _results(chip: Chip) -> dict[str, Cell]:
    """Every known number under a key that ends in its unit."""
    known: dict[str, Cell] = {name: fact.value for name, fact in chip.facts.items() if "." not in name}
    for name, fact in chip.facts.items():
        if "." in name:
            known[f"{name.replace('.', '_')}_flop_per_s"] = fact.value
    for level in chip.levels:
        known |= {f"{level.name}_{attribute}": fact.value for attribute, fact in level.facts.items()}
    return known


def _tables(chip: Chip, cited: Citations) -> tuple[Table, ...]:
    peaks = [name for table in ("peak", "measured_peak", "sparse_peak") for name in _of(chip, table)]
    levels = [
        (f"{_level_name(level)}: {fact.label}", fact)
        for level in chip.levels
        for attribute in _LEVEL
        if (fact := level.facts.get(attribute)) is not None and not _stands_elsewhere(level, attribute)
    ]
    groups = (
        ("arithmetic", _facts(chip, (*_COMPUTE, *peaks))),
        ("memory", [*_facts(chip, _MEMORY), *levels]),
        ("links", _facts(chip, _LINKS)),
        ("power, price and year", _facts(chip, _POWER)),
    )
    return tuple(_table(title, facts, cited) for title, facts in groups if facts)


def _of(chip: Chip, table: str) -> list[str]:
    return [f"{table}.{precision}" for precision in PEAK_FORMATS if f"{table}.{precision}" in chip.facts]


def _facts(chip: Chip, names: Iterable[str]) -> list[tuple[str, Fact]]:
    return [(chip.facts[name].label, chip.facts[name]) for name in names if name in chip.facts]


def _stands_elsewhere(level: Level, attribute: str) -> bool:
    """Main memory and the host link are facts of the chip itself."""
    return level.name in {"memory", "host"} and attribute in {"capacity_bytes", "bytes_per_s"}


def _level_name(level: Level) -> str:
    return _LEVEL_NAMES.get(level.name, level.name)


def _table(title: str, facts: Iterable[tuple[str, Fact]], cited: Citations) -> Table:
    rows = tuple(
        (label, quantity(fact), fact.source.kind, fact.source.date, cited.number(fact.source), fact.note)
        for label, fact in facts
    )
    return Table(title=title, columns=COLUMNS, rows=rows)


def _notes(chip: Chip) -> tuple[str, ...]:
    lines = [chip.note]
    if chip.status == "announced":
        lines.append("announced, not shipping: its numbers are what its maker promised")
    if chip.lacks:
        lines.append(f"the hardware has no {', '.join(one.upper() for one in chip.lacks)}")
    if chip.sparse_peak_flop_per_s:
        lines.append("plans use dense peaks; 2:4 sparsity is listed and never assumed")
    if isfinite(chip.scale_up_bytes_per_s):
        lines.append("links are one way; vendors often print both directions added up")
    return tuple(line for line in lines if line)


def _judged(scenario: Scenario, asked: Claim) -> Answer:
    """Hold a claim against the catalogue; anything but right, or right as rounded, is a no."""
    claim, catalog = asked.claim, scenario.catalog
    quantity_name, equals, value = claim.partition("=")
    if not equals or not value.strip():
        raise ScenarioError(
            f'"{claim}" is not a claim',
            field="claim",
            hint=f"write quantity=value, e.g. {option('claim', 'peak.fp8=1979 TFLOP/s')}",
        )
    with scenario.at(field="chip"):
        entry = catalog.find(asked.chip)
    with scenario.at(field="claim"):
        verdict = judge(catalog, asked.chip, quantity_name.strip(), value.strip())
    right = verdict.right
    named = {"both-ways": "Both ways", "unknown": "Not settled"}.get(
        verdict.outcome, verdict.outcome.capitalize()
    )
    results: dict[str, Cell] = {"outcome": verdict.outcome, "reason": verdict.reason}
    if right is not None:
        results["right"] = quantity(right)
    return Answer(
        kind="claim",
        inputs={"name": entry.name, "quantity": quantity_name.strip(), "claimed": value.strip()},
        headline=f"{named}: {verdict.reason}.",
        verdict="yes" if verdict.outcome in {"correct", "rounded"} else "no",
        results=results,
        figure=figure(right) if right is not None else None,
        next_commands=(follow(scenario, changes={"claim": None}),) if isinstance(entry, Chip) else (),
    )
