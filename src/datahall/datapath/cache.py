"""How much of a data set the memory of a host answers, when every epoch deals all samples out in a new random order.

With f = cache of a host / data set, and H hosts that each read 1/H of it in an epoch:

    pinned   a part stays for good:                     f     (MinIO of Mohan et al.)
    lru      what was read longest ago goes first:      Σ_k (1/H)·(1 − 1/H)^(k−1) · P(a·b > t_k)
             t_k = (1 − f)/(1 − 1/H)^(k−1), a and b uniform from 1 − 1/H to 1

A host reads a sample again after k epochs with that first chance.  It was at place u of its epoch then and is at v now;
what the host read in between leaves out a share a·b·(1 − 1/H)^(k−1) of the data, a = 1 − (1 − u)/H and b = 1 − v/H, and
the sample is still there if the rest is less than f.  For one host the sum is f + (1 − f)·ln(1 − f): half a data set in
memory answers 15 % of the reads.  For many it is f, as if samples were drawn at random.  Read in the same order every
time, LRU answers nothing until all of it fits.

Reference: Mohan et al. (VLDB 2021), section 4; Mattson et al. (1970) for stack distances.
"""

from __future__ import annotations

from math import log

from datahall.scenario.words import Keeping, Shuffle


def hit_fraction(
    cache_bytes: float,
    dataset_bytes: float,
    keeping: Keeping,
    shuffle: Shuffle = "random",
    num_hosts: int = 1,
) -> float:
    """The share of its reads that a host's cache answers once it is warm.

    Parameters: cache of one host [B], the data set [B], hosts that share each epoch.

    >>> hit_fraction(50, 100, "pinned"), round(hit_fraction(50, 100, "lru"), 3), hit_fraction(100, 100, "lru")
    (0.5, 0.153, 1.0)
    >>> [round(hit_fraction(50, 100, "lru", num_hosts=hosts), 2) for hosts in (2, 8, 1000)]
    [0.31, 0.47, 0.5]
    """
    share = min(1.0, cache_bytes / dataset_bytes)
    if keeping == "pinned" or share in (0.0, 1.0):
        return share
    if shuffle == "none":
        return 0.0
    left = 1.0 - 1.0 / num_hosts  # of the data, that a host does not read in an epoch
    found, again, threshold = 0.0, 1.0 / num_hosts, 1.0 - share
    while threshold < 1.0:
        found += again * _chance(threshold, left)
        if left == 0.0:
            break
        again, threshold = again * left, threshold / left
    return found


def _chance(threshold: float, low: float) -> float:
    """The chance that the product of two numbers, uniform from `low` to 1, is above a threshold.

    >>> _chance(0.2, 0.5), round(_chance(0.5, 0.0), 4), round(_chance(0.5, 0.5), 4)
    (1.0, 0.1534, 0.6137)
    """
    if threshold <= low**2:
        return 1.0
    if threshold >= low:
        area = 1.0 - threshold + threshold * log(threshold)
    else:
        edge = threshold / low
        area = edge - low - threshold * log(edge / low) + (1.0 - edge) * (1.0 - low)
    return area / (1.0 - low) ** 2
