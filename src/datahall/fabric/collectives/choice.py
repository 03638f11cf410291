"""One collective on one system: what runs, how long it takes, why, and where the answer flips."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from datahall.basis import Basis
from datahall.errors import ScenarioError, option
from datahall.fabric.collectives import tuner
from datahall.fabric.collectives.algorithms.bus import (
    COLLECTIVES,
    Collective,
    Floats,
    Number,
    algorithm_bandwidth,
    bus_bandwidth,
)
from datahall.fabric.collectives.algorithms.moves import MOVES, Moves
from datahall.fabric.collectives.algorithms.table import Pair, estimates, spoken, times, words_of
from datahall.fabric.collectives.crossing import least_s
from datahall.fabric.collectives.system import System

SMALLEST_BYTES, LARGEST_BYTES = 1024.0, 64 * 2.0**30
POINTS_PER_DOUBLING = 8
MEASURED_RANKS = 8  # of the domains that constants were measured in
# times the fastest that NCCL's choice takes by our constants; it was up to 1.45 in the ledger's 191 rows of NCCL
MOST_MISJUDGED = 1.5


class Candidate(msgspec.Struct, frozen=True):
    """An algorithm and protocol with its time, and what NCCL's tuner thinks of it."""

    algorithm: str
    protocol: str
    time_s: float
    estimate_s: float | None  # None: it weighs none


class Crossover(msgspec.Struct, frozen=True):
    """A size from which another algorithm runs."""

    size_bytes: float
    before: str
    after: str


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one size."""

    collective: Collective
    size_bytes: float
    num_ranks: int
    algorithm: str
    protocol: str
    time_s: float
    latency_s: float  # what the smallest message takes with the same algorithm and protocol
    level: Basis
    candidates: tuple[Candidate, ...]
    crossovers: tuple[Crossover, ...]

    @property
    def moves(self) -> Moves:
        """What is known of the collective."""
        return MOVES[self.collective]

    @property
    def is_estimated_least(self) -> bool:
        """Whether NCCL's own estimate is the smallest for what is taken."""
        weighed = [one for one in self.candidates if one.estimate_s is not None]
        least = min(weighed, key=lambda one: one.estimate_s or 0.0, default=None)
        return least is None or (least.algorithm, least.protocol) == (self.algorithm, self.protocol)

    @property
    def latency_fraction(self) -> float:
        """The part of the time that steps take whatever the size."""
        return self.latency_s / self.time_s

    @property
    def moving_fraction(self) -> float:
        """The part of the time that moves bytes."""
        return 1.0 - self.latency_fraction

    @property
    def algbw_bytes_per_s(self) -> float:
        return float(algorithm_bandwidth(self.size_bytes, self.time_s))

    @property
    def busbw_bytes_per_s(self) -> float:
        return float(bus_bandwidth(self.collective, self.size_bytes, self.time_s, float(self.num_ranks)))


def collective_times(
    system: System, collective: Collective, size_bytes: Number, num_ranks: int, *, only: Iterable[str] = (),
    without: Iterable[str] = (),
) -> tuple[Floats, list[Pair]]:  # fmt: skip
    """Return the times [s] and the chosen (algorithm, protocol) for an array of sizes.

    Never less than the narrowest place on the way needs for what the algorithm sends.  NCCL does not know of it when it
    chooses, and is followed as far as `misjudged_ratio` says of the times that come of it.
    """
    _check(collective, size_bytes)
    size = np.atleast_1d(np.asarray(size_bytes, dtype=np.float64))
    possible = times(system, collective, size, num_ranks)
    pairs = _chosen(system, collective, size, num_ranks, possible, only, without)
    bounded = {
        pair: _bounded(system, collective, size, num_ranks, pair, possible[pair]) for pair in set(pairs)
    }
    return np.array([bounded[pair][index] for index, pair in enumerate(pairs)]), pairs


