"""How long a chip waits for its next batch, with so many batches ready ahead of it.

A loader makes batches one after the other, each in a time with mean f and coefficient of variation v, and stops while
`num_prefetch` of them lie ready.  The chip works c on each.

    nothing ready ahead     step = c + f
    always the same time    step = max(c, f)
    else                    made of k = 1/v² exponential phases: the phases that are done when a step begins are a
                            Markov chain, since c lets a Poisson number of them pass (an E_k/D/1/K queue), and a step
                            lasts c and what is missing of the first batch

So storage that is fast enough on average still stalls a chip, by what its variation is and the buffer does not hold.

Reference: Kleinrock (1975), Queueing Systems I, chapter 4 (the method of stages).
"""

from __future__ import annotations

from functools import lru_cache
from math import floor, inf, sqrt

import numpy as np
from numpy.typing import NDArray

MOST_PHASES = 25  # of the chain; what varies less is taken between this and nothing
LEAST_VARIATION = 1.0 / sqrt(MOST_PHASES)
MOST_STATES = 96  # of the chain; a deeper buffer is as good as this one


def utilisation(step_s: float, fetch_s: float, num_prefetch: int, variation: float) -> float:
    """The share of its time that a chip works.

    Parameters: work on a batch [s], mean time to make one [s], batches that may lie ready, coefficient of variation of
    the time to make one.

    >>> utilisation(1.0, 1.0, 0, 0.0), utilisation(1.0, 0.5, 1, 0.0), round(utilisation(1.0, 1.0, 1, 1.0), 3)
    (0.5, 1.0, 0.731)
    """
    if fetch_s <= 0.0 or fetch_s == inf:
        return 1.0 if fetch_s <= 0.0 else 0.0
    if num_prefetch == 0:
        return step_s / (step_s + fetch_s)
    steady = min(1.0, step_s / fetch_s)
    if variation <= LEAST_VARIATION:  # what is missed shrinks with what varies
        missed = steady - min(steady, _chain(step_s / fetch_s, num_prefetch, MOST_PHASES))
        return steady - missed * variation / LEAST_VARIATION
    phases = 1.0 / variation**2
    low = max(1, floor(phases))
    part = min(1.0, max(0.0, phases - low))  # between two whole numbers of phases
    found = (1.0 - part) * _chain(step_s / fetch_s, num_prefetch, low)
    found += part * _chain(step_s / fetch_s, num_prefetch, low + 1) if part else 0.0
    return min(steady, found)


@lru_cache(maxsize=4096)
def _chain(ratio: float, num_prefetch: int, phases: int) -> float:
    """Work over step time, of time to make a batch in whole phases; `ratio` is c/f.

    A state is how many phases are done as the chip looks for its next batch.
    """
    depth = min(num_prefetch, max(1, MOST_STATES // phases))
    full = depth * phases
    passed = _poisson(ratio * phases, full)
    ready = np.maximum(np.arange(full + 1) - phases, 0)  # beyond the batch that is taken
    more = np.arange(full + 1) - ready[:, None]
    move = np.where(more >= 0, passed[np.maximum(more, 0)], 0.0)
    move[:, full] = np.maximum(0.0, 1.0 - move[:, :full].sum(1))
    balance = move.T - np.eye(full + 1)
    balance[full] = 1.0
    share = np.linalg.solve(balance, np.eye(full + 1)[full])
    missing = float(share[:phases] @ np.arange(phases, 0, -1))
    return ratio / (ratio + missing / phases)


def _poisson(mean: float, num_terms: int) -> NDArray[np.float64]:
    """Chances of 0, 1, … events."""
    counts = np.arange(num_terms + 1)
    chances: NDArray[np.float64] = np.exp(
        counts * np.log(mean) - mean - np.cumsum(np.log(np.maximum(counts, 1)))
    )
    return chances
