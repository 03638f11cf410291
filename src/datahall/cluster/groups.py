"""How long groups of ranks take for a collective, whatever joins them, as columns over many layouts.

Ranks are numbered with the innermost axis of a layout first, as Megatron places them, so a group of n ranks whose
neighbours are `stride` apart has min(n, domain/stride) of them in one scale-up domain, and shares every way out of a
leaf or a pod with the groups between its ranks, which do the same at the same time.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from datahall.cluster.distinct import unique_rows
from datahall.fabric.collectives.algorithms.bus import Collective, Floats
from datahall.fabric.collectives.algorithms.torus import torus_times
from datahall.fabric.collectives.choice import collective_times
from datahall.fabric.collectives.crossing import least_s
from datahall.fabric.collectives.system import System

REMEMBERED = 4096  # a plan asks for about 500


def group_times(
    system: System, collective: Collective, size_bytes: Floats, ranks: Floats, stride: Floats
) -> Floats:
    """Times [s] of a collective on groups of `ranks` ranks `stride` apart; one rank takes no time."""
    sizes, counts, strides = (
        np.asarray(x, dtype=np.float64) for x in np.broadcast_arrays(size_bytes, ranks, stride)
    )
    farthest = max((system.num_domain, *(cut.num_below for cut in system.cuts)))
    kinds, index = unique_rows((counts, np.minimum(strides, farthest)))
    out = np.zeros(sizes.shape)
    for place, (count, step) in enumerate(kinds):
        if count > 1:
            here: NDArray[np.bool_] = index == place
            out[here] = machine_times(system, collective, sizes[here], int(count), max(1, int(step)))
    return out


def leaving_fraction(system: System, num_stages: Floats, chips: Floats) -> Floats:
    """Of the neighbours among stages of so many chips, those that are in two scale-up domains, of TPUs slices.

    >>> from types import SimpleNamespace
    >>> eight = SimpleNamespace(num_domain=8)
    >>> leaving_fraction(eight, np.array([2.0, 4.0, 14.0, 2.0]), np.array([4.0, 4.0, 4.0, 8.0])).round(3).tolist()
    [0.0, 0.333, 0.462, 1.0]
    """
    leaving = np.minimum((num_stages * chips - 1) // system.num_domain, num_stages - 1)
    return np.where(num_stages > 1, leaving / np.maximum(num_stages - 1, 1), 0.0)


def stage_times(system: System, size_bytes: Floats, num_stages: Floats, chips: Floats) -> Floats:
    """Times [s] of a message from each stage of so many chips to the next, in the mean of all; one stage sends none."""
    two = np.where(num_stages > 1, 2.0, 1.0)
    leaving = leaving_fraction(system, num_stages, chips)
    inside_s = group_times(system, "send-recv", size_bytes, two, chips)
    if not leaving.any():
        return inside_s
    across_s = group_times(system, "send-recv", size_bytes, two, np.maximum(chips, system.num_domain))
    return leaving * across_s + (1.0 - leaving) * inside_s


def machine_times(
    system: System, collective: Collective, size_bytes: Floats, num_ranks: int, stride: int = 1
) -> Floats:
    """Times [s] of one collective among ranks `stride` apart, on switches or on a torus; each distinct size once."""
    sizes, index = np.unique(size_bytes, return_inverse=True)
    times_s = _times_of_sizes(system, collective, sizes.tobytes(), num_ranks, stride)
    found: Floats = times_s[np.reshape(index, np.shape(size_bytes))]
    return found


@lru_cache(maxsize=REMEMBERED)
def _times_of_sizes(
    system: System, collective: Collective, sizes: bytes, num_ranks: int, stride: int
) -> Floats:
    """Times [s] for the sizes, an array of float64 by its bytes: parts of a search ask for half of them again."""
    size_bytes = np.frombuffer(sizes)
    near = system.apart(stride)
    if not system.torus:
        return collective_times(near, collective, size_bytes, num_ranks)[0]
    link = system.torus_link
    times_s = torus_times(
        collective,
        size_bytes,
        system.torus,
        num_ranks=num_ranks,
        stride=stride,
        chip_bytes_per_s=system.scale_up_bytes_per_s,
        network_bytes_per_s=system.nic_bytes_per_s,
        link_bytes_per_s=link.bytes_per_s if link else None,
        hop_s=link.hop_s if link else None,
        wrapped=link.wrapped if link else None,
    )
    return np.maximum(times_s, least_s(near, collective, size_bytes, num_ranks))
