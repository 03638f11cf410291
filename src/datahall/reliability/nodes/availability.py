"""How likely enough parts work: binomial sums, no simulation.

A TPU cube works when all of its 16 hosts do; an optical circuit switch lets a job run on any m of the C cubes, so that
it waits for mirrors and not for a repair.
"""

from __future__ import annotations

from typing import NamedTuple

from datahall.errors import ScenarioError
from datahall.reliability.tails.binomial import binomial_at_least

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
    return binomial_at_least(needed, total, availability)


class Slice(NamedTuple):
    """A job on some cubes of a pod."""

    num_needed: int
    num_cubes: int
    enough_fraction: float  # of the time so many cubes work
    wait_s: float  # from a failure until the slice is whole again, in the mean


def slice_of(
    num_needed: int, num_cubes: int, host_availability: float, *, reconfigure_s: float, repair_s: float
) -> Slice:
    """How often a slice of some cubes can be had of a pod, and how long it waits when one of them fails.

        P = Σ_{k ≥ m} C(C, k) a^k (1 − a)^(C − k),  a = h^16;   wait = P' · reconfigure + (1 − P') · repair

    with P' that of the m cubes among the C − 1 that are left.

    Parameters: cubes of the job; cubes of the pod; share of the time that a host works; time to turn mirrors [s]; time
    to repair a host [s].

    >>> whole = slice_of(64, 64, 0.999, reconfigure_s=10.0, repair_s=3600.0)
    >>> less = slice_of(60, 64, 0.999, reconfigure_s=10.0, repair_s=3600.0)
    >>> round(whole.enough_fraction, 3), whole.wait_s, round(less.enough_fraction, 4), round(less.wait_s)
    (0.359, 3600.0, 0.9965, 75)
    """
    cube = unit_availability(host_availability, HOSTS_PER_CUBE)
    others = at_least(num_needed, num_cubes - 1, cube) if num_needed < num_cubes else 0.0
    wait_s = others * reconfigure_s + (1.0 - others) * repair_s
    return Slice(num_needed, num_cubes, at_least(num_needed, num_cubes, cube), wait_s)


def _check_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ScenarioError(f"{name} is {value:g}", hint="between 0 and 1, e.g. 0.999")
