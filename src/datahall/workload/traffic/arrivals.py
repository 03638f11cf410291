"""Open-loop arrivals: when requests come, whatever the service does.

A process of unit rate (gaps with mean 1) is drawn first and then read on a clock that runs faster when the rate is
higher: the arrival of operational time u is at Λ⁻¹(u), Λ(t) = ∫ rate dt (Çinlar, "Introduction to
stochastic processes", 1975, §7).  For Poisson gaps this is the inhomogeneous Poisson process exactly, as thinning would
give, without throwing draws away; gamma gaps keep their burstiness through the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
import numpy as np

from datahall.errors import ScenarioError
from datahall.events import stream
from datahall.units import DAY_S
from datahall.workload.traffic.requests import CHUNK_ROWS, Floats
from datahall.workload.traffic.shapes import PEAK_S, check_day

Gaps = Literal["poisson", "gamma", "constant", "at-once"]
NUM_DAY_STEPS = (
    1440  # a sinusoid is held for a minute: its mean is exact, its slope within the minute is not kept
)


class Arrivals(msgspec.Struct, frozen=True, kw_only=True):
    """How requests come: mean rate, spread of the gaps, and how the rate itself moves."""

    rate_per_s: float
    gaps: Gaps = "poisson"
    variation_ratio: float = 1.0  # gamma gaps: standard deviation / mean; 1 is Poisson, above 1 is bursty
    hourly_factor: tuple[float, ...] = ()  # 24 factors of the rate by hour of day; scaled to a mean of 1
    swing_fraction: float = (
        0.0  # sinusoid over a day: rate × (1 + swing × sin), highest `peak_s` after the start
    )
    peak_s: float = PEAK_S
    on_s: float = 0.0  # Markov-modulated: mean length of a busy time, exponential …
    off_s: float = 0.0  # … and of a quiet one; 0: not modulated
    quiet_ratio: float = 0.0  # rate of a quiet time over that of a busy one; 0: on–off

    def __post_init__(self) -> None:
        _check(self)

    @property
    def is_daily(self) -> bool:
        """Whether the rate moves over a day."""
        return bool(self.hourly_factor) or self.swing_fraction > 0

    @property
    def clump(self) -> float:
        """Requests that come together: the squared variation of the gaps, 1 of Poisson ones, 0 of equal ones."""
        return {"poisson": 1.0, "gamma": self.variation_ratio**2}.get(self.gaps, 0.0)

    def shared(self, part: float) -> Arrivals:
        """The gaps at a part of those who share what comes, each request any one's, at this rate.

        clump of a part = 1 + (clump − 1) · part        as of a renewal process of which a part is kept

        >>> round(Arrivals(rate_per_s=100.0, gaps="gamma", variation_ratio=10.0).shared(0.1).clump, 9)
        10.9
        """
        if part >= 1.0 or self.gaps not in {"gamma", "constant"}:
            return self
        variation = (1.0 + (self.clump - 1.0) * part) ** 0.5
        return msgspec.structs.replace(self, gaps="gamma", variation_ratio=variation)


def _check(arrivals: Arrivals) -> None:
    at_once = arrivals.gaps == "at-once"
    if not at_once and not 0.0 < arrivals.rate_per_s < np.inf:
        raise ScenarioError(
            f"a rate of {arrivals.rate_per_s:g} requests/s cannot be sent",
            field="rate",
            hint='give a positive number, e.g. 80; "at-once" arrivals send all requests at time 0',
        )
    if arrivals.variation_ratio <= 0.0:
        raise ScenarioError(
            f"gaps with a coefficient of variation of {arrivals.variation_ratio:g}",
            field="burstiness",
            hint="1 is Poisson, 2 to 4 is bursty; for equal gaps ask for constant arrivals",
        )
    check_day(arrivals.hourly_factor)
    if not 0.0 <= arrivals.swing_fraction <= 1.0:
        raise ScenarioError(
            f"a daily swing of {arrivals.swing_fraction:g}",
            field="swing",
            hint="0 is a flat day, 1 is nothing at night",
        )
    if min(arrivals.on_s, arrivals.off_s, arrivals.quiet_ratio) < 0 or (arrivals.on_s > 0) != (
        arrivals.off_s > 0
    ):
        raise ScenarioError(
            f"busy for {arrivals.on_s:g} s, a lull for {arrivals.off_s:g} s at {arrivals.quiet_ratio:g} of the rate",
            field="busy",
            hint="give both times, positive, and a ratio of 0 (silence) to 1",
        )
    daily = bool(arrivals.hourly_factor) + (arrivals.swing_fraction > 0) + (arrivals.on_s > 0)
    if daily > 1 or (daily and at_once):
        raise ScenarioError(
            "the rate can move in one way only",
            field="rate",
            hint="choose hourly factors, a daily swing or on–off times; none of them with at-once arrivals",
        )


def arrival_times(arrivals: Arrivals, seed: int, num: int, duration_s: float) -> Iterator[Floats]:
    """Times in columns of at most 65,536, until `num` of them or the end of `duration_s`, whichever is first."""
    if not num and (not duration_s or arrivals.gaps == "at-once"):
        raise ScenarioError(
            "arrivals without an end",
            field="requests",
            hint="give a number of requests; all at once, a duration ends nothing"
            if arrivals.gaps == "at-once"
            else "give a number of requests or a duration",
        )
    clock = _clock(arrivals, seed)
    sent = 0
    for operational in _operational(arrivals, seed):
        times = clock(operational)
        if num:
            times = times[: num - sent]
        if duration_s:
            times = times[: int(np.searchsorted(times, duration_s, side="left"))]
        if times.size:
            yield times
        sent += times.size
        if times.size < CHUNK_ROWS or sent == num:
            return


def _operational(arrivals: Arrivals, seed: int) -> Iterator[Floats]:
    """Running sums of gaps with mean 1."""
    random = stream(seed, "arrivals")
    shape = 1.0 / arrivals.variation_ratio**2
    passed = 0.0
    while True:
        if arrivals.gaps in {"constant", "at-once"}:
            yield passed + np.arange(CHUNK_ROWS, dtype=np.float64)
            passed += CHUNK_ROWS
            continue
        if arrivals.gaps == "poisson":
            gaps = random.standard_exponential(CHUNK_ROWS)
        else:
            gaps = random.standard_gamma(shape, CHUNK_ROWS) / shape
        gaps[0] += passed
        times = np.cumsum(gaps, out=gaps)
        passed = float(times[-1])
        yield times


def _clock(arrivals: Arrivals, seed: int) -> Callable[[Floats], Floats]:
    rate = arrivals.rate_per_s
    if arrivals.gaps == "at-once":
        return np.zeros_like
    if arrivals.on_s > 0:
        return OnOffClock(arrivals, seed)
    factors = np.array(arrivals.hourly_factor, np.float64)
    if arrivals.swing_fraction > 0:
        minutes = (np.arange(NUM_DAY_STEPS) + 0.5) * DAY_S / NUM_DAY_STEPS
        factors = 1.0 + arrivals.swing_fraction * np.cos(2 * np.pi * (minutes - arrivals.peak_s) / DAY_S)
    if not factors.size:
        return lambda operational: operational / rate
    work = np.concatenate(([0.0], np.cumsum(factors / factors.mean() * rate * DAY_S / factors.size)))
    times = np.linspace(0.0, DAY_S, factors.size + 1)

    def day_clock(operational: Floats) -> Floats:
        days, rest = np.divmod(operational, work[-1])
        return days * DAY_S + read_clock(work, times, rest)

    return day_clock


def read_clock(work: Floats, times: Floats, operational: Floats) -> Floats:
    """The time at which the integral of a piecewise constant rate reaches each value; where the rate is 0, at its end.

    >>> read_clock(np.array([0.0, 2.0, 2.0, 3.0]), np.array([0.0, 1.0, 5.0, 6.0]), np.array([1.0, 2.0, 2.5])).tolist()
    [0.5, 5.0, 5.5]
    """
    place = np.clip(np.searchsorted(work, operational, side="right") - 1, 0, work.size - 2)
    step = work[place + 1] - work[place]
    share = np.divide(operational - work[place], step, out=np.zeros_like(operational), where=step > 0)
    return np.asarray(times[place] + share * (times[place + 1] - times[place]))


class OnOffClock:
    """Busy and quiet times drawn as they are needed; the mean rate over both is the one asked for."""

    def __init__(self, arrivals: Arrivals, seed: int) -> None:
        self.random = stream(seed, "arrivals", "on-off")
        self.means_s = np.array([arrivals.on_s, arrivals.off_s])
        share_on = arrivals.on_s / (arrivals.on_s + arrivals.off_s)
        busy = arrivals.rate_per_s / (share_on + (1.0 - share_on) * arrivals.quiet_ratio)
        self.rates = np.array([busy, busy * arrivals.quiet_ratio])
        # A run starts in the state it would be found in, so that its mean is right from the first second.
        self.first = int(self.random.random() >= share_on)
        self.work, self.times = np.zeros(1), np.zeros(1)

    def __call__(self, operational: Floats) -> Floats:
        while self.work[-1] <= operational[-1]:
            self._draw()
        kept = max(0, int(np.searchsorted(self.work, operational[0], side="right")) - 1)
        self.work, self.times = self.work[kept:], self.times[kept:]
        return read_clock(self.work, self.times, operational)

    def _draw(self) -> None:
        # An even number of states, so that every batch begins with the same one.
        states = (self.first + np.arange(4096)) % 2
        lengths_s = self.random.standard_exponential(states.size) * self.means_s[states]
        self.times = np.concatenate((self.times, self.times[-1] + np.cumsum(lengths_s)))
        self.work = np.concatenate((self.work, self.work[-1] + np.cumsum(lengths_s * self.rates[states])))
