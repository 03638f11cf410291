"""What a grid or an operator does not allow, by how much it is broken, and the least change that keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple

from datahall.catalog.entries.site.buffer import Buffer
from datahall.power.assessment import CAPACITOR, Assessment
from datahall.power.swing.remedy import fewest_units, floored, stored
from datahall.scenario.sections.operations.site import MOST_UNITS, Site


class Fix(NamedTuple):
    """One input that keeps a limit, as it is said, and what it burns or loses in the mean [W]."""

    field: str
    value: int | str
    cost_w: float = 0.0


class Broken(NamedTuple):
    """A limit that is not kept, and what would keep it, the cheapest first."""

    field: str
    what: str
    value_w: float
    limit_w: float  # of a ramp, in a minute
    fixes: tuple[Fix, ...]

    @property
    def is_ramp(self) -> bool:
        """Whether it is of how fast power may change, in a minute."""
        return self.field == "ramp_limit"

    @property
    def over_fraction(self) -> float:
        """By how much."""
        return self.value_w / self.limit_w - 1.0


def broken_limits(found: Assessment) -> tuple[Broken, ...]:
    """The limits that a site breaks with the remedies that were asked for."""
    return tuple(one for one in (_site(found), _swing(found), _ramp(found)) if one is not None)


def _site(found: Assessment) -> Broken | None:
    asked: Site = found.asked
    limit_w, trace = asked.site_limit_w, found.as_asked.trace
    if limit_w is None or trace.peak_w <= limit_w:
        return None
    num = _fewest_below(found, limit_w)
    fixes = [Fix("battery", found.asked.battery + num)] if num is not None else []
    fewer = Fix("chips", floor(found.num_chips * limit_w / trace.peak_w))
    return Broken("site_limit", "the site draws", trace.peak_w, limit_w, (*fixes, fewer))


def _fewest_below(found: Assessment, limit_w: float) -> int | None:
    """The fewest containers that keep the peak below a limit."""
    trace, battery = found.as_asked.trace, found.battery
    if stored(trace, battery, MOST_UNITS).trace.peak_w > limit_w:
        return None
    low, high = 0, MOST_UNITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if stored(trace, battery, middle).trace.peak_w <= limit_w else (middle, high)
        )
    return high


def _swing(found: Assessment) -> Broken | None:
    asked: Site = found.asked
    limit_w, trace = asked.swing_limit_w, found.as_asked.trace
    if limit_w is None or trace.swing_w <= limit_w:
        return None
    fixes = []
    capacitor: Buffer = found.catalog.buffer(CAPACITOR)
    held = stored(trace, capacitor, found.run.layout.num_chips)
    if not found.asked.capacitors_j and held.trace.swing_w <= limit_w:
        fixes.append(Fix("capacitors", f"{capacitor.energy_j:g} J", held.cost_w))
    num = fewest_units(trace, found.battery, limit_w, MOST_UNITS)
    if num is not None:
        fixes.append(Fix("battery", found.asked.battery + num, stored(trace, found.battery, num).cost_w))
    floor_w = trace.peak_w - limit_w
    fixes.append(
        Fix("power_floor", f"{_up(100.0 * floor_w / found.trace.peak_w)} %", floored(trace, floor_w).cost_w)
    )
    return Broken("swing_limit", "its power swings by", trace.swing_w, limit_w, tuple(fixes))


def _ramp(found: Assessment) -> Broken | None:
    """A stop that falls by more at once than the grid allows in a minute, over which ramps are counted."""
    limit, stop = found.asked.ramp_limit_w_per_s, found.stop
    if limit is None or stop.change_w <= 60.0 * limit or found.asked.battery >= stop.num_batteries:
        return None
    return Broken(
        "ramp_limit", "when its job stops, at once its power falls by", stop.change_w, 60.0 * limit,
        (Fix("battery", stop.num_batteries),),
    )  # fmt: skip


def _up(percent: float) -> float:
    """A percentage as it is said, rounded up so that it is enough."""
    return ceil(10.0 * percent) / 10.0


def fixing(broken: Sequence[Broken]) -> dict[str, int | str]:
    """The cheapest fix of each limit; of two that say one input, the larger."""
    found: dict[str, int | str] = {}
    for fix in (one.fixes[0] for one in broken):
        before = found.get(fix.field)
        if not isinstance(before, int) or not isinstance(fix.value, int):
            found[fix.field] = fix.value
        else:
            found[fix.field] = min(before, fix.value) if fix.field == "chips" else max(before, fix.value)
    return found