def choose_collective(
    system: System, collective: Collective, size_bytes: float, num_ranks: int, *, only: Iterable[str] = ()
) -> Choice:
    """Return the answer for one size with every alternative and the sizes at which the choice changes."""
    only = tuple(only)
    time, pairs = collective_times(system, collective, size_bytes, num_ranks, only=only)
    size = np.array([float(size_bytes)])
    own = times(system, collective, size, num_ranks)
    possible = {
        pair: _bounded(system, collective, size, num_ranks, pair, found) for pair, found in own.items()
    }
    thought = _estimates(system, collective, size, num_ranks)
    smallest = times(system, collective, np.array([8.0]), num_ranks)[pairs[0]]
    return Choice(
        collective=collective,
        size_bytes=float(size_bytes),
        num_ranks=num_ranks,
        algorithm=pairs[0][0],
        protocol=pairs[0][1],
        time_s=float(time[0]),
        latency_s=float(min(smallest[0], time[0])),
        level=system.level(num_ranks),
        candidates=tuple(
            sorted(
                (
                    Candidate(*pair, float(found[0]), float(thought[pair][0]) if pair in thought else None)
                    for pair, found in possible.items()
                ),
                key=lambda one: one.time_s,
            )
        ),
        crossovers=crossovers(system, collective, num_ranks, only=only),
    )


def crossovers(
    system: System,
    collective: Collective,
    num_ranks: int,
    *,
    only: Iterable[str] = (),
) -> tuple[Crossover, ...]:
    """Return the sizes from 1 KB to 64 GB at which another algorithm or protocol takes over."""
    doublings = int(np.log2(LARGEST_BYTES / SMALLEST_BYTES))
    sizes = SMALLEST_BYTES * 2.0 ** (np.arange(doublings * POINTS_PER_DOUBLING + 1) / POINTS_PER_DOUBLING)
    _, pairs = collective_times(system, collective, sizes, num_ranks, only=only)
    return tuple(
        Crossover(float(sizes[index]), spoken(pairs[index - 1]), spoken(pairs[index]))
        for index in range(1, len(pairs))
        if pairs[index] != pairs[index - 1]
    )


def band_name(system: System, num_ranks: int) -> str:
    """The band of the constants that a prediction rests on: measured over predicted at P10 and P90."""
    _, domains = system.shape(num_ranks)
    return f"{'inside' if domains == 1 else 'across'} {system.level(num_ranks)}"


def misjudged_ratio(system: System, num_ranks: int) -> float:
    """Times the fastest that what NCCL takes may be by our constants, for NCCL to be believed to take it.

    Where both were measured its mistakes are real.  Elsewhere its estimate or our constants are wrong once it seems to
    choose worse than anybody saw, and where nothing was measured the two are from different books: then the fastest
    is taken, whose time never falls as arrays grow.
    """
    level = system.level(num_ranks)
    if level == "measured" and num_ranks <= MEASURED_RANKS:
        return float("inf")
    return 1.0 if level == "datasheet only" else MOST_MISJUDGED


def _bounded(
    system: System, collective: Collective, size: Floats, num_ranks: int, pair: Pair, time_s: Floats
) -> Floats:
    return np.maximum(time_s, least_s(system, collective, size, num_ranks, pair[0]))


def _chosen(
    system: System, collective: Collective, size: Floats, num_ranks: int,
    possible: dict[Pair, Floats], only: Iterable[str], without: Iterable[str],
) -> list[Pair]:  # fmt: skip
    thought = {
        pair: time
        for pair, time in _estimates(system, collective, size, num_ranks).items()
        if pair in possible
    }
    wanted = set(only) & {pair[0] for pair in possible}
    if only and not wanted:
        known = words_of({pair[0] for pair in possible})
        raise ScenarioError(
            f"NCCL {'.'.join(map(str, system.version))} has no {' or '.join(only)} for {collective} on "
            f"{system.name}",
            field="algorithm",
            hint=f"one of {', '.join(known)}" if known else f"leave {option('algorithm')} out",
        )
    thought = tuner.allowed(thought or possible, wanted, without)
    times_s = {pair: _bounded(system, collective, size, num_ranks, pair, possible[pair]) for pair in thought}
    most_s = misjudged_ratio(system, num_ranks) * np.min(list(times_s.values()), axis=0)
    return tuner.choose({pair: np.where(times_s[pair] <= most_s, thought[pair], np.inf) for pair in thought})


def _estimates(system: System, collective: Collective, size: Floats, num_ranks: int) -> dict[Pair, Floats]:
    return estimates(system.setting(num_ranks), collective, size) if system.library == "nccl" else {}


def _check(collective: str, size_bytes: Number) -> None:
    if collective not in COLLECTIVES:
        raise ScenarioError(f'"{collective}" is not a collective', hint=f"one of {', '.join(COLLECTIVES)}")
    if np.any(np.asarray(size_bytes) < 0) or not np.all(np.isfinite(size_bytes)):
        raise ScenarioError(
            "a size must be a number of bytes of 0 or more",
            field="size",
            hint=f"e.g. {option('size', '1GB')}",
        )
