"""How long data takes from one place to another and back: light in fibre, on a path longer than the great circle.

    round trip = 2 · distance · path factor · time of a metre

Reference: ITU-T G.652, single-mode fibre; the path factor is that of round trips which a cloud publishes.
"""

from __future__ import annotations

from math import asin, cos, radians, sin, sqrt

from datahall.breakdown import Breakdown, Source, assumed, derived, product
from datahall.catalog.entries.supply.region import Region

EARTH_M = 6_371_008.8  # mean radius
METRE_S = 4.897e-9  # of light in single-mode fibre, group index 1.468
PATH_RATIO = 1.6
PATH_LOW, PATH_HIGH = 1.4, 2.6  # eight of ten pairs
IBM = Source(
    "IBM Cloud, inter-region latency of 22 June to 21 July 2024, 28 pairs of cities", "2024-07", "measured"
)
FIBRE = Source("MapYourTech, the 5-microsecond rule: delay of G.652 fibre at 1550 nm", "2026")


def distance_m(one: Region, other: Region) -> float:
    """The great circle between the cities that two regions are named after, by the haversine formula."""
    phi, psi = radians(one.latitude_deg), radians(other.latitude_deg)
    across = radians(other.longitude_deg - one.longitude_deg)
    chord = sin((psi - phi) / 2) ** 2 + cos(phi) * cos(psi) * sin(across / 2) ** 2
    return 2.0 * EARTH_M * asin(sqrt(chord))


def round_trip(one: Region, other: Region) -> Breakdown | None:
    """There and back between two regions; None where nobody says where one of them is."""
    if not (one.is_placed and other.is_placed):
        return None
    parts = (
        derived("there and back", 2.0, "ratio"),
        derived("distance", distance_m(one, other), "m", "great circle between the cities"),
        assumed("path over distance", PATH_RATIO, "ratio", "median of 28 pairs of cities", IBM),
        assumed("a metre of fibre", METRE_S, "s", "light in glass of group index 1.468", FIBRE),
    )
    found = product(f"round trip {one.name} to {other.name}", parts, "s")
    return found.with_band(PATH_LOW / PATH_RATIO, PATH_HIGH / PATH_RATIO, "eight of ten pairs of cities")
