"""How long the sides of a grid are for so many chips, counted before anything is laid."""

from __future__ import annotations

import math
from itertools import count

from datahall.errors import ScenarioError, option

CUBE_SIDE = 4  # of a cube of a TPU pod


def cubic_sides(num_chips: int, axes: int) -> tuple[int, ...]:
    """The most cube-like sides of a torus with exactly this many chips, shortest first.

    >>> cubic_sides(9216, 3), cubic_sides(4096, 3), cubic_sides(256, 2)
    ((16, 24, 24), (16, 16, 16), (16, 16))
    """
    if axes == 1:
        return (num_chips,)
    best: tuple[int, ...] = ()
    for side in range(1, math.floor(num_chips ** (1 / axes) + 1e-9) + 1):
        if num_chips % side == 0:
            rest = cubic_sides(num_chips // side, axes - 1)
            if not best or (max(side, *rest), sum(rest) + side) < (max(best), sum(best)):
                best = tuple(sorted((side, *rest)))
    return best


def squat_sides(num_chips: int, axes: int) -> tuple[int, ...]:
    """The most cube-like sides of so many chips, or an error with the nearest numbers where they make a ring."""
    if num_chips < 1:
        raise ScenarioError(f"a torus of {num_chips} chips", field="chips", hint="ask for 1 chip or more")
    sides = cubic_sides(num_chips, axes)
    if _squat(sides):
        return sides
    lower = next((n for n in range(num_chips - 1, 0, -1) if _squat(cubic_sides(n, axes))), 0)
    upper = next(n for n in range(num_chips + 1, 8 * num_chips + 8) if _squat(cubic_sides(n, axes)))
    near = " or ".join(f"{n:,} ({written(cubic_sides(n, axes))})" for n in (lower, upper) if n)
    raise ScenarioError(
        f"{num_chips:,} chips make no {axes}D torus: the most cube-like is {written(sides)}",
        field="chips",
        hint=f"nearest that do: {near}",
    )


def _squat(sides: tuple[int, ...]) -> bool:
    """Whether no axis is more than four times another; longer ones are rings with a torus' price."""
    return max(sides) <= 4 * min(sides)


def written(sides: tuple[int, ...]) -> str:
    """Sides as they are read: 4x4x8."""
    return "x".join(map(str, sides))


def hyperx_side(
    num_chips: int, *, radix: int, axes: int = 2, bisection_fraction: float = 0.5, whole: int
) -> tuple[int, int]:
    """The equal sides S of the smallest HyperX, and the chips on each switch: at most S / (2 × bisection).

    What an error suggests comes in `whole` servers.
    """
    for side in range(2, radix + 1):
        terminals = -(-num_chips // side**axes)
        if terminals + axes * (side - 1) <= radix and 2 * terminals * bisection_fraction <= side:
            return side, terminals

    def held(ports: int) -> int:
        most = (
            side**axes * min(ports - axes * (side - 1), int(side / (2 * bisection_fraction)))
            for side in range(2, ports // axes + 2)
        )
        return max(most, default=0) // whole * whole

    enough = next(even for even in count(radix + radix % 2, 2) if held(even) >= num_chips)
    near = [option("chips", held(radix))] if held(radix) > 0 else []
    raise ScenarioError(
        f"{num_chips:,} chips do not fit a {axes}D HyperX of {radix}-port switches with "
        f"{bisection_fraction:.0%} of full bisection",
        field="chips",
        hint=f"nearest: {' or '.join([*near, option('radix', enough)])}",
    )
