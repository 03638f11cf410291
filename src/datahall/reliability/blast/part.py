"""A part that fails: how many there are, how often one does, how many chips it takes and for how long."""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, derived, product, quotient, total
from datahall.units import DAY_S, HOUR_S, MONTH_S

YEAR_DAYS = 365.25
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

    @property
    def failures_per_day(self) -> float:
        """Of all such parts together."""
        return self.num * self.rate.value

    @property
    def failures_per_year(self) -> float:
        return self.failures_per_day * YEAR_DAYS

    @property
    def lost(self) -> Breakdown:
        """Chip-hours that all such parts cost in a month: number · rate · month · chips · time out."""
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
        return product(self.name, [number, self.rate, month, chips, hours], CHIP_HOURS)


def lost_by(parts: tuple[Part, ...]) -> Breakdown:
    """What all parts together cost."""
    return total("chip-hours lost in a month", [part.lost for part in parts])


def costliest(parts: tuple[Part, ...]) -> Part:
    """The part that costs the most chip-hours."""
    return max(parts, key=lambda part: part.lost.value)


def lost_fraction(lost_chip_hours: float, num_chips: int) -> float:
    """Share of all chip-hours of a month."""
    return lost_chip_hours * HOUR_S / (num_chips * MONTH_S)
