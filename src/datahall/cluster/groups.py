"""How long groups of ranks take for a collective, whatever joins them, as columns over many layouts.

Ranks are numbered with the innermost axis of a layout first, as Megatron places them, so a group of n ranks whose
neighbours are `stride` apart has min(n, domain/stride) of them in one scale-up domain, and shares every way out of a
leaf or a pod with the groups between its ranks, which do the same at the same time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datahall.cluster.distinct import unique_rows
from datahall.fabric.collectives.algorithms.bus import Collective, Floats
from datahall.fabric.collectives.algorithms.torus import torus_times
from datahall.fabric.collectives.choice import collective_times
from datahall.fabric.collectives.crossing import least_s
from datahall.fabric.collectives.system import System


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


def machine_times(
    system: System, collective: Collective, size_bytes: Floats, num_ranks: int, stride: int = 1
) -> Floats:
    """Times [s] of one collective among ranks `stride` apart, on switches or on a torus; each distinct size once."""
    sizes, index = np.unique(size_bytes, return_inverse=True)
    near = system.apart(stride)
    if system.torus:
        link = system.torus_link
        times = torus_times(
            collective,
            sizes,
            system.torus,
            num_ranks=num_ranks,
            stride=stride,
            chip_bytes_per_s=system.scale_up_bytes_per_s,
            network_bytes_per_s=system.nic_bytes_per_s,
            link_bytes_per_s=link.bytes_per_s if link else None,
            hop_s=link.hop_s if link else None,
            wrapped=link.wrapped if link else None,
        )
        times = np.maximum(times, least_s(near, collective, sizes, num_ranks))
    else:
        times, _ = collective_times(near, collective, sizes, num_ranks)
    found: Floats = np.asarray(times)[np.reshape(index, np.shape(size_bytes))]
    return found
