"""How long the groups of a layout take to exchange what they must.

Ranks are numbered with tensor parallelism innermost, then context, then data, and pipeline stages outermost, as
Megatron places them; so a group of n ranks whose neighbours are `stride` apart has min(n, domain/stride) of them in
one scale-up domain.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.torus import torus_times
from datahall.fabric.collectives.choice import collective_times
from datahall.fabric.collectives.system import System
from datahall.training.layout.layout import Column, unique_rows


def group_times(
    system: System, collective: Collective, size_bytes: Column, ranks: Column, stride: Column
) -> Column:
    """Times of a collective on groups of `ranks` ranks `stride` apart, as columns; one rank takes no time."""
    sizes, counts, strides = (
        np.asarray(x, dtype=np.float64) for x in np.broadcast_arrays(size_bytes, ranks, stride)
    )
    distinct, index = unique_rows((counts, np.minimum(strides, system.num_domain)))
    out = np.zeros(sizes.shape)
    for place, (count, step) in enumerate(distinct):
        here: NDArray[np.bool_] = index == place
        if count > 1 and system.torus:
            out[here] = torus_times(
                collective,
                sizes[here],
                system.torus,
                num_ranks=int(count),
                stride=int(step),
                chip_bytes_per_s=system.scale_up_bytes_per_s,
                network_bytes_per_s=system.nic_bytes_per_s,
            )
        elif count > 1:
            inside = max(1, int(system.num_domain // max(step, 1.0)))
            near = msgspec.structs.replace(system, num_domain=inside)
            out[here] = _times(near, collective, sizes[here], int(count))
    return out


def _times(system: System, collective: Collective, sizes: Column, ranks: int) -> Column:
    """Each distinct size once: a space of layouts has few."""
    distinct, index = np.unique(sizes, return_inverse=True)
    times, _ = collective_times(system, collective, distinct, ranks)
    return np.asarray(times)[np.ravel(index)]
