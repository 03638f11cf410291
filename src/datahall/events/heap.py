"""A four-way heap of times that knows where each of its nodes is.

A node is 16 bytes, so four siblings are one cache line; the root is node 3 and the children of node i are
nodes 4(i-2) … 4(i-2)+3.  Four ways did 9 million hold steps a second at 16,384 nodes where two ways did 6.
Keeping `position` up to date costs 5–10 % of that and lets any event be moved or removed where it stands.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline

NODE = np.dtype([("time_s", "<f8"), ("order", "<i8")])  # order: priority above, sequence number below
ROOT = 3
SEQUENCE_BITS = 48
SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1

Nodes: TypeAlias = NDArray[np.void]
Positions: TypeAlias = NDArray[np.int32]


@inline
def comes_first(heap: Nodes, left: int, right: int) -> bool:
    """Whether node `left` is due before node `right`: by time, then priority, then sequence."""
    left_s, right_s = heap[left]["time_s"], heap[right]["time_s"]
    return bool((left_s < right_s) | ((left_s == right_s) & (heap[left]["order"] < heap[right]["order"])))


@inline
def put(heap: Nodes, position: Positions, node: int, time_s: float, order: int) -> None:
    """Write a node, and where it is."""
    heap[node]["time_s"] = time_s
    heap[node]["order"] = order
    position[order & SEQUENCE_MASK & (position.size - 1)] = node


@inline
def rise(heap: Nodes, position: Positions, node: int, time_s: float, order: int) -> int:
    """Move the gap at `node` towards the root until (time_s, order) may stand in it; return where."""
    while node > ROOT:
        parent = (node >> 2) + 2
        above_s, above = heap[parent]["time_s"], heap[parent]["order"]
        if above_s < time_s or (above_s == time_s and above < order):
            break
        put(heap, position, node, above_s, above)
        node = parent
    return node


@inline
def sink(heap: Nodes, position: Positions, node: int, end: int, time_s: float, order: int) -> int:
    """Move the gap at `node` towards the leaves until (time_s, order) may stand in it; return where."""
    while True:
        child = (node - 2) << 2
        if child >= end:
            break
        first = first_of(heap, child, end)
        below_s, below = heap[first]["time_s"], heap[first]["order"]
        if time_s < below_s or (time_s == below_s and order < below):
            break
        put(heap, position, node, below_s, below)
        node = first
    return node


@inline
def first_of(heap: Nodes, child: int, end: int) -> int:
    """The earliest of up to four siblings; a knock-out, because its compares do not wait for one another."""
    if child + 3 < end:
        left = child + 1 if comes_first(heap, child + 1, child) else child
        right = child + 3 if comes_first(heap, child + 3, child + 2) else child + 2
        return right if comes_first(heap, right, left) else left
    first = child
    for other in range(child + 1, end):
        if comes_first(heap, other, first):
            first = other
    return first
