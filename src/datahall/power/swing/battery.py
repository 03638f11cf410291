"""What has to be stored so that a grid sees no swing, and how many units of a battery or capacitor that is.

A load that is high for a share D of its period T and lower by ΔP for the rest, drawn evenly:

    E = ΔP · D (1 − D) · T          P = ΔP · max(D, 1 − D)

A load that stops, and may leave the grid only at a ramp r [W/s]:

    E = ΔP² / (2 r)                 P = ΔP           over ΔP / r

A unit holds some energy, of which a cycle may take its depth of discharge; half of the loss there and back is on the
way out.  What a unit can deliver over what it holds is its C-rate: a swing of seconds asks for hundreds an hour, which
no battery has, so that power and not energy says how many are needed.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from datahall.breakdown import Breakdown, assumed, ceiling, derived, fact, maximum, power, product, quotient
from datahall.catalog.entries.site.buffer import Buffer
from datahall.power.swing.trace import Trace
from datahall.units import HOUR_S


class Need(NamedTuple):
    """What must be stored, and how fast it goes in and out."""

    energy_j: float
    power_w: float

    @property
    def rate_per_hour(self) -> float:
        """Its C-rate: how often an hour the energy could go out at that power."""
        return self.power_w * HOUR_S / self.energy_j if self.energy_j else 0.0

    @property
    def empty_s(self) -> float:
        """How long the energy lasts at that power."""
        return self.energy_j / self.power_w if self.power_w else 0.0


def periodic_need(swing_w: float, *, duty_fraction: float, period_s: float) -> Need:
    """What evens out a load that is high for a share of its period.

    >>> need = periodic_need(75e6, duty_fraction=0.8, period_s=4.0)
    >>> round(need.power_w / 1e6), round(need.energy_j / 3.6e6)
    (60, 13)
    """
    low_fraction = 1.0 - duty_fraction
    return Need(
        energy_j=swing_w * duty_fraction * low_fraction * period_s,
        power_w=swing_w * max(duty_fraction, low_fraction),
    )


def stop_need(drop_w: float, ramp_w_per_s: float) -> Need:
    """What a load that stops at once leaves to be taken over, while the grid's own part falls at a ramp.

    >>> need = stop_need(150e6, 10e6 / 60)
    >>> round(need.energy_j / 3.6e9, 2), 150e6 / (10e6 / 60) / 60
    (18.75, 15.0)
    """
    return Need(energy_j=drop_w**2 / (2.0 * ramp_w_per_s), power_w=drop_w)


def trace_need(trace: Trace) -> Need:
    """What evens out a trace altogether: how far its energy runs ahead of the mean's, and its distance from it."""
    beyond_w = trace.power_w - trace.mean_w
    ahead_j = np.cumsum(beyond_w) * trace.step_s
    return Need(energy_j=float(np.ptp(np.append(0.0, ahead_j))), power_w=float(np.abs(beyond_w).max()))


def units_figure(buffer: Buffer, need: Need, why: str) -> Breakdown:
    """How many units it takes: by power or by energy, whichever is more."""
    one_way = power(
        "efficiency one way", _of(buffer, "round_trip_fraction"), assumed("half of it", 0.5, "ratio", "each way alike"),
        "fraction",
    )  # fmt: skip
    usable = product(
        "energy of one that arrives", (_of(buffer, "energy_j"), _of(buffer, "depth_fraction"), one_way), "j"
    )
    by_power = quotient("by power", derived("power", need.power_w, "w", why), _of(buffer, "power_w"), "count")
    by_energy = quotient("by energy", derived("energy", need.energy_j, "j", why), usable, "count")
    return ceiling(f"{buffer.unit}s of {buffer.title}", maximum("the larger", (by_power, by_energy)))


def num_units(buffer: Buffer, need: Need) -> int:
    """The same as a number."""
    return round(units_figure(buffer, need, "asked").value)


def binds(buffer: Buffer, need: Need) -> str:
    """Whether power or energy says how many units it takes."""
    by_energy = need.energy_j / (buffer.usable_j * sqrt(buffer.round_trip_fraction))
    return "power" if need.power_w / buffer.power_w >= by_energy else "energy"


def _of(buffer: Buffer, name: str) -> Breakdown:
    known = buffer.facts[name]
    return fact(known.label, known.value, known.unit, known.source, note=known.note)
