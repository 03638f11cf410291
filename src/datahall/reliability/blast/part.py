"""A part that fails: how many there are, how often one does, how many chips it takes and for how long."""

from __future__ import annotations

from math import expm1

import msgspec

from datahall.breakdown import Breakdown, derived, minimum, product, quotient, total
from datahall.units import DAY_S, HOUR_S, MONTH_S, YEAR_S

YEAR_DAYS = YEAR_S / DAY_S
CHIP_HOURS = "chip-hours"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of part of a fabric, and what one failure of it does."""

    name: str
    num: int
    rate: Breakdown  # failures of one part per day
    num_lost: int  # chips that are gone while it is out
    num_slowed: int = 0  # chips that reach others with less than all of their bandwidth meanwhile
    slowed_chips: float = 0.0  # what they lack, as so many chips
    out: Breakdown  # mean time that it is out [s]
    reroute_s: float = 0.0  # until traffic goes around it, where it can
    alone_fraction: float = 1.0  # of its outages: what no other outage has taken at the same time

    @property
    def failures_per_day(self) -> float:
        """Of all such parts together."""
        return self.num * self.rate.value

    @property
    def failures_per_year(self) -> float:
        return self.failures_per_day * YEAR_DAYS

    @property
    def lost(self) -> Breakdown:
        """Chip-hours that all such parts cost in a month: number · rate · month · chips · time out, each once."""
        month = derived("days of a month", MONTH_S / DAY_S, "days")
        chips = total(
            "chips",
            [
                derived("chips that are gone", self.num_lost, "count"),
                derived("what slowed chips lack, in chips", self.slowed_chips, "count"),
            ],
        )
        hours = quotient("hours out", self.out, derived("seconds of an hour", HOUR_S, "s"), "")
        number = derived("how many there are", self.num, "count")
        alone = derived("share that no other outage takes too", self.alone_fraction, "fraction")
        return product(self.name, [number, self.rate, month, chips, hours, alone], CHIP_HOURS)


def each_once(parts: tuple[Part, ...], num_chips: int) -> tuple[Part, ...]:
    """Parts whose outages overlap by chance, so that chips which several of them take at once are lost once.

    A chip that x outages in the mean have taken is there e^−x of the time (M/G/∞), and 1 − e^−x of all is lost where
    they add up to x; each part has its share of it.
    """
    x = lost_fraction(lost_by(parts).value, num_chips)
    alone = -expm1(-x) / x if x else 1.0
    return tuple(msgspec.structs.replace(part, alone_fraction=alone) for part in parts)


def lost_by(parts: tuple[Part, ...]) -> Breakdown:
    """What all parts together cost."""
    return total("chip-hours lost in a month", [part.lost for part in parts])


def no_more_than(lost: Breakdown, num_chips: int) -> Breakdown:
    """What is lost, where its band would reach beyond all that there is."""
    whole = derived("chip-hours of a month", num_chips * MONTH_S / HOUR_S, CHIP_HOURS)
    if lost.band is None or lost.band.high <= whole.value:
        return lost
    return minimum(lost.name, [lost.named("by all parts"), whole])


def costliest(parts: tuple[Part, ...]) -> Part:
    """The part that costs the most chip-hours."""
    return max(parts, key=lambda part: part.lost.value)


def lost_fraction(lost_chip_hours: float, num_chips: int) -> float:
    """Share of all chip-hours of a month."""
    return lost_chip_hours * HOUR_S / (num_chips * MONTH_S)
