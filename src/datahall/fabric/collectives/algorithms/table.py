"""The table of NCCL's algorithms: one row says all of one, and whatever runs, weighs, shows or bounds one reads it.

Times, NCCL's estimates and the chains that are shown are functions of `nccl`, `tuner` and `figure`; what leaves a part
of the ranks, of `sent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from datahall.fabric.collectives import figure, nccl, tuner
from datahall.fabric.collectives.algorithms import sent as sending
from datahall.fabric.collectives.algorithms.bus import Floats, Number
from datahall.fabric.collectives.algorithms.moves import MOVES, NUMBER_BYTES, Way
from datahall.fabric.collectives.figure import Ask, Told
from datahall.fabric.collectives.nccl import Run
from datahall.fabric.collectives.system import System
from datahall.fabric.collectives.tuner import PROTOCOLS, Setting
from datahall.fabric.topology.graph import Ints
from datahall.scenario.words import Collective, NcclAlgo

Pair = tuple[str, str]  # an algorithm's name and a protocol
SIMPLE = "Simple"  # the protocol of what has but one


class Algorithm(NamedTuple):
    """One algorithm."""

    name: str  # as answers say it
    word: NcclAlgo | None  # as an input says it; None: NCCL cannot be limited to it
    of: tuple[Collective, ...]  # what it runs
    ways: tuple[Way, ...]  # what its functions compute, and the collectives in `of` with it
    time: Callable[[Run, Floats], Floats | None]  # [s]; None: NCCL does not have it on this machine
    # NCCL's own estimate [s], or None where it weighs none
    estimate: Callable[[Setting, Collective, str, Floats], Floats | None] | None
    chain: Callable[[Ask, int], Told]  # the time as it is shown
    steps: Callable[[Run], float]  # that follow one another
    sends: sending.Sending  # over narrow places
    protocols: tuple[str, ...] = (SIMPLE,)  # where these are several, the one that is taken is said
    since: tuple[int, int] = (0, 0)  # version of NCCL


_ROWS = (
    Algorithm(
        "ring", "ring", ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce"), ("shares", "copy"),
        nccl.ring, tuner.ring, figure.ring, nccl.ring_steps, sending.RING, protocols=PROTOCOLS,
    ),
    Algorithm(
        "tree", "tree", ("all-reduce",), ("shares",), nccl.tree, tuner.tree, figure.tree, nccl.tree_steps,
        sending.TREES, protocols=PROTOCOLS, since=(2, 4),
    ),
    Algorithm(
        "NVLS", "nvls", ("all-reduce",), ("shares",), nccl.nvls, tuner.nvls, figure.nvls, nccl.nvls_steps,
        sending.RING,  # of one domain, which no part divides
        since=(2, 17),
    ),
    Algorithm(
        "NVLS tree", "nvls-tree", ("all-reduce",), ("shares",), nccl.nvls_tree, tuner.nvls_tree, figure.nvls_tree,
        nccl.nvls_tree_steps, sending.TREES, since=(2, 18),
    ),
    Algorithm(
        "PAT", "pat", ("all-gather", "reduce-scatter"), ("shares",), nccl.pat, tuner.pat, figure.pat, nccl.pat_levels,
        sending.PAT,
        since=(2, 23),
    ),
    Algorithm(
        "direct", None, ("all-to-all", "send-recv"), ("pieces", "message"), nccl.direct, None, figure.direct,
        nccl.direct_steps, sending.DIRECT,
    ),
)  # fmt: skip
ALGORITHMS: dict[str, Algorithm] = {one.name: one for one in _ROWS}


def name_of(word: str) -> str:
    """The name of what an input asks for.

    >>> name_of("nvls-tree")
    'NVLS tree'
    """
    return next(one.name for one in ALGORITHMS.values() if one.word == word)


def words_of(names: set[str]) -> list[str]:
    """How an input asks for each, if it can, in order of the alphabet.

    >>> words_of({"PAT", "direct", "NVLS"})
    ['nvls', 'pat']
    """
    return sorted(one.word for one in ALGORITHMS.values() if one.word is not None and one.name in names)


def spoken(pair: Pair) -> str:
    """Algorithm and protocol in words; on a torus there is no protocol.

    >>> spoken(("ring", "LL")), spoken(("NVLS", "Simple")), spoken(("bucket", ""))
    ('ring LL', 'NVLS', 'bucket')
    """
    name, protocol = pair
    one = ALGORITHMS.get(name)
    return f"{name} {protocol}" if one is not None and len(one.protocols) > 1 else name


def _pairs(collective: Collective, version: tuple[int, int]) -> list[tuple[Algorithm, str]]:
    """What a version of NCCL has for a collective, by protocol."""
    return [
        (one, protocol)
        for protocol in PROTOCOLS
        for one in ALGORITHMS.values()
        if collective in one.of and protocol in one.protocols and version >= one.since
    ]


def times(system: System, collective: Collective, size_bytes: Floats, num_ranks: int) -> dict[Pair, Floats]:
    """Return the time [s] of every algorithm and protocol that NCCL has for a collective."""
    other = MOVES[collective].stands_for
    if other is not None:
        return times(system, other, np.full_like(size_bytes, NUMBER_BYTES), num_ranks)
    found = {
        (one.name, protocol): one.time(Run(system, collective, num_ranks, protocol), size_bytes)
        for one, protocol in _pairs(collective, system.version)
    }
    return {pair: time + system.harness_s for pair, time in found.items() if time is not None}


def estimates(setting: Setting, collective: Collective, size_bytes: Number) -> dict[Pair, Floats]:
    """Return NCCL's own estimate [s] of every pair it weighs, on arrays of sizes."""
    size = np.atleast_1d(np.asarray(size_bytes, dtype=np.float64))
    other = MOVES[collective].stands_for
    if other is not None:
        return estimates(setting, other, np.full_like(size, NUMBER_BYTES))
    found = {
        (one.name, protocol): one.estimate(setting, collective, protocol, size)
        for one, protocol in _pairs(collective, setting.version)
        if one.estimate is not None
    }
    return {pair: time for pair, time in found.items() if time is not None}


