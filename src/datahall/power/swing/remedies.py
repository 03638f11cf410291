"""The table of remedies: one row says all of one, and whatever applies, weighs, names or draws one reads it.

They act in this order on a site that has several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from datahall.catalog.entries.site.buffer import Buffer
from datahall.power.swing.battery import num_units, trace_need
from datahall.power.swing.remedy import Remedied, floored, ramp_capped, stored
from datahall.power.swing.trace import Trace
from datahall.scenario.sections.operations.site import MOST_UNITS, Site

WEIGHED_FLOOR = 0.9  # of the peak, where nobody says a floor
WEIGHED_RAMP_S = 1.0  # in which all of the swing may come and go, where nobody says a ramp


class Stores(NamedTuple):
    """What energy can be held in, one of each."""

    capacitor: Buffer  # in the power supply of each chip
    num_chips: int
    supercapacitor: Buffer
    battery: Buffer

    @property
    def most_batteries(self) -> int:
        """As many as there can be: capacitors stand in the power supplies of chips at work."""
        return self.num_chips if self.battery.form == "capacitor" else MOST_UNITS


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """One way to make a swing smaller."""

    asked: Callable[[Site], float]  # the size that somebody asks for, or 0
    weighed: Callable[[Stores, Trace], float]  # the size that it is compared at where nobody says one
    applied: Callable[[Stores, Trace, float], Remedied]
    said: str = ""  # its size in words; without: as many as even the step out
    unit: str = "count"  # of its size
    drawn: str = ""  # its name in the picture, where it is drawn unasked


REMEDIES = (
    Remedy(
        asked=lambda site: site.power_floor_fraction,
        weighed=lambda _stores, _trace: WEIGHED_FLOOR,
        applied=lambda _stores, trace, share: floored(trace, share * trace.peak_w),
        said="floor at {} of the peak",
        unit="fraction",
    ),
    Remedy(
        asked=lambda site: site.ramp_cap_w_per_s or 0.0,
        weighed=lambda _stores, trace: trace.swing_w / WEIGHED_RAMP_S,
        applied=lambda _stores, trace, ramp_w_per_s: ramp_capped(trace, ramp_w_per_s),
        said="ramp cap {}",
        unit="w_per_s",
    ),
    Remedy(
        asked=lambda site: site.capacitors_j,
        weighed=lambda stores, _trace: stores.capacitor.energy_j,
        applied=lambda stores, trace, energy_j: stored(
            trace, msgspec.structs.replace(stores.capacitor, energy_j=energy_j), stores.num_chips
        ),
        said="capacitors of {} a chip",
        unit="j",
        drawn="with capacitors",
    ),
    Remedy(
        asked=lambda site: site.supercapacitors,
        weighed=lambda stores, trace: num_units(stores.supercapacitor, trace_need(trace)),
        applied=lambda stores, trace, num: stored(trace, stores.supercapacitor, round(num)),
    ),
    Remedy(
        asked=lambda site: site.battery,
        weighed=lambda stores, trace: min(
            num_units(stores.battery, trace_need(trace)), stores.most_batteries
        ),
        applied=lambda stores, trace, num: stored(trace, stores.battery, round(num)),
        drawn="with a battery",
    ),
)


def size_of(remedy: Remedy, site: Site, stores: Stores, trace: Trace) -> float:
    """As large as somebody asks for, or as it is compared."""
    return remedy.asked(site) or remedy.weighed(stores, trace)


def all_asked(site: Site, stores: Stores, trace: Trace) -> Remedied:
    """A site with all remedies that were asked for, one after the other."""
    found, cost_w = Remedied(name="as asked", trace=trace, cost_w=0.0), 0.0
    for one in REMEDIES:
        if size := one.asked(site):
            found = one.applied(stores, found.trace, size)
            cost_w += found.cost_w
    return msgspec.structs.replace(found, name="as asked", cost_w=cost_w)
