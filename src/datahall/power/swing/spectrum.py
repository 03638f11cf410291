"""At which frequencies a site's power swings, and how much of that is where grids and turbines resonate.

A step that repeats has the frequencies k/T.  By Parseval's theorem the mean square of the swing is the sum over them:

    mean (P − mean)²  =  Σ a_k² / 2            a_k the amplitude at k/T

Modes of a grid between areas lie at 0.2 to 0.8 Hz, those between plants and of shafts up to some 3 Hz.
Reference: Kundur (1994), Power system stability and control; power stabilization for AI training datacenters (2025).
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.power.swing.timeline import Floats
from datahall.power.swing.trace import Trace

RISKY_HZ = (0.2, 3.0)


class Spectrum(msgspec.Struct, frozen=True, kw_only=True):
    """Amplitudes of the frequencies of a trace, the mean left out."""

    frequencies_hz: Floats
    amplitudes_w: Floats

    @property
    def dominant_hz(self) -> float:
        """The frequency with the largest amplitude."""
        return float(self.frequencies_hz[np.argmax(self.amplitudes_w)])

    @property
    def rms_w(self) -> float:
        """Root of the mean square of the swing."""
        return float(np.sqrt((self.amplitudes_w**2).sum() / 2.0))

    @property
    def band_rms_w(self) -> float:
        """The part of it where grids and turbines resonate."""
        return float(np.sqrt((self.amplitudes_w[self._risky] ** 2).sum() / 2.0))

    @property
    def band_fraction(self) -> float:
        """The share of the swing's energy that lies there."""
        return (self.band_rms_w / self.rms_w) ** 2 if self.rms_w else 0.0

    @property
    def _risky(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        low_hz, high_hz = RISKY_HZ
        return np.asarray((self.frequencies_hz >= low_hz) & (self.frequencies_hz <= high_hz))


def spectrum(trace: Trace) -> Spectrum:
    """The amplitudes of a trace, one side.

    >>> wave = 5e6 + 2e6 * np.sin(2 * np.pi * np.arange(1000) / 1000)
    >>> found = spectrum(Trace(period_s=4.0, power_w=wave))
    >>> round(found.dominant_hz, 3), round(float(found.amplitudes_w.max()))
    (0.25, 2000000)
    """
    num = trace.power_w.size
    sides = np.abs(np.fft.rfft(trace.power_w))[1:] * 2.0 / num
    if num % 2 == 0:
        sides[-1] /= np.sqrt(2.0)  # the highest has no second side
    frequencies_hz = np.asarray(np.fft.rfftfreq(num, trace.step_s)[1:], dtype=np.float64)
    return Spectrum(frequencies_hz=frequencies_hz, amplitudes_w=sides)
