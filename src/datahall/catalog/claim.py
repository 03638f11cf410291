"""Is a number that somebody states about a machine right?  The catalogue answers, and says why.

    judge(catalog, "h100-sxm", "peak.fp8", "3,958 TFLOPS").outcome == "sparse"

Quantities are those of `quantity.py`, and three more: `fits.LEVEL` (does a working set fit there), `newest`
(is it its vendor's newest chip) and, of a server, `scale_up_bandwidth` (all its chips together).
"""

from __future__ import annotations

import math
import re
from typing import Literal

import msgspec

from datahall.catalog.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.catalog.entries.network.link import Link
from datahall.catalog.entries.server import Server
from datahall.catalog.fact import Fact
from datahall.catalog.number_formats import format_named, unit_for
from datahall.catalog.quantity import names, quantities, scale_up_total
from datahall.errors import ScenarioError, UnknownNameError
from datahall.units import fmt, parse, short

Outcome = Literal["correct", "rounded", "sparse", "both-ways", "wrong", "unsupported", "unknown"]

CORRECT = 0.02
ROUNDED = 0.06
ONE_DIGIT = 0.12  # "3 TB/s" for 3.35: right to the digits given, and not far off
FAR = 1e6  # factors past it say no more than that

_BOTH_WAYS = re.compile(r"\s*\(?(both ways|bidirectional|bi-directional)\)?\s*", re.IGNORECASE)
_RANGE = re.compile(r"\s*([\d.,]+)\s*(?:-|–|to)\s*([\d.,]+)\s*(\D*)$")


class Verdict(msgspec.Struct, frozen=True):
    """What the catalogue says to a claim."""

    outcome: Outcome
    reason: str
    right: Fact | None = None


def judge(catalog: Catalog, subject: str, quantity: str, claimed: str) -> Verdict:
    """Hold a claim ("h100-sxm", "peak.fp8", "3,958 TFLOPS") against the catalogue."""
    entry = catalog.find(subject)
    kind, _, rest = quantity.partition(".")
    if isinstance(entry, Chip):
        if kind == "fits":
            return _fits(entry, rest, claimed)
        if quantity == "newest":
            return _newest(catalog, entry)
        if kind == "peak":
            quantity = f"peak.{unit_for(rest)}"
            if quantity.removeprefix("peak.") in entry.lacks:
                return Verdict("unsupported", entry.why_no_peak(quantity.removeprefix("peak.")))
            if quantity.removeprefix("peak.") in entry.peak_flop_per_s and not entry.multiplies(rest):
                outcome: Outcome = "unsupported" if entry.refuses_scales(format_named(rest)) else "unknown"
                return Verdict(outcome, entry.why_no_peak(format_named(rest)))
    right = _right(catalog, entry, quantity)
    if right is None:
        return Verdict("unknown", f"the catalogue does not know the {quantity} of {entry.title}")
    return _compared(entry, quantity, claimed, right)


def _right(catalog: Catalog, entry: Chip | Link | Server | Model, quantity: str) -> Fact | None:
    if isinstance(entry, Server) and quantity == "scale_up_bandwidth":
        return scale_up_total(entry, catalog.chip(entry.chip))
    known = quantities(entry)
    if quantity not in known and quantity not in names(entry):
        known_names = sorted(names(entry))
        hint = f"{entry.name} has {', '.join(known_names)}"
        raise UnknownNameError("quantity", quantity, known_names, hint=hint)
    return known.get(quantity)


def _compared(entry: Chip | Link | Server | Model, quantity: str, claimed: str, right: Fact) -> Verdict:
    text, said_both_ways = _BOTH_WAYS.subn("", claimed.strip().lstrip("~"))
    if (span := _RANGE.match(text)) is not None:
        return _span(span, right)
    value = parse(text, right.unit)
    directed = quantity in {"scale_up_bandwidth", "host_bandwidth", "nic_bandwidth", "bandwidth"}
    if said_both_ways and directed:
        outcome = closeness(value / 2, text, right.value, right.unit)
        return Verdict(outcome, f"both ways; one way it is {right.shown}", right)
    outcome = closeness(value, text, right.value, right.unit)
    if outcome in {"correct", "rounded"}:
        return Verdict(outcome, f"the catalogue has {_described(right)}", right)
    if isinstance(entry, Chip) and quantity.startswith("peak."):
        sparse = entry.facts.get(f"sparse_{quantity}")
        if sparse is not None and _error(value, sparse.value) <= CORRECT:
            return Verdict("sparse", f"{sparse.shown} is with 2:4 sparsity; dense it is {right.shown}", right)
    if directed and _error(value, 2 * right.value) <= CORRECT:
        return Verdict(
            "both-ways", f"{fmt(value, right.unit)} is both ways; one way it is {right.shown}", right
        )
    if right.low is not None and right.high is not None and right.low <= value <= right.high:
        low, high = fmt(right.low, right.unit), fmt(right.high, right.unit)
        return Verdict("unknown", f"not settled: sources print {low} to {high}", right)
    return Verdict("wrong", f"it is {_described(right)}{_ratio(value, right)}", right)


