"""What chips keep of their ports when all send at once: topology promises all of it, routing delivers a part."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from datahall.fabric.routing.policies import permutation, sharing, spread
from datahall.fabric.routing.pooling import pooled, pools
from datahall.fabric.topology.graph import Fabric
from datahall.scenario.words import Policy

PATHS = (1, 4, 16, 64)  # queue pairs that a message is split over, to see what more of them do
MOST_PARTS = 300_000  # of all messages together, for an answer in a few seconds


class Kept(NamedTuple):
    """Shares of a port: the mean of all flows, and the slowest, for which a collective waits."""

    mean_fraction: float
    slowest_fraction: float


def under_load(
    fabric: Fabric, routing: Policy, port_bytes_per_s: float, rng: np.random.Generator, num_paths: int
) -> Kept:
    """Every chip sends to one other and receives from one, all for long: what flows get of their ports.

    Flows of one scale-up domain need no network and are left out.  A message over several queue pairs is cut into equal
    parts, and waits for the last of them.
    """
    source, target = permutation(fabric.num_hosts, rng)
    apart = fabric.domain[source] != fabric.domain[target]
    pool = pools(fabric, routing)
    routes = spread(fabric, source[apart], target[apart], routing, rng, num_paths, pool=pool)
    plain = msgspec.structs.replace(routes, efficiency=1.0)  # what a transport keeps is its own
    found = sharing(plain, pooled(pool, fabric.link_bytes_per_s), port_bytes_per_s)
    return Kept(found.striped_mean_fraction, found.striped_slowest_fraction)
