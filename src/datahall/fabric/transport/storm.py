"""A receiver that stops: whom it holds back, and for how long, where nothing may be dropped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.fabric.flows.congestion import paused_links
from datahall.fabric.routing.policies import permutation, rule_of, spread
from datahall.fabric.routing.pooling import pools
from datahall.fabric.topology.graph import Fabric, Ints, Paths
from datahall.scenario.words import SPLITTING, Policy

PEERS = 8  # others that each chip sends to at the same time
MANY = 8  # ways that stand for those of all packets where links cannot be pooled


class Storm(NamedTuple):
    """What one stuck chip does to the others."""

    held_fraction: float  # of flows, those that stand still
    stuck_s: float  # until ports drop what they hold and the others go on; 0 where they never stopped


def held_fraction(fabric: Fabric, routing: Policy | None, rng: np.random.Generator) -> float:
    """Flows that stand still when one chip stops draining its port and every chip sends to eight others.

    Where senders are held back, the port before it fills, then those before that one: all flows that pass a link that
    stands still wait, whomever they are for.  Where packets are dropped (no `routing`) only its own senders wait.
    """
    drawn = [permutation(fabric.num_hosts, rng) for _ in range(PEERS)]
    source, target = np.concatenate([one for one, _ in drawn]), np.concatenate([one for _, one in drawn])
    apart = fabric.domain[source] != fabric.domain[target]
    source, target = source[apart], target[apart]
    stuck = target[0]
    if routing is None:
        return float((target == stuck).mean())
    paths, parts = _paths(fabric, source, target, routing, rng)
    stopped = np.zeros(fabric.num_links, bool)
    stopped[paused_links(paths, int(paths.links[paths.offsets[1] - 1]), fabric.num_links)] = True
    held = np.zeros(source.size, bool)
    held[paths.owners()[stopped[paths.links]] // parts] = True
    return float(held.mean())


def _paths(
    fabric: Fabric, source: Ints, target: Ints, routing: Policy, rng: np.random.Generator
) -> tuple[Paths, int]:
    """The ways of each flow, and how many it has: sprayed packets go over pools of links, or over some of all ways."""
    pool = pools(fabric, routing)
    if pool is None and rule_of(routing).sprays:
        routing, parts = SPLITTING[0], MANY
    else:
        parts = 1
    return spread(fabric, source, target, routing, rng, parts, pool=pool).paths, parts
