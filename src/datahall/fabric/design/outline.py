"""The outline of a fabric, small enough to be drawn: nodes of a tier in groups, and the cables between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.fabric.topology.graph import SCALE_UP_TIER, Fabric, Ints

MOST_GROUPS, FEWEST = 8, 4  # groups that a tier is drawn in; fewer than the fewest would show no shape


class Tier(NamedTuple):
    """Nodes of one tier in groups of neighbours; 0 are the chips, below which crossbars of scale-up domains stand."""

    tier: int
    sizes: tuple[int, ...]  # nodes of each group

    @property
    def num_nodes(self) -> int:
        return sum(self.sizes)

    @property
    def of_switches(self) -> int:
        """Its place among the tiers of switches, the lowest of which is 0."""
        return self.tier - 1


class Bundle(NamedTuple):
    """All cables between two groups; a place is the number of a tier from below, and that of the group in it."""

    low: tuple[int, int]
    high: tuple[int, int]
    num_cables: int
    bytes_per_s: float  # one way, of all of them


class Outline(NamedTuple):
    """Tiers from below, and what joins their groups; cables inside a group are left out."""

    tiers: tuple[Tier, ...]
    bundles: tuple[Bundle, ...]


def outline(fabric: Fabric) -> Outline:
    """Put the nodes of each tier into at most `MOST_GROUPS` groups, each node beside the next of its number."""
    levels = sorted(
        set(fabric.node_tier.tolist()), key=lambda tier: -1 if tier == SCALE_UP_TIER else int(tier)
    )
    group = np.zeros(fabric.num_nodes, np.int32)
    tiers: list[Tier] = []
    places: list[tuple[int, int]] = []
    for level, tier in enumerate(levels):
        nodes = np.flatnonzero(fabric.node_tier == tier)
        count = _slabs(fabric) or num_groups(nodes.size)
        own = np.arange(nodes.size, dtype=np.int64) * count // nodes.size
        group[nodes] = len(places) + own
        tiers.append(Tier(int(tier), tuple(np.bincount(own, minlength=count).tolist())))
        places += [(level, index) for index in range(count)]
    return Outline(tuple(tiers), _bundles(fabric, group, places))


def _slabs(fabric: Fabric) -> int:
    """Groups of a torus that are whole slabs across its first axis; 0 where it is none, or small enough as it is."""
    grid = fabric.traits.grid
    if not grid or fabric.num_switches or fabric.num_hosts <= MOST_GROUPS:
        return 0
    return num_groups(grid[0])


def num_groups(num_nodes: int) -> int:
    """As many equal groups as can be drawn, or unequal ones where equal ones are too few.

    >>> num_groups(5), num_groups(512), num_groups(30), num_groups(97)
    (5, 8, 6, 8)
    """
    if num_nodes <= MOST_GROUPS:
        return num_nodes
    return next(
        (count for count in range(MOST_GROUPS, FEWEST - 1, -1) if num_nodes % count == 0), MOST_GROUPS
    )


def _bundles(fabric: Fabric, group: Ints, places: list[tuple[int, int]]) -> tuple[Bundle, ...]:
    """Links that go up in number, so that each cable counts once, added up by the groups that they join."""
    source, target = group[fabric.link_source], group[fabric.link_target]
    up = source < target
    key = source[up].astype(np.int64) * len(places) + target[up]
    keys, which = np.unique(key, return_inverse=True)
    width = np.bincount(which, weights=fabric.link_bytes_per_s[up], minlength=keys.size)
    num = np.bincount(which, minlength=keys.size)
    return tuple(
        Bundle(places[int(one) // len(places)], places[int(one) % len(places)], int(count), float(rate))
        for one, count, rate in zip(keys, num, width, strict=True)
    )