def closeness(value: float, text: str, right: float, unit: str) -> Literal["correct", "rounded", "wrong"]:
    """How near a number, as it was written, is to the right one."""
    if unit == "year":
        return "correct" if value == right else "wrong"
    if unit == "count":
        return "correct" if value == right else "rounded" if _error(value, right) <= CORRECT else "wrong"
    binary = (
        value * 1.024 ** _prefix_power(text) if unit == "bytes" else value
    )  # "256 KB" of cache is 256 KiB
    error = min(_error(value, right), _error(binary, right))
    if error <= CORRECT:
        return "correct"
    return (
        "rounded" if error <= ROUNDED or (error <= ONE_DIGIT and _rounds_to(right, value, text)) else "wrong"
    )


def _prefix_power(text: str) -> int:
    match = re.search(r"([KkMGT])B$", text.strip())
    return "KMGT".index(match[1].upper()) + 1 if match else 0


def _rounds_to(right: float, value: float, text: str) -> bool:
    digits = len(re.sub(r"[^\d]", "", re.split(r"[A-Za-z ]", text.strip())[0]).strip("0")) or 1
    exponent = math.floor(math.log10(right)) - digits + 1
    return math.isclose(round(right / 10.0**exponent) * 10.0**exponent, value, rel_tol=1e-9)


def _span(span: re.Match[str], right: Fact) -> Verdict:
    low, high = (parse(f"{number} {span[3]}".strip(), right.unit) for number in (span[1], span[2]))
    inside = low * (1 - CORRECT) <= right.value <= high * (1 + CORRECT)
    return Verdict("correct" if inside else "wrong", f"the catalogue has {_described(right)}", right)


def _fits(chip: Chip, level_name: str, claimed: str) -> Verdict:
    """A working set stays in a level only where it is no larger than it."""
    level = chip.level(level_name)
    size = parse(claimed, "bytes")
    capacity = level.facts.get("capacity_bytes")
    if capacity is None:
        return Verdict("unknown", f"the catalogue does not know the capacity of {level_name}")
    times = size / capacity.value
    if size <= 0:
        raise ScenarioError(f'a working set is larger than zero bytes, not "{claimed}"', hint='e.g. "2 GB"')
    if times <= 1:
        return Verdict("correct", f"{fmt(size, 'bytes')} fits in {capacity.shown} of {level_name}", capacity)
    return Verdict("wrong", f"{claimed} is {_times(times)} the {capacity.shown} of {level_name}", capacity)


def _newest(catalog: Catalog, chip: Chip) -> Verdict:
    newer = [other for other in catalog.chips() if other.vendor == chip.vendor and other.year > chip.year]
    if not newer:
        return Verdict(
            "correct", f"no chip of {chip.vendor} in the catalogue is newer", chip.facts.get("year")
        )
    listed = ", ".join(
        f"{other.name} ({other.year})" for other in sorted(newer, key=lambda other: other.year)
    )
    return Verdict("wrong", f"outdated: {listed}", chip.facts.get("year"))


def _described(fact: Fact) -> str:
    return f"{fact.shown} ({fact.note})" if fact.note else fact.shown


def _ratio(value: float, right: Fact) -> str:
    times = value / right.value
    if times <= 0 or 0.5 < times < 2 or right.unit in {"count", "year"}:
        return ""
    if times > 1:
        return f"; the claim is {_times(times)} that"
    share = f"1/{short(1 / times)}" if times * FAR > 1 else "less than a millionth"
    return f"; the claim is {share} of that"


def _times(times: float) -> str:
    return f"{short(times)} times" if times < FAR else "more than a million times"


def _error(value: float, right: float) -> float:
    return abs(value / right - 1)
