"""Grids, buildings, ways to cool and what stores energy: read with their sources, refused where they make no sense."""

from __future__ import annotations

from statistics import fmean

import pytest

from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.catalog.entries.site.grid import read_grid
from datahall.catalog.fact import Entry
from datahall.errors import UnknownNameError
from datahall.units import KWH_J


def test_the_mean_of_a_day_is_the_mean_that_is_stated(catalog: Catalog) -> None:
    known = [grid for grid in catalog.grids() if grid.hourly_kg_per_j]
    assert len(known) == 8
    for grid in known:
        assert fmean(grid.hourly_kg_per_j) == pytest.approx(grid.carbon_kg_per_j, rel=3e-3)


def test_the_sun_is_seen_in_california_and_coal_in_arizona(catalog: Catalog) -> None:
    hours = catalog.grid("california").hourly_kg_per_j
    assert min(range(24), key=hours.__getitem__) in range(10, 14)
    assert max(hours) / min(hours) == pytest.approx(311 / 177, rel=0.01)
    assert catalog.grid("arizona").carbon_kg_per_j > 2 * catalog.grid("california").carbon_kg_per_j
    assert catalog.grid("norway").carbon_kg_per_j * KWH_J == pytest.approx(0.03008)


def test_a_grid_that_does_not_exist_is_refused_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.grid("texsa")
    assert caught.value.nearest[0] == "texas"


@pytest.mark.parametrize(
    "hourly",
    ["[1, 2, 3]", '"flat"', "[" + "-1, " * 24 + "]", "[" + "true, " * 24 + "]", "[" + "nan, " * 24 + "]"],
)
def test_hours_are_twenty_four_numbers(hourly: str) -> None:
    document = parse(
        '[source.x]\ntitle = "x"\ndate = 2024\n[grid.g]\ntitle = "G"\n'
        f'carbon = {{ value = "300 g/kWh", source = {{ title = "x", date = 2024 }} }}\nhourly = {hourly}\n',
        "test.toml",
    )
    entry = Entry(document, ("grid", "g"), {}, {}, {}, [])
    assert read_grid(entry, "g", document.content["grid"]["g"]) is None  # type: ignore[index,call-overload,arg-type]
    assert "24 numbers" in repr(entry.problems[0])


def test_a_pue_below_one_is_no_pue(catalog: Catalog) -> None:
    for name in ("hyperscale", "google", "meta", "microsoft", "survey-average"):
        one = catalog.facility(name)
        assert one.pue_ratio > 1 + one.electrical_fraction  # something is left for cooling
    for name in ("megapack", "supercapacitor", "psu"):
        buffer = catalog.buffer(name)
        assert 0 < buffer.round_trip_fraction <= 1
        assert 0 < buffer.depth_fraction <= 1
        assert buffer.usable_j <= buffer.energy_j
