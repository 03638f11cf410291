"""A trace and its spectrum as few enough points to draw."""

from __future__ import annotations

import numpy as np

from datahall.power.swing.spectrum import spectrum
from datahall.power.swing.trace import Trace

Points = tuple[tuple[float, ...], tuple[float, ...]]
NUM_DRAWN = 400  # of a step: each the lowest and the highest of what it stands for
PERIODS = 2
SMALLEST = 1e-3  # of the largest amplitude that is drawn
HIGHEST_HZ = 50.0


def drawn_lines(trace: Trace) -> Points:
    """Some periods of a trace, with its peaks."""
    cuts = np.linspace(0, trace.power_w.size, min(NUM_DRAWN, trace.power_w.size) + 1).astype(int)
    times_s: list[float] = []
    power_w: list[float] = []
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        part = trace.power_w[start:end]
        for place in sorted({int(part.argmin()), int(part.argmax())}):
            times_s.append(float(trace.times_s[start + place]))
            power_w.append(float(part[place]))
    again = [time_s + number * trace.period_s for number in range(PERIODS) for time_s in times_s]
    return tuple(again), tuple(power_w * PERIODS)


def stop_lines(before_w: float, after_w: float, ramp_s: float) -> tuple[Points, Points]:
    """A job that stops at once, and the grid that follows at its ramp: what lies between them a store must take.

    >>> stop_lines(100.0, 40.0, 60.0)[1]
    ((-30.0, 0.0, 60.0, 90.0), (100.0, 100.0, 40.0, 40.0))
    """
    times_s = (-0.5 * ramp_s, 0.0, 0.0, 1.5 * ramp_s)
    load = (times_s, (before_w, before_w, after_w, after_w))
    grid = ((times_s[0], 0.0, ramp_s, times_s[-1]), (before_w, before_w, after_w, after_w))
    return load, grid


def drawn_spectrum(trace: Trace) -> Points:
    """The amplitudes that can be seen, from the lowest frequency to the last that can."""
    found = spectrum(trace)
    seen = found.amplitudes_w >= SMALLEST * found.amplitudes_w.max(initial=0.0)
    seen &= found.frequencies_hz <= max(HIGHEST_HZ, 10.0 * found.frequencies_hz[0])
    last = int(np.flatnonzero(seen)[-1]) + 1 if seen.any() else 1
    keep = np.unique(np.round(np.geomspace(1, last, NUM_DRAWN)).astype(int)) - 1
    floor_w = SMALLEST * found.amplitudes_w.max(initial=1.0)
    return (
        tuple(found.frequencies_hz[keep].tolist()),
        tuple(np.maximum(found.amplitudes_w[keep], floor_w).tolist()),
    )
