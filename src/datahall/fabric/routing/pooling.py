"""Links that packets are spread over alike, taken as one.

In an up–down network all ways up from a subtree are equal, so who sends packet by packet over all of them loads them
alike: the links up from a subtree into the next level, and those back down, are each one pool with the bandwidth of
all its links.  The first link of a pool stands for it.  A link that is out takes its share from the pool: packets
are spread over what is left.
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.fabric.topology.folded_clos import FoldedClos
from datahall.fabric.topology.graph import Fabric, Floats, Ints
from datahall.scenario.words import Policy


def carrying(fabric: Fabric, policy: Policy) -> Fabric:
    """The fabric as flows of a policy see it: with pools where packets are spread over them, else as it is."""
    speed = pooled(pools(fabric, policy), fabric.link_bytes_per_s)
    return msgspec.structs.replace(fabric, link_bytes_per_s=speed)


def pools(fabric: Fabric, policy: Policy) -> Ints:
    """The link that stands for each link: the first of those from the same subtree to the next level, or back.

    Where nothing is pooled every link stands for itself.
    """
    first, shape = np.arange(fabric.num_links, dtype=np.int32), fabric.shape
    if policy != "spray" or not isinstance(shape, FoldedClos):
        return first
    for level in range(1, shape.num_levels + 1):
        size = shape.width(level - 1) * shape.parents[level - 1] * shape.cables[level - 1]
        count = shape.num_cables(level)
        for start in (shape.first_link(level), shape.first_link(level) + count):
            first[start : start + count] = start + np.arange(count) // size * size
    return first


def pooled(pool: Ints, link_bytes_per_s: Floats) -> Floats:
    """Each pool's bandwidth on the link that stands for it; the others keep theirs, and nothing is sent over them."""
    whole = np.bincount(pool, link_bytes_per_s, pool.size)
    return np.where(pool == np.arange(pool.size), whole, link_bytes_per_s)


def shared_out(pool: Ints, link_bytes: Floats, link_bytes_per_s: Floats) -> Floats:
    """What every link of a pool carried of the bytes that the pool did, by its share of the bandwidth."""
    whole = np.maximum(np.bincount(pool, link_bytes_per_s, pool.size), 1e-300)
    return np.asarray(link_bytes[pool] * link_bytes_per_s / whole[pool])
