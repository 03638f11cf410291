"""Leaf–spine and Clos networks of up to four tiers of a given switch, with the oversubscription of each tier.

A tier's oversubscription is bandwidth down : bandwidth up of its switches; 1:1 everywhere is a fat tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.errors import ScenarioError
from datahall.fabric.topology.folded_clos import FoldedClos, folded_clos
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.scenario.sections.fabric import MOST_TIERS


class Ports(msgspec.Struct, frozen=True):
    """How a switch that is not at the top divides its ports."""

    down: int
    up: int


def ports(radix: int, oversubscription: float) -> Ports:
    """The most ports down with down / up ≤ oversubscription and down + up ≤ radix.

    >>> ports(64, 1), ports(64, 3), ports(64, 7)
    (Ports(down=32, up=32), Ports(down=48, up=16), Ports(down=56, up=8))
    """
    up = min(range(1, radix), key=lambda n: (-min(radix - n, int(oversubscription * n + 1e-9)), n))
    return Ports(min(radix - up, int(oversubscription * up + 1e-9)), up)


def most_chips(
    radix: int, tiers: int, oversubscription: Sequence[float] = (1.0,), *, leaf_chips: int | None = None
) -> int:
    """Chips that a network of so many tiers holds: down₁ × … × radix; at most `leaf_chips` on a leaf.

    >>> most_chips(64, 2), most_chips(64, 3), most_chips(64, 2, (3,))
    (2048, 65536, 3072)
    """
    held = radix
    for tier in range(tiers - 1):
        down = ports(radix, _ratio(oversubscription, tier)).down
        held *= min(down, leaf_chips) if tier == 0 and leaf_chips else down
    return held


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

    Bundles of parallel cables are even, so switches at the top may have free ports.  `pod_chips` makes the
    pods smaller than they could be.
    """
    _check(num_chips, radix, tiers, oversubscription)

    def holds(ports_: int, tiers_: int) -> int:
        return most_chips(ports_, tiers_, oversubscription, leaf_chips=leaf_chips)

    if tiers is None:
        tiers = next((n for n in range(1, MOST_TIERS + 1) if holds(radix, n) >= num_chips), MOST_TIERS)
    held = holds(radix, tiers)
    if num_chips > held:
        enough = radix
        while holds(enough, tiers) < num_chips:
            enough += 2
        more = f", {tiers + 1} tiers" if tiers < MOST_TIERS else ""
        raise ScenarioError(
            f"{num_chips:,} chips do not fit {tiers} tiers of {radix}-port switches, which hold {held:,}",
            field="chips",
            hint=f"take {held:,} chips, switches of {enough} ports{more} or more oversubscription",
        )
    if tiers == 1:
        return FoldedClos(num_hosts=num_chips, children=(num_chips,), parents=(1,), cables=(1,))
    leaf = ports(radix, _ratio(oversubscription, 0))
    down = min(leaf.down, num_chips, leaf_chips or num_chips)
    children, parents, cables = [down], [1], [1]
    units, up = -(-num_chips // down), _ceil(down / _ratio(oversubscription, 0))
    for tier in range(1, tiers):
        top = tier == tiers - 1
        limit = radix if top else ports(radix, _ratio(oversubscription, tier)).down
        most = min(limit, -(-pod_chips // down)) if pod_chips and tier == 1 and not top else limit
        groups = 1 if top else -(-units // most)
        size = -(-units // groups)
        if size > limit:
            raise ScenarioError(
                f"{size} pods of {-(-num_chips // size):,} chips do not fit {radix}-port core switches",
                field="chips",
                hint=f"pods of {-(-num_chips // radix):,} chips or more",
            )
        bundle = _bundle(up, size, limit)
        children.append(size)
        parents.append(up // bundle)
        cables.append(bundle)
        units, up = groups, _ceil(size * bundle / _ratio(oversubscription, tier))
    return FoldedClos(
        num_hosts=num_chips, children=tuple(children), parents=tuple(parents), cables=tuple(cables)
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


def _bundle(up: int, below: int, limit: int) -> int:
    """Parallel cables to each switch above: the largest divisor of `up` whose bundles fit its ports."""
    return max(n for n in range(1, up + 1) if up % n == 0 and (below * n <= limit or n == 1))


def _ratio(oversubscription: Sequence[float], tier: int) -> float:
    return oversubscription[tier] if tier < len(oversubscription) else 1.0


def _ceil(value: float) -> int:
    return max(1, -int(-value // 1) if value % 1 < 1e-9 else int(value) + 1)


def _check(num_chips: int, radix: int, tiers: int | None, oversubscription: Sequence[float]) -> None:
    if num_chips < 1:
        raise ScenarioError(f"a network of {num_chips} chips", field="chips", hint="ask for 1 chip or more")
    if radix < 2 or radix % 2:
        near = sorted({max(2, radix - 1), max(2, radix + 1)})
        raise ScenarioError(
            f"a switch has an even number of ports, not {radix}",
            field="radix",
            hint=f"nearest: {' or '.join(map(str, near))}",
        )
    if tiers is not None and not 1 <= tiers <= MOST_TIERS:
        raise ScenarioError(
            f"a Clos network of {tiers} tiers is not modelled", field="tiers", hint=f"1 to {MOST_TIERS} tiers"
        )
    for ratio in oversubscription:
        if not 1 <= ratio <= radix - 1:
            raise ScenarioError(
                f"oversubscription {ratio:g}:1 is not possible with {radix}-port switches",
                field="oversubscription",
                hint=f"between 1:1 and {radix - 1}:1",
            )
