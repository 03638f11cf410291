"""The plain tree: one uplink per switch, so half of all traffic squeezes through the links of the root.

An all-to-all over n endpoints is slowed by about n/2 × (endpoint bandwidth / root bandwidth); a ring hardly
is.
"""

from __future__ import annotations

from datahall.counted import counted
from datahall.errors import ScenarioError, option
from datahall.fabric.topology.folded_clos import FoldedClos, folded_clos
from datahall.fabric.topology.graph import Fabric, Wire


def tree(num_chips: int, wire: Wire, *, radix: int) -> Fabric:
    """The lowest tree of switches with `radix` ports, one of them up; `radix` 3 is a binary tree."""
    if num_chips < 1:
        raise ScenarioError(f"a tree of {num_chips} chips", field="chips", hint="ask for 1 chip or more")
    if radix < 3:
        raise ScenarioError(
            f"a tree of switches with {radix} ports has no two branches",
            field="radix",
            hint=f"nearest: {option('radix', 3)}, a binary tree",
        )
    children = []
    nodes = num_chips
    while nodes > radix:
        children.append(radix - 1)
        nodes = -(-nodes // (radix - 1))
    children.append(nodes)
    levels = len(children)
    shape = FoldedClos(
        num_hosts=num_chips, children=tuple(children), parents=(1,) * levels, uplinks=(1,) * levels
    )
    return folded_clos(f"tree of {counted(levels, 'tier')}", "tree", shape, wire)