def closed_form(ask: Ask, algorithm: str, protocol: str) -> Told:
    """The time of an algorithm and protocol that NCCL has, as `times` computes it, as a chain."""
    other = MOVES[ask.collective].stands_for
    if other is not None:
        ask = ask._replace(collective=other, size=figure.one_number(ask.collective))
    return ALGORITHMS[algorithm].chain(ask, PROTOCOLS.index(protocol))


def num_steps(system: System, collective: Collective, algorithm: str, num_ranks: int) -> float:
    """Steps that follow one another: a ring counts ranks, a tree levels, a switch none."""
    runs = MOVES[collective].stands_for or collective
    return ALGORITHMS[algorithm].steps(Run(system, runs, num_ranks, ""))


def sent(
    collective: Collective, algorithm: str, num_ranks: int, num_domain: int, first: Ints, last: Ints
) -> Floats:
    """Return what leaves each part [first, last) of the ranks, over the size of the array.

    >>> half, whole = np.array([4, 0]), np.array([8, 8])
    >>> [sent("all-reduce", name, 8, 2, half, whole).tolist() for name in ("ring", "tree")]
    [[1.75, 0.0], [2.0, 0.0]]
    """
    across = (last > first) & (last - first < num_ranks)
    return np.where(
        across, ALGORITHMS[algorithm].sends.out(collective, num_ranks, num_domain, first, last), 0.0
    )


def sent_between(
    collective: Collective, algorithm: str, num_ranks: int, num_domain: int, num_part: int
) -> float:
    """Return the most that one part of so many ranks sends to another, over the size of the array."""
    return ALGORITHMS[algorithm].sends.between(collective, num_ranks, num_domain, num_part)
