"""An accelerator as its maker, and those who measured it, describe it.

Peaks are dense; what a chip reaches with 2:4 sparsity stands apart and is never used by accident.
Bandwidths of links are one way.  What nobody published is NaN (or absent from a table), never guessed.
"""

from __future__ import annotations

from math import isfinite, nan
from typing import Literal, cast

import msgspec

from datahall.breakdown import Kind, Source
from datahall.catalog.document import Table
from datahall.catalog.fact import Entry, Fact, Field, read_fields
from datahall.catalog.number_formats import (
    FORMATS,
    GROUP_SCALED,
    PEAK_FORMATS,
    SCALED_UNITS,
    format_named,
    unit_for,
)
from datahall.errors import UnsupportedError
from datahall.units import fmt

# The silicon whose kernels behave alike, and so share a calibration.
FAMILIES = (
    "volta", "turing", "ampere", "ada", "hopper", "blackwell", "blackwell-rtx", "rubin",
    "cdna2", "cdna3", "cdna4", "cdna5", "gaudi", "tpu", "trainium", "lpu", "wse", "rdu", "ipu",
    "ascend", "maia", "cpu",
)  # fmt: skip


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the memory hierarchy, summed over the chip."""

    name: str
    capacity_bytes: float = nan
    capacity_per_sm_bytes: float = nan  # where every SM has its own
    addressable_per_sm_bytes: float = nan  # the part of it that a program may use as shared memory
    bytes_per_s: float = nan
    latency_s: float = nan
    note: str = ""
    facts: dict[str, Fact] = {}


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """One accelerator; NaN (0 for counts) where nothing is published."""

    name: str
    title: str
    vendor: str
    family: str
    form: str = ""
    year: int = 0
    status: Literal["shipping", "announced"] = "shipping"
    aliases: tuple[str, ...] = ()
    note: str = ""
    num_sms: int = 0  # streaming multiprocessors, compute units or cores
    clock_hz: float = nan  # boost
    memory_bytes: float = nan  # as sold
    visible_memory_bytes: float = nan  # as the driver reports it; "80 GB" of HBM is 85.5e9 bytes
    memory_type: str = ""
    memory_bytes_per_s: float = nan
    measured_memory_bytes_per_s: float = nan
    scale_up_link: str = ""
    scale_up_bytes_per_s: float = nan  # one way, all links of the chip
    num_scale_up_domain: int = 1
    host_link: str = ""
    host_bytes_per_s: float = nan  # one way
    measured_host_bytes_per_s: float = nan
    nic_bytes_per_s: float = nan  # one way, this chip's share
    power_limit_w: float = nan
    power_idle_w: float = nan
    price_usd: float = nan
    peak_flop_per_s: dict[str, float] = {}  # dense
    sparse_peak_flop_per_s: dict[str, float] = {}
    measured_peak_flop_per_s: dict[str, float] = {}  # best matrix product anybody measured
    lacks: tuple[str, ...] = ()  # precisions the hardware does not have
    levels: tuple[Level, ...] = ()
    facts: dict[str, Fact] = {}

    def peak(self, precision: str) -> float:
        """Return the dense peak [FLOP/s]; a precision the chip lacks is an error, never another one."""
        wanted = unit_for(precision)
        if self.multiplies(precision):
            return self.peak_flop_per_s[wanted]
        missing = format_named(precision) if wanted in self.peak_flop_per_s else wanted
        raise UnsupportedError(
            self.why_no_peak(missing), hint=f"it has {', '.join(self.peak_flop_per_s) or 'no published peak'}"
        )

    def multiplies(self, precision: str) -> bool:
        """Whether it has units for a precision, and these take the scales of its groups where it has such."""
        name = format_named(precision)
        if unit_for(name) not in self.peak_flop_per_s or name not in GROUP_SCALED:
            return name in self.peak_flop_per_s
        if families := FORMATS[name].families:
            return self.family in families
        return any(unit in self.peak_flop_per_s for unit in SCALED_UNITS)

    def refuses_scales(self, precision: str) -> bool:
        """Whether its units are known not to take the scales of a format, rather than nobody saying so."""
        is_other = precision in GROUP_SCALED and self.family in FORMATS[precision].foreign
        return is_other or all(unit in self.lacks for unit in SCALED_UNITS)

    def why_no_peak(self, precision: str) -> str:
        """Say why `precision` has no peak here, and which published rate is easily taken for it."""
        if precision in GROUP_SCALED:
            unit = unit_for(precision)
            if not self.refuses_scales(precision):
                return f"whether {self.title} multiplies {precision.upper()} is not known to the catalogue"
            taken = (
                "the scales of MX formats only"
                if unit in SCALED_UNITS
                else "no scale per small group of values"
            )
            return f"{self.title} has no {precision.upper()}; its {unit.upper()} units take {taken}"
        if precision not in PEAK_FORMATS:
            return f'"{precision}" is not a precision; they are {", ".join(PEAK_FORMATS)}'
        if precision not in self.lacks:
            return f"the {precision.upper()} peak of {self.title} is not known to the catalogue"
        return f"{self.title} has no {precision.upper()}{_lookalike(self, precision)}"

    def level(self, name: str) -> Level:
        """Return a level of the memory hierarchy by name."""
        for level in self.levels:
            if level.name == name:
                return level
        raise UnsupportedError(
            f'{self.title} has no level "{name}"',
            hint=f"it has {', '.join(level.name for level in self.levels)}",
        )


def _lookalike(chip: Chip, precision: str) -> str:
    """Name the rate of the same width, and the sparse rates equal to it, that get quoted instead."""
    bits = FORMATS[precision].bits
    twin = next((one for one in PEAK_FORMATS if one != precision and FORMATS[one].bits == bits), "")
    rate = chip.peak_flop_per_s.get(twin, nan)
    if not isfinite(rate):
        return ""
    names = [f"dense {twin.upper()}"]
    sparse = chip.sparse_peak_flop_per_s.items()
    close = [name for name, value in sparse if name != twin and abs(value / rate - 1) < 0.02]
    if close:
        names.append(f"sparse {'/'.join(name.upper() for name in close)}")
    return f"; {fmt(rate, 'flop_per_s')} is its {' or '.join(names)} rate"


FIELDS = (
    Field("title", "title", "what it is called", "text", required=True),
    Field("vendor", "vendor", "vendor", "text", required=True),
    Field("family", "family", "silicon family", "text", required=True, choices=FAMILIES),
    Field("form", "form", "form factor", "text"),
    Field("year", "year", "year it shipped", at_least=1970),
    Field("status", "status", "status", "text", choices=("shipping", "announced")),
    Field("aliases", "aliases", "other names", "texts"),
    Field("note", "note", "note", "text"),
    Field("lacks", "lacks", "precisions it does not have", "texts"),
    Field("sms", "num_sms", "SMs, compute units or cores"),
    Field("clock", "clock_hz", "boost clock"),
    Field("memory", "memory_bytes", "memory", required=True),
    Field("visible_memory", "visible_memory_bytes", "memory the driver reports"),
    Field("memory_type", "memory_type", "memory type", "text"),
    Field("memory_bandwidth", "memory_bytes_per_s", "memory bandwidth"),
    Field("measured_memory_bandwidth", "measured_memory_bytes_per_s", "memory bandwidth, measured"),
    Field("scale_up", "scale_up_link", "scale-up link", "text"),
    Field("scale_up_bandwidth", "scale_up_bytes_per_s", "scale-up bandwidth, one way"),
    Field("scale_up_domain", "num_scale_up_domain", "chips in one scale-up domain"),
    Field("host", "host_link", "host link", "text"),
    Field("host_bandwidth", "host_bytes_per_s", "host link bandwidth, one way"),
    Field("measured_host_bandwidth", "measured_host_bytes_per_s", "host link bandwidth, measured"),
    Field("nic_bandwidth", "nic_bytes_per_s", "network bandwidth per chip, one way"),
    Field("power_limit", "power_limit_w", "power limit"),
    Field("power_idle", "power_idle_w", "idle power"),
    Field("price", "price_usd", "price"),
)

LEVEL_FIELDS = (
    Field("name", "name", "name of the level", "text", required=True),
    Field("capacity", "capacity_bytes", "capacity"),
    Field("capacity_per_sm", "capacity_per_sm_bytes", "capacity per SM"),
    Field("addressable_per_sm", "addressable_per_sm_bytes", "shared memory per SM"),
    Field("bandwidth", "bytes_per_s", "bandwidth over the chip"),
    Field("bandwidth_per_clock_per_sm", "per_clock_per_sm_bytes", "bytes per clock per SM"),
    Field("latency", "latency_s", "latency"),
    Field("note", "note", "note", "text"),
)

_PEAK_TABLES = (
    ("peak", "peak_flop_per_s", "dense {} peak"),
    ("sparse_peak", "sparse_peak_flop_per_s", "{} peak with 2:4 sparsity"),
    ("measured_peak", "measured_peak_flop_per_s", "{} matrix product, best measured"),
)


def read_chip(entry: Entry, name: str, table: Table) -> Chip | None:
    """Read `[chip.NAME]`; problems are recorded in `entry`, and where there are any the answer is None."""
    read_fields(entry, table, FIELDS, also=("peak", "sparse_peak", "measured_peak", "level"))
    peaks = {attribute: _read_peaks(entry, table, key, label) for key, attribute, label in _PEAK_TABLES}
    for precision in cast("tuple[str, ...]", entry.values.get("lacks", ())):
        if precision not in PEAK_FORMATS:
            entry.problem(
                f'"{precision}" is not a precision', "lacks", hint=f"one of {', '.join(PEAK_FORMATS)}"
            )
        elif precision in peaks["peak_flop_per_s"]:
            entry.problem(f'"{precision}" stands in lacks and in peak', "lacks")
    levels = _read_levels(entry, table)
    if entry.problems:
        return None
    values = entry.values | peaks | {"name": name, "levels": levels, "facts": entry.facts}
    for count in ("year", "num_sms", "num_scale_up_domain"):
        if count in values:
            values[count] = int(cast(float, values[count]))
    return msgspec.convert(values, Chip)


def _read_peaks(entry: Entry, table: Table, key: str, label: str) -> dict[str, float]:
    peaks = table.get(key, {})
    if not isinstance(peaks, dict):
        entry.problem(
            f'"{key}" must be a table of precisions', key, hint=f'[chip.NAME.{key}] bf16 = "989 TFLOP/s"'
        )
        return {}
    below = entry.below(key)
    read_fields(below, peaks, [Field(p, f"{p}_flop_per_s", label.format(p.upper())) for p in PEAK_FORMATS])
    for precision in PEAK_FORMATS:
        if (fact := below.facts.get(f"{precision}_flop_per_s")) is not None:
            entry.facts[f"{key}.{precision}"] = fact
    return {
        precision: fact.value
        for precision in PEAK_FORMATS
        if (fact := entry.facts.get(f"{key}.{precision}")) is not None
    }


def _read_levels(entry: Entry, table: Table) -> tuple[Level, ...]:
    """Levels written in the file, then main memory and the host, which the chip's own fields describe."""
    items = table.get("level", [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        entry.problem('"level" must be tables', "level", hint="[[chip.NAME.level]]")
        return ()
    written: dict[str, Level] = {}
    for number, item in enumerate(items):
        below = entry.below("level", str(number))
        read_fields(below, cast(Table, item), LEVEL_FIELDS)
        if "name" in below.values:
            level = _level(below, entry.facts)
            if level.name in written:
                below.problem(f'level "{level.name}" stands twice', "name")
            written[level.name] = level
    memory = _described(
        "memory", entry.facts, "memory_bytes", "memory_bytes_per_s", written.pop("memory", None)
    )
    host = _described("host", entry.facts, "", "host_bytes_per_s", written.pop("host", None))
    nvme = written.pop("nvme", None)
    outside = [level for level in (host, nvme) if level is not None and level.facts]
    return (*written.values(), memory, *outside)


def _level(below: Entry, chip: dict[str, Fact]) -> Level:
    facts = dict(below.facts)
    per_clock = facts.pop("per_clock_per_sm_bytes", None)
    if per_clock is not None and {"num_sms", "clock_hz"} <= chip.keys():
        rate = per_clock.value * chip["num_sms"].value * chip["clock_hz"].value
        note = f"{per_clock.value:g} B per clock and SM × SMs × boost clock; {per_clock.note}".removesuffix(
            "; "
        )
        facts["bytes_per_s"] = _fact("bandwidth over the chip", rate, "bytes_per_s", per_clock.source, note)
    per_sm = facts.get("capacity_per_sm_bytes")
    if per_sm is not None and "num_sms" in chip:
        total = per_sm.value * chip["num_sms"].value
        facts["capacity_bytes"] = _fact("capacity", total, "bytes", per_sm.source, "per SM × SMs")
    texts: dict[str, str] = {key: str(below.values[key]) for key in ("name", "note") if key in below.values}
    return _built(texts, facts)


def _described(
    name: str, chip: dict[str, Fact], capacity: str, bandwidth: str, written: Level | None
) -> Level:
    """A level whose size and speed are facts of the chip; the file may add its latency."""
    facts = {
        attribute: chip[key]
        for attribute, key in (("capacity_bytes", capacity), ("bytes_per_s", bandwidth))
        if key in chip
    }
    if written is None:
        return _built({"name": name}, facts)
    return _built({"name": name, "note": written.note}, facts | written.facts)


def _built(texts: dict[str, str], facts: dict[str, Fact]) -> Level:
    return msgspec.convert(
        {**texts, **{name: fact.value for name, fact in facts.items()}, "facts": facts}, Level
    )


def _fact(label: str, value: float, unit: str, source: Source, note: str) -> Fact:
    kind: Kind = "estimate" if source.kind == "estimate" else "derived"
    return Fact(label, value, unit, Source(source.title, source.date, kind), note)
