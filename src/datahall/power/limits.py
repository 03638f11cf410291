"""What a grid or an operator does not allow, by how much it is broken, and the least change that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import NamedTuple, TypeAlias

import msgspec

from datahall.power.assessment import Assessment
from datahall.power.swing.remedies import all_asked
from datahall.power.swing.remedy import Remedied, fewest
from datahall.power.swing.trace import Trace
from datahall.scenario.sections.operations.site import Site

Smaller: TypeAlias = Callable[
    [int], Assessment | None
]  # the site with at most so many chips that can be laid out
MOST_TRIES = 8  # of fewer chips


class Fix(NamedTuple):
    """One input that keeps a limit, as it is said, and what it burns or loses in the mean [W]."""

    field: str
    value: int | str
    cost_w: float = 0.0


class Broken(NamedTuple):
    """A limit that is not kept, and what would keep it: first what burns or loses the least, fewer chips last."""

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


def broken_limits(found: Assessment, smaller: Smaller) -> tuple[Broken, ...]:
    """The limits that a site breaks with the remedies that were asked for."""
    return tuple(one for one in (_site(found, smaller), _swing(found), _ramp(found)) if one is not None)


def _site(found: Assessment, smaller: Smaller) -> Broken | None:
    limit_w, trace = found.asked.site_limit_w, found.as_asked.trace
    if limit_w is None or trace.peak_w <= limit_w:
        return None
    fixes = (_batteries(found, lambda after: after.peak_w <= limit_w), _fewer(found, limit_w, smaller))
    return Broken(
        "site_limit", "at its peak the site draws", trace.peak_w, limit_w,
        tuple(one for one in fixes if one is not None),
    )  # fmt: skip


def _with(found: Assessment, **changed: object) -> Remedied:
    """The site with its remedies, one of them changed."""
    return all_asked(msgspec.structs.replace(found.asked, **changed), found.stores, found.trace)


def _batteries(found: Assessment, keeps: Callable[[Trace], bool]) -> Fix | None:
    """The fewest containers, those that there are included, that make of a trace what is allowed."""
    most = found.stores.most_batteries
    num = fewest(lambda num: keeps(_with(found, battery=num).trace), min(found.asked.battery, most), most)
    return (
        None if num is None else Fix("battery", num, _with(found, battery=num).cost_w - found.as_asked.cost_w)
    )


def _fewer(found: Assessment, limit_w: float, smaller: Smaller) -> Fix | None:
    """As many chips as can be laid out and keep the peak below a limit; None where none can."""
    tried = found
    for _ in range(MOST_TRIES):
        share = limit_w / tried.as_asked.trace.peak_w
        if share >= 1.0:
            return Fix("chips", tried.num_chips)
        after = smaller(min(tried.num_chips - 1, floor(share * tried.num_chips)))
        if after is None:
            return None
        tried = after
    return None


def _swing(found: Assessment) -> Broken | None:
    asked: Site = found.asked
    limit_w, trace, plain = asked.swing_limit_w, found.as_asked.trace, found.trace
    if limit_w is None or trace.swing_w <= limit_w:
        return None
    held_j = found.stores.capacitor.energy_j
    percent = _up(100.0 * max(asked.power_floor_fraction, (trace.peak_w - limit_w) / plain.peak_w))
    tried = (
        ("capacitors", f"{held_j:g} J", _with(found, capacitors_j=max(held_j, asked.capacitors_j))),
        ("power_floor", f"{percent} %", _with(found, power_floor_fraction=min(1.0, percent / 100.0))),
    )
    fixes = [
        Fix(field, said, after.cost_w - found.as_asked.cost_w)
        for field, said, after in tried
        if after.trace.swing_w <= limit_w
    ]
    if batteries := _batteries(found, lambda after: after.swing_w <= limit_w):
        fixes.append(batteries)
    fixes.sort(key=lambda one: one.cost_w)
    return Broken("swing_limit", "its power swings by", trace.swing_w, limit_w, tuple(fixes))


def _ramp(found: Assessment) -> Broken | None:
    """A stop that falls by more at once than the grid allows in a minute, over which ramps are counted."""
    stop, limit_w = found.stop, found.ramp_w_per_min
    if found.asked.ramp_limit_w_per_s is None or stop.change_w <= limit_w or _has_enough(found):
        return None
    after = found
    while not _has_enough(after):  # more of them lose more, from which a stop falls
        asked = msgspec.structs.replace(
            after.asked, battery=min(after.stores.most_batteries, after.stop.num_batteries)
        )
        if asked == after.asked:
            break
        after = msgspec.structs.replace(after, asked=asked)
    fixes = (Fix("battery", after.asked.battery),) if _has_enough(after) else ()
    return Broken(
        "ramp_limit", "when its job stops, at once its power falls by", stop.change_w, limit_w, fixes
    )


def _has_enough(found: Assessment) -> bool:
    """Whether its batteries let the grid follow at its ramp."""
    return found.asked.battery >= found.stop.num_batteries


def _up(percent: float) -> float:
    """A percentage as it is said, rounded up so that it is enough."""
    return ceil(10.0 * percent) / 10.0


def fixing(broken: Sequence[Broken]) -> dict[str, int | str]:
    """The first fix of each limit that has one; of two numbers of batteries the larger."""
    found: dict[str, int | str] = {}
    for fix in (one.fixes[0] for one in broken if one.fixes):
        before = found.get(fix.field)
        if isinstance(before, int) and isinstance(fix.value, int):
            found[fix.field] = max(before, fix.value)
        else:
            found[fix.field] = fix.value
    return found
