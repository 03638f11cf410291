"""How likely enough parts work: exact binomial sums, no simulation.

A TPU cube works when all of its 16 hosts do; an optical circuit switch lets a job run on any m of the C
cubes.
"""

from __future__ import annotations

from math import exp, fsum, lgamma, log, log1p

from datahall.errors import ScenarioError

HOSTS_PER_CUBE = 16


def unit_availability(part_availability: float, num_parts: int = HOSTS_PER_CUBE) -> float:
    """Share of time that all parts of a unit work: h^n.

    >>> round(unit_availability(0.999), 5)
    0.98412
    """
    _check_share("availability", part_availability)
    return part_availability**num_parts


def at_least(needed: int, total: int, availability: float) -> float:
    """P(Bin(total, availability) ≥ needed): that so many of the units work at one moment.

    >>> cube = unit_availability(0.999)
    >>> round(at_least(64, 64, cube), 3), round(at_least(60, 64, cube), 4)
    (0.359, 0.9965)
    """
    _check_share("availability", availability)
    if not 0 <= needed <= total:
        raise ScenarioError(f"{needed} of {total} units", hint=f"between 0 and {total}")
    if needed == 0 or availability == 1.0:
        return 1.0
    if availability == 0.0:
        return 0.0
    whole = lgamma(total + 1)
    up, down = log(availability), log1p(-availability)
    return min(
        1.0,
        fsum(
            exp(whole - lgamma(n + 1) - lgamma(total - n + 1) + n * up + (total - n) * down)
            for n in range(needed, total + 1)
        ),
    )


def _check_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ScenarioError(f"{name} is {value:g}", hint="between 0 and 1, e.g. 0.999")
