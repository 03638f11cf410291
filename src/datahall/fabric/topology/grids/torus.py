"""Tori and meshes in any number of dimensions: each chip is a router with two links per axis, and no
switches.

Chips are numbered with the last axis running fastest.  An axis of two has one cable between its chips,
wrapped or not; an axis of one has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Kernel
from datahall.errors import ScenarioError
from datahall.fabric.topology.graph import (
    SCALE_UP,
    Fabric,
    Floats,
    Ints,
    Longs,
    Paths,
    Shape,
    Wire,
    half_name,
)
from datahall.fabric.topology.grids.sides import squat_sides, written

MOST = 2**61  # path counts saturate here
_COMPILE_HOPS = 20_000


class Torus(Shape, frozen=True):
    """The side of each axis, whether it wraps around, and the arithmetic of shortest routes.

    Path 0 of a pair is in dimension order: along the first axis, then the second.  Where both ways round
    are equally long, even paths go up and odd ones down.
    """

    sides: tuple[int, ...]
    wrap: tuple[bool, ...]

    @property
    def num_hosts(self) -> int:
        return prod(self.sides)

    def wraps(self, axis: int) -> bool:
        """Whether there is a cable from the last chip of an axis back to its first."""
        return self.wrap[axis] and self.sides[axis] > 2

    def segments(self, axis: int) -> int:
        """Cables of one line of chips along an axis."""
        return self.sides[axis] if self.wraps(axis) else self.sides[axis] - 1

    def num_cables(self, axis: int) -> int:
        """Cables along an axis."""
        return self.num_hosts // self.sides[axis] * self.segments(axis)

    def stride(self, axis: int) -> int:
        """Difference of the numbers of two neighbours along an axis."""
        return prod(self.sides[axis + 1 :])

    def first_link(self, axis: int) -> int:
        """The number of the first link up an axis; those down it follow."""
        return 2 * sum(self.num_cables(lower) for lower in range(axis))

    def steps(self, source: Ints, target: Ints) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Signed steps along each axis (columns), upwards where both ways are equal, and where they are."""
        signed = np.zeros((source.size, len(self.sides)), np.int64)
        tied = np.zeros(signed.shape, np.bool_)
        for axis, side in enumerate(self.sides):
            stride = self.stride(axis)
            ahead = target // stride % side - source // stride % side
            if self.wraps(axis):
                ahead %= side
                tied[:, axis] = 2 * ahead == side
                ahead = np.where(2 * ahead > side, ahead - side, ahead)
            signed[:, axis] = ahead
        return signed, tied

    def _orders(self, lengths: NDArray[np.int64]) -> Longs:
        """Ways to shuffle the steps along the axes: (Σ n)! / Π n!, saturating."""
        table = _binomials(self.diameter())
        total = np.ones(lengths.shape[0], np.int64)
        so_far = np.zeros(lengths.shape[0], np.int64)
        for axis in range(lengths.shape[1]):
            so_far = so_far + lengths[:, axis]
            ways = table[so_far, lengths[:, axis]]
            large = total.astype(float) * ways > MOST
            total = np.where(large, MOST, total * np.where(large, 1, ways))
        return total

    def num_paths(self, source: Ints, target: Ints) -> Longs:
        signed, tied = self.steps(source, target)
        ways = 2 ** tied.sum(axis=1)
        orders = self._orders(np.abs(signed))
        return np.where(orders > MOST // ways, MOST, orders * ways)

    def hops(self, source: Ints, target: Ints) -> Ints:
        total: Ints = np.abs(self.steps(source, target)[0]).sum(axis=1).astype(np.int32)
        return total

    def paths(self, source: Ints, target: Ints, pick: Longs) -> Paths:
        signed, tied = self.steps(source, target)
        ways = 2 ** tied.sum(axis=1)
        orders = self._orders(np.abs(signed))
        left = pick % np.where(orders > MOST // ways, MOST, orders * ways)
        for axis in range(len(self.sides)):
            turns = tied[:, axis] & (left % 2 == 1)
            signed[turns, axis] *= -1
            left = np.where(tied[:, axis], left // 2, left)
        offsets = np.zeros(source.size + 1, np.int64)
        np.cumsum(np.abs(signed).sum(axis=1), out=offsets[1:])
        links = np.empty(int(offsets[-1]), np.int32)
        axes = range(len(self.sides))
        walk = _walk if links.size > _COMPILE_HOPS else _walk.interpreted
        walk(
            np.array(self.sides, np.int64),
            np.array([self.segments(axis) for axis in axes], np.int64),
            np.array([self.stride(axis) for axis in axes], np.int64),
            np.array([self.first_link(axis) for axis in axes], np.int64),
            np.array([self.num_cables(axis) for axis in axes], np.int64),
            source.astype(np.int64), signed, orders, left, links,
        )  # fmt: skip
        return Paths(links, offsets)

    def loads(self, source: Ints, target: Ints) -> Floats:
        """Bytes on each link when every flow sends one, its steps shuffled in every order alike.

        Of the (Σ n)! / Π n! shortest ways of a flow with n steps along each axis, those through the link from u to v
        are the ways to u times the ways from v.  Flows with the same steps are one pattern that is moved to each of
        their sources: a convolution over the grid, no axis of which a pattern leaves.
        """
        signed, tied = self.steps(source, target)
        found = np.zeros((len(self.sides), 2, *self.sides[:-1], self.sides[-1] // 2 + 1), np.complex128)
        both, which, count = np.unique(
            np.hstack([signed, tied]), axis=0, return_inverse=True, return_counts=True
        )
        alike = np.split(source[np.argsort(which.ravel(), kind="stable")], np.cumsum(count)[:-1])
        for row, sources in zip(both, alike, strict=True):
            places = np.fft.rfftn(np.bincount(sources, minlength=self.num_hosts).reshape(self.sides))
            steps, ties = row[: len(self.sides)], np.flatnonzero(row[len(self.sides) :])
            for turned in product((1, -1), repeat=ties.size):
                ways = steps.copy()
                ways[ties] *= np.array(turned, np.int64)
                for axis in np.flatnonzero(ways):
                    pattern = np.fft.rfftn(self._pattern(ways, int(axis)))
                    found[axis, int(ways[axis] < 0)] += places * pattern / 2.0**ties.size
        loads = np.fft.irfftn(found, s=self.sides, axes=range(2, found.ndim))
        return np.concatenate([self._numbered(loads, axis) for axis in range(len(self.sides))])

    def _pattern(self, steps: Longs, axis: int) -> Floats:
        """The share of a flow's ways that go a step along an axis from each place, seen from its source."""
        length = np.abs(steps)
        taken = np.indices(tuple(length + 1 - (np.arange(length.size) == axis)))  # steps so far
        left = length.reshape(-1, *(1,) * length.size) - taken
        left[axis] -= 1
        logs = _log_orders(taken) + _log_orders(left) - _log_orders(length)
        pattern = np.zeros(self.sides)
        sign = np.sign(steps)
        where = tuple(sign[one] * taken[one] % side for one, side in enumerate(self.sides))
        pattern[where] = np.exp(logs)
        return pattern

    def _numbered(self, loads: Floats, axis: int) -> Floats:
        """The loads of the links of an axis in their order: up, then down; a link down is left from its upper end."""
        up, down = loads[axis, 0], np.roll(loads[axis, 1], -1, axis=axis)
        kept = tuple(slice(self.segments(one) if one == axis else None) for one in range(len(self.sides)))
        both: Floats = np.maximum(np.concatenate([up[kept].ravel(), down[kept].ravel()]), 0.0)
        return both

    def diameter(self) -> int:
        return sum(side // 2 if self.wraps(axis) else side - 1 for axis, side in enumerate(self.sides))

    def mean_hops(self) -> float:
        """Σ over axes of the mean distance on a ring, ⌊X²/4⌋ / X, or on a line, (X²-1) / 3X."""
        mean = 0.0
        for axis, side in enumerate(self.sides):
            mean += side * side // 4 / side if self.wraps(axis) else (side * side - 1) / (3 * side)
        return mean * self.num_hosts / (self.num_hosts - 1) if self.num_hosts > 1 else 0.0

    def bisection_links(self) -> float:
        """Cut the axis that takes the fewest cables: 2 N / X where it wraps, N / X where it does not."""
        cuts = [
            (side % 2, self.num_hosts // side * (2 if self.wraps(axis) else 1))
            for axis, side in enumerate(self.sides)
            if side > 1
        ]
        return float(min(cuts)[1]) if cuts else 0.0

    def most_paths(self) -> int:
        far = np.zeros(1, np.int32)
        for axis, side in enumerate(self.sides):
            far += (side // 2 if self.wraps(axis) else side - 1) * self.stride(axis)
        return int(self.num_paths(np.zeros(1, np.int32), far)[0])

    @property
    def grid(self) -> tuple[int, ...]:
        return self.sides

    @property
    def is_closed(self) -> bool:
        return all(self.wrap)

    def parts_of(self, fabric: Fabric) -> Iterator[tuple[str, Ints]]:
        """Each chip, and both halves of each axis; with parts out, wherever a ring may be cut in two."""
        chips = np.arange(fabric.num_hosts, dtype=np.int32)
        yield "chip", chips
        for axis, side in enumerate(self.sides):
            if side < 2:
                continue
            turns = range(side // 2) if self.wraps(axis) and not fabric.whole else range(1)
            place = chips // self.stride(axis) % side
            for turn in turns:
                yield (
                    half_name(axis, self.sides),
                    ((place - turn) % side >= side // 2).astype(np.int32),
                )


def _log_orders(steps: Longs) -> Floats:
    """ln of the orders of so many steps along each axis (first dimension): ln (Σ n)! − Σ ln n!."""
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(steps.sum(axis=0).max()) + 1)))])
    logs: Floats = factorial[steps.sum(axis=0)] - factorial[steps].sum(axis=0)
    return logs


def _binomials(largest: int) -> NDArray[np.int64]:
    """Pascal's triangle, saturating."""
    table = np.zeros((largest + 1, largest + 1), np.int64)
    table[:, 0] = 1
    for row in range(1, largest + 1):
        table[row, 1:] = np.minimum(table[row - 1, 1:] + table[row - 1, :-1], MOST)
    return table


def _steps(
    sides: Longs,
    segments: Longs,
    strides: Longs,
    first_links: Longs,
    num_cables: Longs,
    source: Longs,
    signed: NDArray[np.int64],
    orders: Longs,
    rank: Longs,
    links: Ints,
) -> None:
    """Write the links of each flow: the order of its steps is the shuffle number `rank` among `orders`."""
    entry = 0
    for flow in range(source.size):
        node, total, left = source[flow], orders[flow], rank[flow]
        remaining = 0
        for axis in range(sides.size):
            remaining += abs(signed[flow, axis])
        while remaining > 0:
            chosen = -1
            share = total
            for axis in range(sides.size):
                steps = abs(signed[flow, axis])
                if steps == 0:
                    continue
                chosen = axis
                share = total // remaining * steps + total % remaining * steps // remaining
                if left < share:
                    break
                left -= share
            total = max(share, 1)
            left = left % total
            side, stride = sides[chosen], strides[chosen]
            place = node // stride % side
            outer, inner = node // (stride * side), node % stride
            if signed[flow, chosen] > 0:
                cable, ahead, back = place, (place + 1) % side, 0
                signed[flow, chosen] -= 1
            else:
                ahead, back = (place - 1) % side, num_cables[chosen]
                cable = ahead
                signed[flow, chosen] += 1
            links[entry] = first_links[chosen] + back + (outer * segments[chosen] + cable) * stride + inner
            node += (ahead - place) * stride
            remaining -= 1
            entry += 1


_walk = Kernel(_steps)


def torus(
    sides: tuple[int, ...], wire: Wire, *, wrap: bool | tuple[bool, ...] = True, name: str = ""
) -> Fabric:
    """A torus of the given sides (a mesh where `wrap` is False), e.g. `torus((16, 16, 16), wire)`."""
    if not sides or any(side < 1 for side in sides):
        raise ScenarioError(
            f"{written(sides) or 'nothing'} is not a torus", hint="sides of 1 or more, e.g. 8x8x8"
        )
    wraps = (wrap,) * len(sides) if isinstance(wrap, bool) else wrap
    if len(wraps) != len(sides):
        raise ScenarioError(
            f"{len(wraps)} axes are said to wrap or not, of {len(sides)}",
            hint="one truth value for each axis",
        )
    shape = Torus(tuple(sides), tuple(wraps))
    sources, targets = [], []
    for axis in range(len(sides)):
        lower, upper = _cables(shape, axis)
        sources += [lower, upper]
        targets += [upper, lower]
    num_links = shape.first_link(len(sides))
    num_hosts = shape.num_hosts
    return Fabric(
        name=name or f"{written(sides)} {'torus' if any(wraps) else 'mesh'}",
        topology="torus" if any(wraps) else "mesh",
        num_hosts=num_hosts,
        num_nodes=num_hosts,
        node_tier=np.zeros(num_hosts, np.uint8),
        link_source=np.concatenate(sources),
        link_target=np.concatenate(targets),
        link_bytes_per_s=np.full(num_links, wire.bytes_per_s),
        link_latency_s=np.full(num_links, wire.latency_s),
        link_kind=np.full(num_links, SCALE_UP, np.uint8),
        domain=np.zeros(num_hosts, np.int32),
        shape=shape,
    )


def _cables(shape: Torus, axis: int) -> tuple[Ints, Ints]:
    """Both ends of each cable along an axis."""
    side, stride, segments = shape.sides[axis], shape.stride(axis), shape.segments(axis)
    outer = np.arange(shape.num_hosts // (side * stride), dtype=np.int32)[:, None, None] * (side * stride)
    inner = np.arange(stride, dtype=np.int32)[None, None, :]
    place = np.arange(segments, dtype=np.int32)[None, :, None]
    lower = outer + place * stride + inner
    upper = outer + (place + 1) % side * stride + inner
    return lower.ravel(), upper.ravel()


def torus_for(num_chips: int, wire: Wire, *, axes: int, wrap: bool = True) -> Fabric:
    """The most cube-like torus of exactly `num_chips` chips, or an error with the nearest numbers."""
    return torus(squat_sides(num_chips, axes), wire, wrap=wrap)
