"""How many tiers of switches so many chips need: known from the ports alone, before anything is laid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from datahall.counted import counted
from datahall.errors import ScenarioError, option
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
        down = ports(radix, ratio_of(oversubscription, tier)).down
        held *= min(down, leaf_chips) if tier == 0 and leaf_chips else down
    return held


def num_tiers(
    num_chips: int,
    *,
    radix: int,
    tiers: int | None = None,
    oversubscription: Sequence[float] = (1.0,),
    leaf_chips: int | None = None,
) -> int:
    """The fewest tiers of `radix`-port switches that hold so many chips, or those given where they do."""
    _check(num_chips, radix, tiers, oversubscription)

    def holds(ports_: int, tiers_: int) -> int:
        return most_chips(ports_, tiers_, oversubscription, leaf_chips=leaf_chips)

    if tiers is None:
        tiers = next((n for n in range(1, MOST_TIERS + 1) if holds(radix, n) >= num_chips), MOST_TIERS)
    held = holds(radix, tiers)
    if num_chips > held:
        enough = next(ports_ for ports_ in count(radix, 2) if holds(ports_, tiers) >= num_chips)
        more = f", {tiers + 1} tiers" if tiers < MOST_TIERS else ""
        raise ScenarioError(
            f"{num_chips:,} chips do not fit {counted(tiers, 'tier')} of {radix}-port switches, which hold {held:,}",
            field="chips",
            hint=f"take {held:,} chips, switches of {enough} ports{more} or more oversubscription",
        )
    return tiers


class Rails(NamedTuple):
    """How servers hang on rails: places for chips on leaves that are full, servers under a leaf, and tiers."""

    num_places: int
    seats: int
    tiers: int


def rails_of(
    num_chips: int,
    *,
    radix: int,
    rails: int,
    tiers: int | None = None,
    oversubscription: Sequence[float] = (1.0,),
) -> Rails:
    """Each leaf holds one rail of as many servers as it has ports down; chips that fit one switch need no more."""
    servers = num_chips // rails
    seats = min(servers, ports(radix, oversubscription[0]).down)
    groups = -(-servers // seats)
    if tiers is None and num_chips <= radix:
        tiers = 1
    places = num_chips if tiers == 1 else groups * rails * seats
    asked = tiers if tiers is not None or groups * rails > radix else 2
    found = num_tiers(places, radix=radix, tiers=asked, oversubscription=oversubscription, leaf_chips=seats)
    return Rails(places, seats, found)


def ratio_of(oversubscription: Sequence[float], tier: int) -> float:
    """Down over up of a tier from the leaves; full width where nothing is said of it."""
    return oversubscription[tier] if tier < len(oversubscription) else 1.0


def _check(num_chips: int, radix: int, tiers: int | None, oversubscription: Sequence[float]) -> None:
    if num_chips < 1:
        raise ScenarioError(f"a network of {num_chips} chips", field="chips", hint="ask for 1 chip or more")
    if radix < 2 or radix % 2:
        raise odd_ports(
            radix, lambda even: most_chips(even, tiers or MOST_TIERS, oversubscription) >= num_chips
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


def odd_ports(radix: int, holds: Callable[[int], bool]) -> ScenarioError:
    """A switch without an even number of ports; the nearest that has one, of those that hold the chips."""
    below, above = radix - 1, next(even for even in count(max(2, radix + 1), 2) if holds(even))
    near = [option("radix", even) for even in (below, above) if even == above or (even >= 2 and holds(even))]
    return ScenarioError(
        f"a switch has an even number of ports, not {radix}",
        field="radix",
        hint=f"nearest: {' or '.join(near)}",
    )
