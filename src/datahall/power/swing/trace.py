"""The power of a site through one step, again and again: sampled, smoothed by its supplies, summed over its chips.

    P(t) = N · mean + c · (Σ groups(t) − N · mean)            c = √(ρ + (1 − ρ)/n)

N chips stand in n nodes.  Nodes of one synchronous job rise and fall together (ρ = 1); nodes that know nothing of each
other (ρ = 0) average out, and the standard deviation of their sum is σ√n instead of σn:

    σ_site = √(ρ n² + (1 − ρ) n) · σ_node

What a chip draws is smoothed by capacitors on its board and in its power supply, a low-pass of the first order.  The
step repeats, so that is exact in the frequency domain and the mean stays.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from datahall.power.swing.timeline import Floats, Timeline

RESOLUTION_S = 1e-3
MOST_SAMPLES = 1 << 16  # of a step; a longer one is sampled more coarsely
LEAST_SAMPLES = 64
FLAT = 1e-5  # of the peak: less than a meter reads
LEVEL = 1e-9  # of the peak: what several passes of a Fourier transform leave of a level line is less


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Power over one period, sampled evenly; it repeats for ever."""

    period_s: float
    power_w: Floats

    @property
    def step_s(self) -> float:
        """Time of one sample."""
        return self.period_s / self.power_w.size

    @property
    def times_s(self) -> Floats:
        """The middle of each sample."""
        return np.asarray((np.arange(self.power_w.size) + 0.5) * self.step_s, dtype=np.float64)

    @property
    def mean_w(self) -> float:
        return float(self.power_w.mean())

    @property
    def peak_w(self) -> float:
        return float(self.power_w.max())

    @property
    def low_w(self) -> float:
        return float(self.power_w.min())

    @property
    def swing_w(self) -> float:
        """From the lowest to the highest; what rounding leaves of a level line is none."""
        swing_w = self.peak_w - self.low_w
        return swing_w if swing_w > LEVEL * abs(self.peak_w) else 0.0

    @property
    def is_flat(self) -> bool:
        """Whether a meter sees no swing."""
        return self.swing_w <= FLAT * self.peak_w

    @property
    def ramp_w_per_s(self) -> float:
        """The fastest rise or fall between two samples."""
        return float(np.abs(np.diff(self.power_w, append=self.power_w[0])).max() / self.step_s)

    def plus(self, power_w: float) -> Trace:
        """The same with something beside it that draws the same all the time."""
        return msgspec.structs.replace(self, power_w=self.power_w + power_w)

    def times(self, factor: float) -> Trace:
        """The same, so many times."""
        return msgspec.structs.replace(self, power_w=self.power_w * factor)


def step_trace(
    timeline: Timeline,
    levels_w: Mapping[str, float],
    *,
    time_constant_s: float,
    resolution_s: float = RESOLUTION_S,
) -> Trace:
    """All chips of a step together, each drawing so much in each phase [W], behind supplies of a time constant [s].

    Each sample is the mean over its time, so that the energy is that of the phases whatever the resolution.
    """
    wanted = round(timeline.step_s / resolution_s)
    edges_s = np.linspace(0.0, timeline.step_s, min(MOST_SAMPLES, max(LEAST_SAMPLES, wanted)) + 1)
    energy_j = np.zeros(edges_s.size)
    for group in timeline.groups:
        until_s = np.array([0.0, *(span.end_s for span in group.spans)])
        spent_j = np.array([levels_w[span.phase] * (span.end_s - span.start_s) for span in group.spans])
        energy_j += group.num_chips * np.interp(edges_s, until_s, np.append(0.0, np.cumsum(spent_j)))
    sampled = Trace(period_s=timeline.step_s, power_w=np.diff(energy_j) / np.diff(edges_s))
    return low_pass(sampled, time_constant_s)


def low_pass(trace: Trace, time_constant_s: float) -> Trace:
    """The same behind a filter of the first order, which has run for long.

        y_n = a y_(n−1) + (1 − a) x_n        a = exp(−Δt/τ)

    That is what a capacitor behind a resistor makes of samples that are level, and it never overshoots.
    """
    if time_constant_s <= 0:
        return trace
    kept = np.exp(-trace.step_s / time_constant_s)
    delay = np.exp(-2j * np.pi * np.fft.rfftfreq(trace.power_w.size))
    passed = np.fft.rfft(trace.power_w) * ((1.0 - kept) / (1.0 - kept * delay))
    return msgspec.structs.replace(trace, power_w=np.fft.irfft(passed, trace.power_w.size))


def together(trace: Trace, *, coherence_fraction: float, num_nodes: int) -> Trace:
    """A sum of nodes that are in step as far as `coherence_fraction` says; 1 leaves it as it is.

    >>> wave = Trace(period_s=1.0, power_w=np.array([0.0, 2.0]))
    >>> together(wave, coherence_fraction=0.0, num_nodes=4).power_w.tolist()
    [0.5, 1.5]
    """
    shrunk = coherence_factor(coherence_fraction, num_nodes)
    return msgspec.structs.replace(trace, power_w=trace.mean_w + shrunk * (trace.power_w - trace.mean_w))


def coherence_factor(coherence_fraction: float, num_nodes: int) -> float:
    """The swing of a sum of nodes over that of nodes in step: √(ρ + (1 − ρ)/n)."""
    return float(np.sqrt(coherence_fraction + (1.0 - coherence_fraction) / num_nodes))
