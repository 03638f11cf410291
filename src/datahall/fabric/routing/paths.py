"""The way of each flow: columns of (source, target, pick) in, paths out.

`pick` chooses among the equal-cost paths of a pair, so a hash of the flow is ECMP, q different picks are q
queue pairs and all of them are per-packet spraying.  Topologies route by arithmetic; whatever has no formula,
and whatever a failure pushes off its formula, is searched breadth first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datahall.errors import InfeasibleError
from datahall.fabric.routing.shortest import islands, shortest_paths
from datahall.fabric.topology.graph import Fabric, Ints, Longs, Paths, join_paths, merge, paths_of, select

_TRIES = 4  # other equal-cost paths tried before a search, when the picked one is out


class CutOffError(InfeasibleError):
    """Pairs of endpoints with no way between them."""

    code = "cut-off"

    def __init__(self, fabric: Fabric, source: Ints, target: Ints) -> None:
        pairs = np.unique(np.stack([source, target], axis=1), axis=0)  # many flows may join the same two
        self.source, self.target = pairs.T
        shown = ", ".join(f"{a}→{b}" for a, b in pairs[:5].tolist())
        more = f" and {len(pairs) - 5:,} more" if len(pairs) > 5 else ""
        super().__init__(
            f"{len(pairs):,} of the pairs have no way through {fabric.name}: {shown}{more}",
            hint="repair a link of theirs, leave these endpoints out, or join the parts of the fabric",
        )


def route(
    fabric: Fabric,
    source: ArrayLike,
    target: ArrayLike,
    pick: ArrayLike = 0,
    *,
    partial: bool = False,
    among_left: bool = False,
) -> Paths:
    """The picked path of each pair; a path to oneself is empty.

    Pairs that are cut off are a `CutOffError`, or empty paths where `partial` is set.  Where something is out, a flow
    keeps the path it would have otherwise if that is whole; `among_left` picks among the paths that are left instead,
    so that as many picks in a row as `num_paths` counts are as many paths.
    """
    here, there, choice = _columns(fabric, source, target, pick)
    if fabric.whole and fabric.shape is not None:
        paths = _by_formula(fabric, here, there, choice)
    elif among_left:
        paths, _ = shortest_paths(fabric, here, there, choice)
    else:
        paths = _around(fabric, here, there, choice, _by_formula(fabric, here, there, choice))
    if not partial:
        lost = (np.diff(paths.offsets) == 0) & (here != there)
        if lost.any():
            raise CutOffError(fabric, here[lost], there[lost])
    return paths


def num_paths(fabric: Fabric, source: ArrayLike, target: ArrayLike) -> Longs:
    """Equal-cost paths of each pair; 0 where it is cut off, 1 to oneself."""
    here, there, zero = _columns(fabric, source, target, 0)
    if fabric.shape is None or not fabric.whole:
        return shortest_paths(fabric, here, there, zero)[1]
    start, near = entry(fabric, here, there)
    count = fabric.shape.num_paths(start, there)
    count[near] = 1
    return count


def hops(fabric: Fabric, source: ArrayLike, target: ArrayLike) -> Ints:
    """Links between each pair, -1 where it is cut off."""
    here, there, zero = _columns(fabric, source, target, 0)
    if fabric.shape is None or not fabric.whole:
        paths, count = shortest_paths(fabric, here, there, zero)
        return np.where(count > 0, paths.hops, -1).astype(np.int32)
    start, near = entry(fabric, here, there)
    far = fabric.shape.hops(start, there) + np.where(start != here, 2, 0)
    return np.where(near, np.where(here == there, 0, 2), far).astype(np.int32)


def _columns(
    fabric: Fabric, source: ArrayLike, target: ArrayLike, pick: ArrayLike
) -> tuple[Ints, Ints, Longs]:
    here, there, choice = np.broadcast_arrays(
        np.atleast_1d(np.asarray(source, np.int32)), np.asarray(target, np.int32), np.asarray(pick, np.int64)
    )
    for column in (here, there):
        if column.size and (column.min() < 0 or column.max() >= fabric.num_hosts):
            seen = int(column.min()) if column.min() < 0 else int(column.max())
            raise IndexError(f"endpoint {seen} is not in {fabric.name}: 0 to {fabric.num_hosts - 1}")
    return here, there, choice


def entry(fabric: Fabric, here: Ints, there: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where each flow enters the scale-out network, and which flows stay inside a scale-up domain."""
    if fabric.scale_up_start < 0:
        return here, here == there
    near = fabric.domain[here] == fabric.domain[there]
    rails = fabric.traits.num_rails
    if rails > 1:
        return np.where(near, here, here // rails * rails + there % rails).astype(np.int32), near
    return here, near


def _by_formula(fabric: Fabric, here: Ints, there: Ints, choice: Longs) -> Paths:
    if fabric.shape is None:
        return Paths(np.empty(0, np.int32), np.zeros(here.size + 1, np.int64))
    if fabric.scale_up_start < 0:
        return fabric.shape.paths(here, there, choice)
    start, near = entry(fabric, here, there)
    far = np.flatnonzero(~near)
    inside = np.where(near, there, start)  # the last chip before the network
    rides = inside != here
    up = np.where(rides, fabric.scale_up_start + here, -1).astype(np.int32)
    down = np.where(rides, fabric.scale_up_start + fabric.num_hosts + inside, -1).astype(np.int32)
    network = merge([(far, fabric.shape.paths(start[far], there[far], choice[far]))], here.size)
    return join_paths(paths_of([up, down]), network) if rides.any() else network


def _around(fabric: Fabric, here: Ints, there: Ints, choice: Longs, paths: Paths) -> Paths:
    """Replace paths over links that are out: by another equal-cost one, else by the shortest that is left."""
    broken = _broken(fabric, here, there, paths)
    for attempt in range(1, _TRIES + 1 if fabric.shape is not None else 0):
        if not broken.size:
            return paths
        again = _by_formula(fabric, here[broken], there[broken], _another(choice[broken], attempt))
        good = np.setdiff1d(
            np.arange(broken.size), _broken(fabric, here[broken], there[broken], again), assume_unique=True
        )
        paths = _replaced(paths, broken[good], select(again, good))
        broken = np.delete(broken, good)
    if broken.size:
        part = islands(fabric)
        apart = part[here[broken]] != part[there[broken]]
        cut, broken = broken[apart], broken[~apart]
        paths = _replaced(paths, cut, Paths(np.empty(0, np.int32), np.zeros(cut.size + 1, np.int64)))
        found, _ = shortest_paths(fabric, here[broken], there[broken], choice[broken])
        paths = _replaced(paths, broken, found)
    return paths


def _broken(fabric: Fabric, here: Ints, there: Ints, paths: Paths) -> NDArray[np.int64]:
    out = fabric.link_bytes_per_s[paths.links] <= 0
    hit = np.bincount(paths.owners()[out], minlength=here.size) > 0
    return np.flatnonzero(hit | ((np.diff(paths.offsets) == 0) & (here != there)))


def _replaced(paths: Paths, flows: NDArray[np.int64], better: Paths) -> Paths:
    kept = np.delete(np.arange(paths.num_flows), flows)
    return merge([(kept, select(paths, kept)), (flows, better)], paths.num_flows)


def _another(choice: Longs, attempt: int) -> Longs:
    """A pick that has nothing to do with the first one, so that detours spread over what is left."""
    mixed = choice.astype(np.uint64) + np.uint64(attempt * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)
