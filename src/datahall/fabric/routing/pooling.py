"""Links that packets are spread over alike, taken as one.

In an up–down network all ways up from a subtree are equal, so who sends packet by packet over all of them loads them
alike: the links up from a subtree into the next level, and those back down, are each one pool with the bandwidth of
all its links.  The first link of a pool stands for it.  That holds while the links of every pool are alike: where one
is out or slow, packets that went up one way can only come down some, and every path counts by itself.
"""

from __future__ import annotations

import numpy as np

from datahall.fabric.routing.policies import rule_of
from datahall.fabric.topology.graph import Fabric, Floats, Ints
from datahall.scenario.words import Policy


def pools(fabric: Fabric, policy: Policy) -> Ints | None:
    """The link that stands for each link: the first of those from the same subtree to the next level, or back.

    None where every link stands for itself: packets are not spread, the network is no up–down one, or not whole.
    """
    first = fabric.traits.pools(fabric.num_links) if rule_of(policy).sprays else None
    if first is None:
        return None
    alike = fabric.link_bytes_per_s == fabric.link_bytes_per_s[first]
    return first if fabric.whole and alike.all() else None


def pooled(pool: Ints | None, link_bytes_per_s: Floats) -> Floats:
    """Each pool's bandwidth on the link that stands for it; the others keep theirs, and nothing is sent over them."""
    if pool is None:
        return link_bytes_per_s
    whole = np.bincount(pool, link_bytes_per_s, pool.size)
    return np.where(pool == np.arange(pool.size), whole, link_bytes_per_s)


def shared_out(pool: Ints | None, of_links: Floats) -> Floats:
    """What every link of a pool has of what the pool has: bytes that it carried, or a rate."""
    if pool is None:
        return of_links
    return np.asarray(of_links[pool] / np.bincount(pool, minlength=pool.size)[pool])
