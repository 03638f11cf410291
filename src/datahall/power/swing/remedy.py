"""What makes a swing smaller: blocks that take a trace and give another, with what they burn, lose and store.

    floor      chips burn what they do not need:            P' = max(P, floor)
    ramp cap   and begin and end doing so in time:          P'(t) = max over s of P(s) − r |t − s|
    store      capacitors, supercapacitors or a battery:    P' = P behind a low-pass of time constant τ

A low-pass takes out what a store of energy τ · swing(P') gives and takes, so the energy of a store says τ.  The larger
τ, the closer that comes to what evens out the trace altogether (`battery.py`).  What power a store has bounds how much
of it can be taken out.  Each loses energy; none takes time of the step.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from datahall.catalog.entries.site.buffer import Buffer
from datahall.power.swing.battery import Need
from datahall.power.swing.trace import Trace, low_pass

HALVINGS = 40
SHORTEST_S, LONGEST_PERIODS = (
    1e-4,
    1e4,
)  # time constants that a store may have; the latter in periods of the trace
NOTHING = Need(0.0, 0.0)


class Remedied(msgspec.Struct, frozen=True, kw_only=True):
    """A trace after a remedy, and what that took."""

    name: str
    trace: Trace
    cost_w: float  # more than before, in the mean: burnt, or lost in a store
    stored: Need = NOTHING  # what went in and out of a store
    num_units: int = 0  # of that store


def floored(trace: Trace, floor_w: float) -> Remedied:
    """Chips that never draw less, burning what they do not need."""
    return _burnt("power floor", trace, np.maximum(trace.power_w, floor_w))


def ramp_capped(trace: Trace, ramp_w_per_s: float) -> Remedied:
    """Chips that burn before they rise and after they fall, so that neither is faster than a ramp.

    >>> wave = Trace(period_s=4.0, power_w=np.array([0.0, 8.0, 0.0, 0.0]))
    >>> ramp_capped(wave, 3.0).trace.power_w.tolist()
    [5.0, 8.0, 5.0, 2.0]
    """
    drop_w = ramp_w_per_s * trace.step_s
    steps = np.arange(2 * trace.power_w.size)
    twice = np.tile(trace.power_w, 2)
    after = np.maximum.accumulate(twice + drop_w * steps) - drop_w * steps
    before = (np.maximum.accumulate((twice + drop_w * steps[::-1])[::-1]) - drop_w * steps)[::-1]
    half = trace.power_w.size
    held = np.maximum(after[half:], before[:half])
    return _burnt("ramp cap", trace, np.maximum(held, trace.power_w))  # which rounding may have lowered


def stored(trace: Trace, buffer: Buffer, num: int) -> Remedied:
    """A store of so many units between the grid and the load, which gives and takes what a low-pass holds back."""
    ways_out = num * buffer.usable_j * buffer.round_trip_fraction**0.5
    smooth = low_pass(trace, _time_constant_s(trace, ways_out))
    through_w = trace.power_w - smooth.power_w
    most_w = float(np.abs(through_w).max())
    share = min(1.0, num * buffer.power_w / most_w) if most_w > 0 else 0.0
    given_w = float(np.maximum(share * through_w, 0.0).mean())
    lost_w = given_w * (1.0 / buffer.round_trip_fraction - 1.0)
    used = Need(energy_j=share * _excursion_j(trace, smooth), power_w=share * most_w)
    after = msgspec.structs.replace(trace, power_w=trace.power_w - share * through_w + lost_w)
    return Remedied(name=buffer.title, trace=after, cost_w=lost_w, stored=used, num_units=num)


def _burnt(name: str, trace: Trace, power_w: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Remedied:
    after = msgspec.structs.replace(trace, power_w=power_w)
    return Remedied(name=name, trace=after, cost_w=after.mean_w - trace.mean_w)


def _excursion_j(trace: Trace, smooth: Trace) -> float:
    """How far the energy of a store goes up and down."""
    return float(np.ptp(np.cumsum(trace.power_w - smooth.power_w)) * trace.step_s)


def _time_constant_s(trace: Trace, energy_j: float) -> float:
    """The longest time constant whose low-pass a store of some energy can be."""
    if energy_j <= 0 or not trace.swing_w:
        return 0.0
    low_s, high_s = SHORTEST_S, LONGEST_PERIODS * trace.period_s
    if _excursion_j(trace, low_pass(trace, high_s)) <= energy_j:
        return high_s
    for _ in range(HALVINGS):
        middle_s = (low_s * high_s) ** 0.5
        if _excursion_j(trace, low_pass(trace, middle_s)) <= energy_j:
            low_s = middle_s
        else:
            high_s = middle_s
    return low_s


def fewest(keeps: Callable[[int], bool], least: int, most: int) -> int | None:
    """The fewest units of a store, of so many at least, that are enough; None where `most` are not.

    >>> fewest(lambda num: num * num >= 50, 0, 100), fewest(lambda num: num > 100, 0, 100)
    (8, None)
    """
    if not keeps(most):
        return None
    low, high = least - 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
