"""HyperX: switches in a grid, each joined to all others of its row along every axis; one axis is a full mesh.

Reference: J. Ahn, N. Binkert, A. Davis, M. McLaren, R. Schreiber, "HyperX: topology, routing, and packaging
of efficient large-scale networks", SC 2009.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.fabric.topology.graph import (
    ACCESS,
    FABRIC,
    SCALE_UP,
    Fabric,
    Floats,
    Ints,
    Longs,
    Paths,
    Shape,
    Wire,
    half_name,
    loads_between,
    paths_of,
)
from datahall.fabric.topology.grids.sides import hyperx_side


class HyperX(Shape, frozen=True):
    """Sides of the grid and chips per switch; with 0 of them the chips themselves are the grid.

    A pair whose places differ along d axes has d! shortest paths: one for each order of the axes.
    """

    num_hosts: int
    sides: tuple[int, ...]
    terminals: int

    @property
    def num_routers(self) -> int:
        return prod(self.sides)

    def first_link(self, axis: int) -> int:
        """The number of the first link along an axis; links of one router lie side by side."""
        access = 2 * self.num_hosts if self.terminals else 0
        return access + self.num_routers * sum(side - 1 for side in self.sides[:axis])

    def router(self, host: Ints) -> Ints:
        """The switch of an endpoint, counted from 0."""
        return host // max(self.terminals, 1)

    def place(self, router: Ints, axis: int) -> Ints:
        """Where a router stands along an axis."""
        return router // prod(self.sides[axis + 1 :]) % self.sides[axis]

    def _differing(self, source: Ints, target: Ints) -> NDArray[np.bool_]:
        here, there = self.router(source), self.router(target)
        axes = range(len(self.sides))
        return np.stack([self.place(here, axis) != self.place(there, axis) for axis in axes], axis=1)

    def num_paths(self, source: Ints, target: Ints) -> Longs:
        table = np.array([factorial(n) for n in range(len(self.sides) + 1)], np.int64)
        ways: Longs = table[self._differing(source, target).sum(axis=1)]
        return ways

    def hops(self, source: Ints, target: Ints) -> Ints:
        ends = np.where((source != target) & (self.terminals > 0), 2, 0)
        total: Ints = (self._differing(source, target).sum(axis=1) + ends).astype(np.int32)
        return total

    def paths(self, source: Ints, target: Ints, pick: Longs) -> Paths:
        here, there = self.router(source), self.router(target)
        left_axes = self._differing(source, target)
        apart = (source != target) & (self.terminals > 0)
        columns = [np.where(apart, source, -1)]
        left = pick % self.num_paths(source, target)
        for _ in self.sides:
            remaining = left_axes.sum(axis=1)
            rest = np.array([factorial(max(n - 1, 0)) for n in range(len(self.sides) + 1)])[remaining]
            turn, left = left // rest, left % rest
            chosen = np.argmax(np.cumsum(left_axes, axis=1) > turn[:, None], axis=1)
            step = np.full(source.size, -1, np.int64)
            for axis, side in enumerate(self.sides):
                goes = (chosen == axis) & (remaining > 0)
                own, other = self.place(here, axis), self.place(there, axis)
                slot = other - (other > own)
                step = np.where(goes, self.first_link(axis) + here.astype(np.int64) * (side - 1) + slot, step)
                here = np.where(goes, here + (other - own) * prod(self.sides[axis + 1 :]), here)
                left_axes[goes, axis] = False
            columns.append(step.astype(np.int32))
        columns.append(np.where(apart, self.num_hosts + target, -1))
        return paths_of([column.astype(np.int32) for column in columns])

    def diameter(self) -> int:
        return sum(side > 1 for side in self.sides) + (2 if self.terminals else 0)

    def mean_hops(self) -> float:
        """Σ over axes of the share of pairs that differ there, plus the two access links."""
        if self.num_hosts < 2:
            return 0.0
        router = self.router(np.arange(self.num_hosts, dtype=np.int32))
        pairs = float(self.num_hosts) * (self.num_hosts - 1)
        apart = sum(
            float(self.num_hosts) ** 2
            - float((np.bincount(self.place(router, axis)).astype(float) ** 2).sum())
            for axis in range(len(self.sides))
        )
        return apart / pairs + (2.0 if self.terminals else 0.0)

    def bisection_links(self) -> float:
        """Halve the cheapest axis: routers / S × ⌊S/2⌋ × ⌈S/2⌉ cables, at most half the endpoints."""
        cuts = [
            (side % 2, self.num_routers // side * (side // 2) * (side - side // 2))
            for side in self.sides
            if side > 1
        ]
        cut = float(min(cuts)[1]) if cuts else float(self.num_hosts)
        return min(cut, self.num_hosts / 2) if self.terminals else cut

    def most_paths(self) -> int:
        return factorial(sum(side > 1 for side in self.sides))

    @property
    def has_direct_pairs(self) -> bool:
        return True

    def loads(self, source: Ints, target: Ints) -> Floats | None:
        return loads_between(self, self.router, source, target) if self.terminals else None

    def parts_of(self, fabric: Fabric) -> Iterator[tuple[str, Ints]]:
        """Each router with its chips, and both halves of each axis."""
        router = np.full(fabric.num_nodes, -1, np.int32)
        hosts = np.arange(fabric.num_hosts, dtype=np.int32)
        router[hosts] = self.router(hosts)
        if self.terminals:
            switches = np.arange(self.num_routers, dtype=np.int32)
            router[self.num_hosts + switches] = switches
        yield ("leaf" if self.terminals else "chip"), router
        for axis, side in enumerate(self.sides):
            if side > 1:
                place = self.place(np.maximum(router, 0), axis)
                half = (place >= side // 2).astype(np.int32)
                yield half_name(axis, self.sides), np.where(router >= 0, half, -1).astype(np.int32)


def hyperx(sides: tuple[int, ...], wire: Wire, *, terminals: int, num_chips: int | None = None) -> Fabric:
    """A grid of fully meshed axes with `terminals` chips per switch (0: the chips are the grid)."""
    if not sides or any(side < 1 for side in sides) or terminals < 0:
        raise ScenarioError(
            f"sides {sides} with {terminals} chips per switch is no HyperX", hint="e.g. (8, 8), 8"
        )
    held = prod(sides) * max(terminals, 1)
    chips = held if num_chips is None else num_chips
    if not 1 <= chips <= held or (terminals == 0 and chips != held):
        raise ScenarioError(
            f"{chips:,} chips do not fit a HyperX of {'x'.join(map(str, sides))}", hint=f"it holds {held:,}"
        )
    shape = HyperX(chips, tuple(sides), terminals)
    routers = np.arange(shape.num_routers, dtype=np.int32)
    first_router = chips if terminals else 0
    sources, targets = [], []
    if terminals:
        hosts = np.arange(chips, dtype=np.int32)
        switch = shape.router(hosts) + np.int32(first_router)
        sources += [hosts, switch]
        targets += [switch, hosts]
    for axis, side in enumerate(sides):
        own = shape.place(routers, axis)[:, None]
        slot = np.arange(side - 1, dtype=np.int32)[None, :]
        other = slot + (slot >= own)
        there = routers[:, None] + (other - own) * prod(sides[axis + 1 :])
        sources.append((np.repeat(routers, side - 1) + first_router).astype(np.int32))
        targets.append((there.ravel() + first_router).astype(np.int32))
    num_links = shape.first_link(len(sides))
    kind = np.full(num_links, FABRIC if terminals else SCALE_UP, np.uint8)
    kind[: 2 * chips if terminals else 0] = ACCESS
    num_nodes = chips + (shape.num_routers if terminals else 0)
    return Fabric(
        name=f"full mesh of {sides[0]}" if len(sides) == 1 else f"{'x'.join(map(str, sides))} HyperX",
        topology="full-mesh" if len(sides) == 1 else "hyperx",
        num_hosts=chips,
        num_nodes=num_nodes,
        node_tier=(np.arange(num_nodes) >= chips).astype(np.uint8),
        link_source=np.concatenate(sources),
        link_target=np.concatenate(targets),
        link_bytes_per_s=np.full(num_links, wire.bytes_per_s),
        link_latency_s=np.full(num_links, wire.latency_s),
        link_kind=kind,
        domain=np.arange(chips, dtype=np.int32) if terminals else np.zeros(chips, np.int32),
        shape=shape,
    )


def full_mesh(num_chips: int, wire: Wire) -> Fabric:
    """Every chip joined to every other by a link of its own, as in an eight-chip MI300X server."""
    return hyperx((num_chips,), wire, terminals=0)


def hyperx_for(
    num_chips: int,
    wire: Wire,
    *,
    radix: int,
    axes: int = 2,
    bisection_fraction: float = 0.5,
    whole: int,
) -> Fabric:
    """The smallest grid with equal sides S: at most S / (2 × bisection) chips on a switch.

    What an error suggests comes in `whole` servers.
    """
    side, terminals = hyperx_side(
        num_chips, radix=radix, axes=axes, bisection_fraction=bisection_fraction, whole=whole
    )
    return hyperx((side,) * axes, wire, terminals=terminals, num_chips=num_chips)
