"""Round trips by distance, beside those that a cloud publishes."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.catalog.entries.supply.region import Region
from datahall.economics.supply.distance import PATH_HIGH, PATH_LOW, PATH_RATIO, distance_m, round_trip

CATALOG = Catalog(user=False)
# a region in each city whose round trips are published
CITIES = {
    "Washington DC": "aws-us-east-1", "Frankfurt": "aws-eu-central-1",
    "London": "aws-eu-west-2", "Osaka": "aws-ap-northeast-3", "Sydney": "aws-ap-southeast-2",
    "Tokyo": "aws-ap-northeast-1", "Sao Paulo": "gcp-southamerica-east1",
}  # fmt: skip
TORONTO = (43.653, -79.383)


def city(name: str) -> Region:
    if name == "Toronto":
        latitude, longitude = TORONTO
        return placed(latitude, longitude)
    return CATALOG.region(CITIES[name])


def placed(latitude: float, longitude: float) -> Region:
    return Region(
        name="here",
        title="here",
        provider="me",
        country="canada",
        latitude_deg=latitude,
        longitude_deg=longitude,
    )


def published() -> list[tuple[str, str, float]]:
    text = (Path(__file__).parent / "round_trips.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines()[1:])
    return [(row["from"], row["to"], float(row["ms"]) / 1e3) for row in rows]


def test_the_path_factor_is_the_median_of_published_round_trips_and_its_band_has_eight_of_ten() -> None:
    ratios = []
    for one, other, measured_s in published():
        found = round_trip(city(one), city(other))
        assert found is not None
        ratios.append(PATH_RATIO * measured_s / found.value)
    assert len(ratios) == 28
    assert median(ratios) == pytest.approx(PATH_RATIO, rel=0.02)
    inside = [ratio for ratio in ratios if PATH_LOW <= ratio <= PATH_HIGH]
    assert 0.7 <= len(inside) / len(ratios) <= 0.85


def test_no_published_round_trip_is_faster_than_light_on_the_great_circle() -> None:
    for one, other, measured_s in published():
        found = round_trip(city(one), city(other))
        assert found is not None
        assert measured_s > found.value / PATH_RATIO, (one, other)


def measured() -> list[tuple[Region, Region, float]]:
    """Between machines of two clouds; a region is not in its city, which matters where two are near each other."""
    text = (Path(__file__).parent / "round_trips_of_clouds.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines()[1:])
    pairs = [(CATALOG.region(row["from"]), CATALOG.region(row["to"]), float(row["ms"]) / 1e3) for row in rows]
    return [(one, other, time_s) for one, other, time_s in pairs if distance_m(one, other) > 500e3]


def test_the_path_factor_holds_for_round_trips_that_others_measured() -> None:
    """225 pairs of regions of AWS and Azure, of which none was looked at when the factor was chosen."""
    ratios = []
    for one, other, measured_s in measured():
        found = round_trip(one, other)
        assert found is not None
        assert measured_s > found.value / PATH_RATIO, (one.name, other.name)
        ratios.append(PATH_RATIO * measured_s / found.value)
    assert len(ratios) == 225
    assert median(ratios) == pytest.approx(PATH_RATIO, rel=0.07)
    inside = [ratio for ratio in ratios if PATH_LOW <= ratio <= PATH_HIGH]
    assert 0.7 <= len(inside) / len(ratios) <= 0.85


def test_a_great_circle_that_is_known() -> None:
    """A quarter of a meridian is 10,007.6 km of a sphere with the mean radius."""
    assert distance_m(placed(0.0, 20.0), placed(90.0, -70.0)) == pytest.approx(10_007_557, rel=1e-6)
    assert distance_m(placed(0.0, 179.5), placed(0.0, -179.5)) == pytest.approx(111_195, rel=1e-4)


PLACES = st.tuples(st.floats(-90, 90), st.floats(-180, 180)).map(lambda at: placed(*at))


@given(PLACES, PLACES, PLACES)
def test_distance_is_a_metric(one: Region, two: Region, three: Region) -> None:
    assert distance_m(one, one) == 0.0
    assert distance_m(one, two) == pytest.approx(distance_m(two, one), abs=1e-3)
    assert distance_m(one, three) <= distance_m(one, two) + distance_m(two, three) + 1.0


def test_a_round_trip_adds_up_and_has_a_band() -> None:
    for one, other in combinations(("aws-us-east-1", "aws-eu-west-2", "aws-us-west-2"), 2):
        found = round_trip(CATALOG.region(one), CATALOG.region(other))
        assert found is not None
        assert found.band is not None
        assert false_nodes(found) == []
        assert found.band.low < found.value < found.band.high


def test_a_region_of_which_nobody_says_where_it_is_has_no_round_trips() -> None:
    nowhere = CATALOG.region("gcp-us-east5")
    assert not nowhere.is_placed
    assert round_trip(nowhere, CATALOG.region("aws-us-east-1")) is None
