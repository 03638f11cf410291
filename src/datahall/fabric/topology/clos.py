"""Leaf–spine and Clos networks of up to four tiers of a given switch, with the oversubscription of each tier.

A tier's oversubscription is bandwidth down : bandwidth up of its switches; 1:1 everywhere is a fat tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from datahall.errors import ScenarioError
from datahall.fabric.topology.folded_clos import FoldedClos, folded_clos
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.tiers import most_chips, num_tiers, ports, ratio_of


def size_clos(
    num_chips: int,
    *,
    radix: int,
    tiers: int | None = None,
    oversubscription: Sequence[float] = (1.0,),
    leaf_chips: int | None = None,
    pod_chips: int | None = None,
) -> FoldedClos:
    """The smallest network of `radix`-port switches for so many chips; the fewest tiers unless given.

    At the top cables are bundled as they come out, one more or less, so that as few switches are there as ports allow
    with all pods wired alike; below it bundles are even, and so are the ways up from each.  `pod_chips` makes the pods
    smaller than they could be.
    """
    tiers = num_tiers(
        num_chips,
        radix=radix,
        tiers=tiers,
        oversubscription=oversubscription,
        holds=partial(most_chips, leaf_chips=leaf_chips),
    )
    if tiers == 1:
        return FoldedClos(num_hosts=num_chips, children=(num_chips,), parents=(1,), uplinks=(1,))
    leaf = ports(radix, ratio_of(oversubscription, 0))
    down = min(leaf.down, num_chips, leaf_chips or num_chips)
    children, parents, uplinks = [down], [1], [1]
    units, up = -(-num_chips // down), _ceil(down / ratio_of(oversubscription, 0))
    for tier in range(1, tiers):
        top = tier == tiers - 1
        limit = radix if top else ports(radix, ratio_of(oversubscription, tier)).down
        most = min(limit, -(-pod_chips // down)) if pod_chips and tier == 1 and not top else limit
        groups = 1 if top else -(-units // most)
        size = -(-units // groups)
        if size > limit:
            raise ScenarioError(
                f"{size} pods of {-(-num_chips // size):,} chips do not fit {radix}-port core switches",
                field="chips",
                hint=f"pods of {-(-num_chips // radix):,} chips or more",
            )
        children.append(size)
        parents.append(_num_parents(up, limit // size, even=groups > 1))
        uplinks.append(up)
        units, up = groups, _ceil(size * -(-up // parents[-1]) / ratio_of(oversubscription, tier))
    return FoldedClos(
        num_hosts=num_chips, children=tuple(children), parents=tuple(parents), uplinks=tuple(uplinks)
    )


def clos(
    num_chips: int,
    wire: Wire,
    *,
    radix: int,
    tiers: int | None = None,
    oversubscription: Sequence[float] = (1.0,),
    pod_chips: int | None = None,
) -> Fabric:
    """A Clos network of one to four tiers, oversubscribed by tier from the leaves up."""
    shape = size_clos(
        num_chips, radix=radix, tiers=tiers, oversubscription=oversubscription, pod_chips=pod_chips
    )
    levels = shape.num_levels
    return folded_clos(f"{levels}-tier Clos of {radix}-port switches", "clos", shape, wire)


def _num_parents(up: int, most: int, *, even: bool) -> int:
    """Switches above, over which so many cables are bundled, at most so many to each; the fewest.

    >>> _num_parents(29, 8, even=False), _num_parents(29, 8, even=True), _num_parents(32, 10, even=True)
    (4, 29, 4)
    """
    fewest = -(-up // most)
    return next(n for n in range(fewest, up + 1) if up % n == 0) if even else fewest


def _ceil(value: float) -> int:
    return max(1, -int(-value // 1) if value % 1 < 1e-9 else int(value) + 1)
