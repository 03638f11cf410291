"""Dragonfly and dragonfly+: groups of switches that are joined to each other directly by long cables.

In a dragonfly the switches of a group are fully meshed; in a dragonfly+ a group is a leaf–spine network and
only its spines have global links.  Global port q of group i goes to group i + 1 + q mod (groups - 1), so
every two groups are joined by the same number of cables, spread over all switches that have such ports.  Routes
are minimal: at most one global link.

References: J. Kim, W. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA
2008; A. Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters", HiPINEB 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

import numpy as np

from datahall.counted import counted
from datahall.errors import ScenarioError
from datahall.fabric.topology.graph import (
    ACCESS,
    FABRIC,
    Fabric,
    Floats,
    Ints,
    Longs,
    Paths,
    Shape,
    Wire,
    loads_between,
    paths_of,
)
from datahall.fabric.topology.tiers import odd_ports

_FEW = 2_000_000  # leaf pairs that are counted one by one


class Cables(NamedTuple):
    """Of pairs of leaves, the cables between their groups that give a shortest way; one period stands for all."""

    shortest: Longs  # links of such a way
    num_all: Longs  # of all cables
    in_one: Longs  # of those of one period
    order: Longs  # the cables of one period with those first
    which: Longs  # for each row that was asked about, its pair


class Dragonfly(Shape, frozen=True, kw_only=True):
    """Chips per switch, switches per group (and spines, in a dragonfly+), global ports of a group, groups."""

    num_hosts: int
    terminals: int
    leaves: int  # switches of a group that have chips
    spines: int  # 0 in a plain dragonfly, whose leaves have the global ports themselves
    global_ports: int  # of one group
    groups: int

    @property
    def plus(self) -> bool:
        return self.spines > 0

    @property
    def copies(self) -> int:
        """Cables between two groups."""
        return self.global_ports // (self.groups - 1) if self.groups > 1 else 0

    @property
    def used_ports(self) -> int:
        """Global ports of a group that carry a cable."""
        return self.copies * (self.groups - 1)

    @property
    def num_switches(self) -> int:
        return self.groups * (self.leaves + self.spines)

    @property
    def local_start(self) -> int:
        return 2 * self.num_hosts

    @property
    def num_local_links(self) -> int:
        per_group = 2 * self.leaves * self.spines if self.plus else self.leaves * (self.leaves - 1)
        return self.groups * per_group

    @property
    def global_start(self) -> int:
        return self.local_start + self.num_local_links

    def leaf(self, host: Ints) -> Ints:
        """The switch of an endpoint, counted over all groups."""
        return host // self.terminals

    def local(self, group: Ints, here: Ints | Longs, there: Ints | Longs) -> Ints:
        """The link between two switches of a group (plain dragonfly), -1 where they are the same."""
        slot = there - (there > here)
        link = self.local_start + (group * self.leaves + here) * (self.leaves - 1) + slot
        return np.where(here == there, -1, link).astype(np.int32)

    def rise(self, leaf: Ints, spine: Ints) -> Ints:
        """The link from a leaf (counted over all groups) to a spine of its group (dragonfly+)."""
        return (self.local_start + leaf * self.spines + spine).astype(np.int32)

    def fall(self, leaf: Ints, spine: Ints) -> Ints:
        """The link back down."""
        return (self.rise(leaf, spine) + self.groups * self.leaves * self.spines).astype(np.int32)

    def ends(self, offset: Longs, copy: Longs) -> tuple[Longs, Longs, Longs]:
        """Port, switch that owns it and switch at the far end of a cable to the group `offset` further.

        Ports go round the switches of a group, and start one further where the cables between two groups would come
        to the same switches again: so they meet all switches before any of them twice.
        """
        port = copy * (self.groups - 1) + offset - 1
        far_port = copy * (self.groups - 1) + self.groups - offset - 1
        owners = self.spines or self.leaves
        rounds = gcd(self.groups - 1, owners)
        further = copy // (owners // rounds) % rounds
        return port, (port + further) % owners, (far_port + further) % owners

    @property
    def period(self) -> int:
        """Cables between two groups after which the switches at both ends come again."""
        return max(1, min(self.copies, self.spines or self.leaves))

    def _lengths(self, here: Ints, there: Ints) -> Longs:
        """Switch-to-switch links of each leaf pair (rows) over the cables of one period (columns)."""
        offset = (there // self.leaves - here // self.leaves) % self.groups
        copy = np.arange(self.period)[None, :]
        if self.plus:
            return np.full((here.size, copy.size), 3, np.int64)
        _, exit_, entry = self.ends(np.maximum(offset, 1)[:, None].astype(np.int64), copy)
        away = (exit_ != here[:, None] % self.leaves).astype(np.int64)
        lengths: Longs = 1 + away + (entry != there[:, None] % self.leaves)
        return lengths

    def _cables(self, here: Ints, there: Ints) -> Cables:
        num = self.groups * self.leaves
        pairs, which = np.unique(here.astype(np.int64) * num + there, return_inverse=True)
        lengths = self._lengths((pairs // num).astype(np.int32), (pairs % num).astype(np.int32))
        shortest = lengths.min(axis=1)
        short = lengths == shortest[:, None]
        periods, rest = divmod(max(self.copies, 1), self.period)
        in_one = short.sum(axis=1)
        num_all = periods * in_one + short[:, :rest].sum(axis=1)
        return Cables(shortest, num_all, in_one, np.argsort(~short, axis=1, kind="stable"), which)

    def hops(self, source: Ints, target: Ints) -> Ints:
        here, there = self.leaf(source), self.leaf(target)
        inside = np.where(here == there, 0, 2 if self.plus else 1)
        found = self._cables(here, there)
        across = found.shortest[found.which]
        same_group = here // self.leaves == there // self.leaves
        return np.where(source == target, 0, 2 + np.where(same_group, inside, across)).astype(np.int32)

    def num_paths(self, source: Ints, target: Ints) -> Longs:
        here, there = self.leaf(source), self.leaf(target)
        found = self._cables(here, there)
        inside = np.where(here == there, 1, max(self.spines, 1))
        return np.where(here // self.leaves == there // self.leaves, inside, found.num_all[found.which])

    def paths(self, source: Ints, target: Ints, pick: Longs) -> Paths:
        here, there = self.leaf(source), self.leaf(target)
        group, goal = here // self.leaves, there // self.leaves
        a, b = here % self.leaves, there % self.leaves
        left = pick % self.num_paths(source, target)
        offset = ((goal - group) % self.groups).astype(np.int64)
        found = self._cables(here, there)
        turn, place = np.divmod(left, found.in_one[found.which])
        copy = found.order[found.which, place] + turn * self.period  # inside a group none of them is taken
        port, exit_, entry = self.ends(np.maximum(offset, 1), copy)
        crosses, apart = group != goal, here != there
        over = np.where(crosses, self.global_start + group * self.used_ports + port, -1)
        if self.plus:
            up = np.where(apart, self.rise(here, np.where(crosses, exit_, left)), -1)
            down = np.where(apart, self.fall(there, np.where(crosses, entry, left)), -1)
        else:
            up = np.where(crosses, self.local(group, a, exit_), self.local(group, a, b))
            down = np.where(crosses, self.local(goal, entry, b), -1)
        moves = source != target
        steps = (
            np.where(moves, source, -1), up, over, down, np.where(moves, self.num_hosts + target, -1)
        )  # fmt: skip
        return paths_of([step.astype(np.int32) for step in steps])

    def _leaf_hops(self) -> tuple[Ints, Floats]:
        """Hops from leaves (rows) to every leaf with a chip, and the chips on those.

        Groups are turned copies of each other, so in a large one the first speaks for all of them.
        """
        chips = np.bincount(self.leaf(np.arange(self.num_hosts, dtype=np.int32))).astype(float)
        every = np.arange(chips.size, dtype=np.int32)
        few = chips.size**2 * max(self.copies, 1) <= _FEW
        first = np.arange(chips.size if few else min(self.leaves, chips.size), dtype=np.int32)
        here, there = np.repeat(first, every.size), np.tile(every, first.size)
        lengths = self.hops(here * self.terminals, there * self.terminals)
        return np.where(here == there, 2, lengths).reshape(first.size, every.size), chips

    def diameter(self) -> int:
        return int(self._leaf_hops()[0].max()) if self.num_hosts > 1 else 0

    def mean_hops(self) -> float:
        """Mean over pairs; in a large one over those from its first group, exact where groups are full."""
        if self.num_hosts < 2:
            return 0.0
        hops, chips = self._leaf_hops()
        first = chips[: hops.shape[0]]
        pairs = first.sum() * (chips.sum() - 1)
        return float((first @ (hops @ chips) - 2 * first.sum()) / pairs)

    def bisection_links(self) -> float:
        """⌊g/2⌋ × ⌈g/2⌉ pairs of groups times their cables, at most half the endpoints."""
        half = self.groups // 2
        inside = self.leaves * self.spines / 2 if self.plus else self.leaves**2 // 4
        cut = half * (self.groups - half) * self.copies if self.groups > 1 else inside
        return min(float(cut), self.num_hosts / 2)

    def most_paths(self) -> int:
        hops, _ = self._leaf_hops()
        first, other = np.unravel_index(int(hops.argmax()), hops.shape)
        ends = np.array([first]) * self.terminals, np.array([other]) * self.terminals
        return int(self.num_paths(ends[0].astype(np.int32), ends[1].astype(np.int32))[0])

    @property
    def has_direct_pairs(self) -> bool:
        return True

    def loads(self, source: Ints, target: Ints) -> Floats:
        return loads_between(self, self.leaf, source, target)

    def parts_of(self, fabric: Fabric) -> Iterator[tuple[str, Ints]]:
        """Leaves, and groups with their spines."""
        leaf = np.full(fabric.num_nodes, -1, np.int32)
        hosts = np.arange(fabric.num_hosts, dtype=np.int32)
        leaves = np.arange(self.groups * self.leaves, dtype=np.int32)
        spines = np.arange(self.groups * self.spines, dtype=np.int32)
        leaf[hosts] = self.leaf(hosts)
        leaf[self.num_hosts + leaves] = leaves
        yield "leaf", leaf
        group = np.where(leaf >= 0, leaf // self.leaves, -1).astype(np.int32)
        if spines.size:
            group[self.num_hosts + leaves.size + spines] = spines // self.spines
        yield "group", group


def dragonfly(num_chips: int, wire: Wire, *, radix: int | None = None, whole: int | None = None) -> Fabric:
    """The smallest balanced dragonfly: p chips, 2p switches a group, p global ports each; 4p - 1 ports of a switch.

    Without a switch it has the fewest ports.  With one it has the fewest switches of at most its ports: chips that
    filled a few switches of a larger group would have one cable from each of those to the next, and the others would
    stand idle.  Servers of `whole` chips hang on one switch, or on several of their own, if ports allow it.
    """
    fewest = 1
    while _most(fewest) < num_chips:
        fewest += 1
    chips, groups = fewest, -(-num_chips // (2 * fewest * fewest))
    if radix is not None:
        held = (radix + 1) // 4
        if held < fewest:
            raise ScenarioError(
                f"{num_chips:,} chips do not fit a dragonfly of {radix}-port switches",
                field="chips",
                hint=f"it holds {_most(held):,}; {4 * fewest - 1} ports hold {_most(fewest):,}",
            )
        size = whole or 1
        able = [p for p in range(fewest, held + 1) if p % size == 0 or size % p == 0]
        chips = min(able or [held], key=lambda p: (-(-num_chips // (2 * p * p)) * 2 * p, p))
        groups = -(-num_chips // (2 * chips * chips))
    shape = Dragonfly(
        num_hosts=num_chips,
        terminals=chips,
        leaves=2 * chips,
        spines=0,
        global_ports=2 * chips * chips,
        groups=groups,
    )
    return _built(f"dragonfly of {counted(groups, 'group')}", "dragonfly", shape, wire)


def dragonfly_plus(num_chips: int, wire: Wire, *, radix: int) -> Fabric:
    """Groups of k/2 leaves and k/2 spines of k ports: (k/2)² chips and global ports each."""
    if radix < 2 or radix % 2:
        raise odd_ports(radix, lambda even: ((even // 2) ** 2 + 1) * (even // 2) ** 2 >= num_chips)
    half = radix // 2
    most = (half * half + 1) * half * half
    if num_chips < 1 or num_chips > most:
        raise ScenarioError(
            f"{num_chips:,} chips do not fit a dragonfly+ of {radix}-port switches",
            field="chips",
            hint=f"it holds 1 to {most:,}",
        )
    groups = -(-num_chips // (half * half))
    shape = Dragonfly(
        num_hosts=num_chips,
        terminals=half,
        leaves=half,
        spines=half,
        global_ports=half * half,
        groups=groups,
    )
    return _built(f"dragonfly+ of {counted(groups, 'group')}", "dragonfly-plus", shape, wire)


def _most(chips: int) -> int:
    return 2 * chips * chips * (2 * chips * chips + 1) if chips > 0 else 0


def _built(name: str, topology: str, shape: Dragonfly, wire: Wire) -> Fabric:
    hosts = np.arange(shape.num_hosts, dtype=np.int32)
    all_leaves = np.arange(shape.groups * shape.leaves, dtype=np.int32)
    access = shape.leaf(hosts)
    sources, targets = (
        [hosts, access + np.int32(shape.num_hosts)],
        [access + np.int32(shape.num_hosts), hosts],
    )
    first_spine = shape.num_hosts + all_leaves.size
    if shape.plus:
        lower = np.repeat(all_leaves, shape.spines)
        upper = lower // shape.leaves * shape.spines + np.tile(np.arange(shape.spines), all_leaves.size)
        sources += [lower + shape.num_hosts, upper + first_spine]
        targets += [upper + first_spine, lower + shape.num_hosts]
    else:
        slot = np.arange(shape.leaves - 1)[None, :]
        own = all_leaves[:, None] % shape.leaves
        other = all_leaves[:, None] - own + slot + (slot >= own)
        sources.append(np.repeat(all_leaves, shape.leaves - 1) + shape.num_hosts)
        targets.append(other.ravel() + shape.num_hosts)
    if shape.groups > 1:
        port = np.arange(shape.used_ports, dtype=np.int64)
        offset, copy = port % (shape.groups - 1) + 1, port // (shape.groups - 1)
        _, exit_, entry = shape.ends(offset, copy)
        group = np.arange(shape.groups, dtype=np.int64)[:, None]
        owners, first = (shape.spines, first_spine) if shape.plus else (shape.leaves, shape.num_hosts)
        sources.append((first + group * owners + exit_[None, :]).ravel())
        targets.append((first + (group + offset[None, :]) % shape.groups * owners + entry[None, :]).ravel())
    link_source = np.concatenate(sources).astype(np.int32)
    kind = np.full(link_source.size, FABRIC, np.uint8)
    kind[: 2 * shape.num_hosts] = ACCESS
    tier = np.zeros(shape.num_hosts + shape.num_switches, np.uint8)
    tier[shape.num_hosts : first_spine] = 1
    tier[first_spine:] = 2
    return Fabric(
        name=name,
        topology=topology,
        num_hosts=shape.num_hosts,
        num_nodes=tier.size,
        node_tier=tier,
        link_source=link_source,
        link_target=np.concatenate(targets).astype(np.int32),
        link_bytes_per_s=np.full(link_source.size, wire.bytes_per_s),
        link_latency_s=np.full(link_source.size, wire.latency_s),
        link_kind=kind,
        domain=hosts,
        shape=shape,
    )
