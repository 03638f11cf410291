"""Rails: chip i of every server hangs on the switches of rail i.

Rail-optimised networks join the rails at the spine; rail-only networks do not, and chips of different rails
meet inside a server.  With `forwarding` (NCCL calls it PXN) a chip hands traffic for another rail to its
neighbour on that rail over the scale-up links first.

Reference: W. Wang et al., "Rail-only: a low-cost high-performance network for training LLMs", arXiv
2307.12169.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from datahall.counted import counted
from datahall.errors import ScenarioError
from datahall.fabric.topology.clos import size_clos
from datahall.fabric.topology.folded_clos import folded_clos
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.scale_up import check_whole_domains, with_scale_up
from datahall.fabric.topology.tiers import most_in_rails, num_tiers, rails_of


def rail_optimised(
    num_chips: int,
    wire: Wire,
    scale_up: Wire,
    *,
    radix: int,
    rails: int = 8,
    tiers: int | None = None,
    oversubscription: Sequence[float] = (1.0,),
    forwarding: bool = True,
) -> Fabric:
    """Servers of `rails` chips; each leaf holds one rail of as many servers as it has ports down."""
    _check_rails(num_chips, rails)
    places, seats, tiers = rails_of(
        num_chips, radix=radix, rails=rails, tiers=tiers, oversubscription=oversubscription
    )
    sized = size_clos(places, radix=radix, tiers=tiers, oversubscription=oversubscription, leaf_chips=seats)
    railed = sized.num_levels > 1  # on a single switch every chip is on every rail
    shape = msgspec.structs.replace(
        sized,
        num_hosts=num_chips,
        rails=rails if railed else 1,
        rail_servers=seats if railed else 1,
        forwarding=forwarding and railed,
    )
    flat = folded_clos(f"{shape.num_levels}-tier rail-optimised", "rail-optimised", shape, wire)
    return with_scale_up(flat, rails, scale_up)


def rail_only(
    num_chips: int,
    wire: Wire,
    scale_up: Wire,
    *,
    radix: int,
    rails: int = 8,
    tiers: int | None = None,
    oversubscription: Sequence[float] = (1.0,),
) -> Fabric:
    """One network per rail and nothing between them but the scale-up links inside each server."""
    _check_rails(num_chips, rails)
    tiers = num_tiers(
        num_chips,
        radix=radix,
        tiers=tiers,
        oversubscription=oversubscription,
        holds=partial(most_in_rails, rails),
    )
    plane = size_clos(num_chips // rails, radix=radix, tiers=tiers, oversubscription=oversubscription)
    shape = msgspec.structs.replace(
        plane,
        num_hosts=num_chips,
        planes=rails,
        rails=rails,
        rail_servers=plane.below(plane.num_levels),
        forwarding=True,
    )
    flat = folded_clos(f"{rails} rails of {counted(shape.num_levels, 'tier')}", "rail-only", shape, wire)
    return with_scale_up(flat, rails, scale_up)


def _check_rails(num_chips: int, rails: int) -> None:
    """Servers are whole, and have chips for two rails or more."""
    check_whole_domains(num_chips, rails)
    if rails < 2:
        raise ScenarioError(
            f"{rails} rail is an ordinary network", field="domain", hint="2 rails or more, or topology clos"
        )
