"""How many tiers of switches so many chips need: known from the ports alone, before anything is laid."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import NamedTuple, TypeAlias

import msgspec

from datahall.counted import counted
from datahall.errors import ScenarioError, option
from datahall.scenario.sections.fabric import MOST_TIERS

Holds: TypeAlias = Callable[[int, int, Sequence[float]], int]  # chips, by ports, tiers and oversubscription


class Ports(msgspec.Struct, frozen=True):
    """How a switch that is not at the top divides its ports."""

    down: int
    up: int


@lru_cache(maxsize=1024)  # asked for every tier of every size of a network
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


def most_in_rails(rails: int, radix: int, tiers: int, oversubscription: Sequence[float] = (1.0,)) -> int:
    """Chips that as many networks hold that only servers join.

    >>> most_in_rails(8, 4, 4)
    256
    """
    return rails * most_chips(radix, tiers, oversubscription)


def num_tiers(
    num_chips: int,
    *,
    radix: int,
    tiers: int | None = None,
    oversubscription: Sequence[float] = (1.0,),
    holds: Holds = most_chips,
    whole: int = 1,
    alone: int = 0,
    named: bool = False,
) -> int:
    """The fewest tiers of `radix`-port switches that hold so many chips, or those given where they do.

    What an error suggests comes in `whole` servers, or is so many as need no network (`alone`); tiers that the name
    of a topology says (`named`) cannot be others.
    """
    _check(num_chips, radix, tiers, oversubscription)
    found = tiers or next(
        (n for n in range(1, MOST_TIERS) if holds(radix, n, oversubscription) >= num_chips), MOST_TIERS
    )
    held = holds(radix, found, oversubscription)
    if num_chips <= held:
        return found
    others = range(found + 1, 1 if named else MOST_TIERS + 1)
    more = next((n for n in others if holds(radix, n, oversubscription) >= num_chips), None)
    enough = next(even for even in count(radix, 2) if holds(even, found, oversubscription) >= num_chips)
    ratios = _wider(oversubscription, radix, lambda wider: holds(radix, found, wider) >= num_chips)
    near = [
        option(name, value)
        for name, value in (
            ("chips", held // whole * whole or alone),
            ("radix", enough),
            ("tiers", more),
            ("oversubscription", ",".join(f"{ratio:g}:1" for ratio in ratios)),
        )
        if value
    ]
    raise ScenarioError(
        f"{num_chips:,} chips do not fit {counted(found, 'tier')} of {radix}-port switches, which hold {held:,}",
        field="chips",
        hint=f"nearest: {' or '.join(near)}",
    )


def _wider(
    oversubscription: Sequence[float], radix: int, enough: Callable[[Sequence[float]], bool]
) -> Sequence[float]:
    """The ratios with the least whole one at the leaves that is enough; none where no ratio is."""
    rest = tuple(oversubscription[1:])
    above = range(int(ratio_of(oversubscription, 0)) + 1, radix)
    least = bisect_left(above, True, key=lambda ratio: enough((float(ratio), *rest)))
    return (float(above[least]), *rest) if least < len(above) else ()


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

    def holds(ports_: int, tiers_: int, ratios: Sequence[float]) -> int:
        held = most_chips(ports_, tiers_, ratios)
        leaf = rails if tiers_ == 1 else rails * ports(ports_, ratio_of(ratios, 0)).down
        return held // leaf * leaf  # every rail has as many leaves

    found = num_tiers(num_chips, radix=radix, tiers=tiers, oversubscription=oversubscription, holds=holds)
    servers = num_chips // rails
    seats = min(servers, ports(radix, ratio_of(oversubscription, 0)).down)
    return Rails(num_chips if found == 1 else -(-servers // seats) * rails * seats, seats, found)


class Sized(NamedTuple):
    """What the tiers of a network follow from, before it is laid."""

    num_chips: int
    radix: int
    domain: int  # chips of a server
    tiers: int | None  # as somebody says, or the name of the topology
    oversubscription: Sequence[float]
    alone: int  # chips that need no network
    named: bool  # whether the name of the topology says its tiers


Tiering: TypeAlias = Callable[[Sized], int]


def clos_tiers(sized: Sized, *, holds: Holds = most_chips) -> int:
    """Those of one network under all chips."""
    return num_tiers(
        sized.num_chips,
        radix=sized.radix,
        tiers=sized.tiers,
        oversubscription=sized.oversubscription,
        holds=holds,
        whole=sized.domain,
        alone=sized.alone,
        named=sized.named,
    )


def rail_only_tiers(sized: Sized) -> int:
    """Those of each of as many networks as a server has chips."""
    return clos_tiers(sized, holds=partial(most_in_rails, sized.domain))


def rail_optimised_tiers(sized: Sized) -> int:
    """Those of one network that joins the rails of all servers."""
    return rails_of(
        sized.num_chips,
        radix=sized.radix,
        rails=sized.domain,
        tiers=sized.tiers,
        oversubscription=sized.oversubscription,
    ).tiers


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
