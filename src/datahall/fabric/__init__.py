"""Many chips: topologies as arrays, the ways through them, what they are made of and what is left when parts
fail.

`build` makes a fabric by name, `route` finds the path of each flow, `counts` and `bill` describe it.
"""

from datahall.fabric.routing.paths import hops, num_paths, route
from datahall.fabric.topology.graph import LINK_KINDS, Fabric, Paths, Wire

__all__ = ["LINK_KINDS", "Fabric", "Paths", "Wire", "hops", "num_paths", "route"]
