"""The k-ary fat tree: switches of k ports in three tiers, with as much bandwidth at the top as at the bottom.

k³/4 endpoints, k²/2 edge, k²/2 aggregation and k²/4 core switches, 3k³/4 cables, (k/2)² paths between pods.

Reference: M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity data center network architecture",
SIGCOMM 2008.
"""

from __future__ import annotations

from datahall.errors import ScenarioError
from datahall.fabric.topology.clos import size_clos
from datahall.fabric.topology.folded_clos import FoldedClos, folded_clos
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.tiers import odd_ports


def smallest_radix(num_chips: int) -> int:
    """The smallest even k with k³/4 ≥ chips.

    >>> smallest_radix(1024), smallest_radix(1025), smallest_radix(101_306)
    (16, 18, 74)
    """
    radix = 2
    while radix**3 // 4 < num_chips:
        radix += 2
    return radix


def fat_tree(num_chips: int, wire: Wire, *, radix: int | None = None) -> Fabric:
    """The smallest k-ary fat tree that holds `num_chips` chips; ports past the last chip are empty.

    With `radix` given it has only the pods that are needed, and as many core switches as these fill.
    """
    if num_chips < 1:
        raise ScenarioError(f"a fat tree of {num_chips} chips", field="chips", hint="ask for 1 chip or more")
    k = smallest_radix(num_chips) if radix is None else radix
    if k < 2 or k % 2:
        raise odd_ports(k, lambda even: even**3 // 4 >= num_chips)
    if num_chips > k**3 // 4:
        raise ScenarioError(
            f"{num_chips:,} chips do not fit a fat tree of radix {k}, which holds {k**3 // 4:,}",
            field="chips",
            hint=f"radix {smallest_radix(num_chips)} holds {smallest_radix(num_chips) ** 3 // 4:,}; "
            f"or take {k**3 // 4:,} chips",
        )
    half = k // 2
    shape = (
        FoldedClos(
            num_hosts=num_chips, children=(half, half, k), parents=(1, half, half), uplinks=(1, half, half)
        )
        if radix is None or half == 1
        else size_clos(num_chips, radix=k, tiers=3)
    )
    return folded_clos(f"{k}-ary fat tree", "fat-tree", shape, wire)
