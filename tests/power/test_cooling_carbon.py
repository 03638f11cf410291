"""Flows of coolants, racks, and the carbon of energy: by hand, at their limits, and against what was published."""

from __future__ import annotations

from statistics import fmean

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import load
from datahall.power.carbon import carbon_kg, day_of, embodied_kg_per_s
from datahall.power.cooling import AIR, LIQUID, flow_m3_per_s, rack_flow, servers_per_rack, usual_cooling
from datahall.units import HOUR_S, KWH_J

CATALOG = load()
GRIDS = [grid.name for grid in CATALOG.grids()]


def test_the_worked_flows() -> None:
    assert flow_m3_per_s(120e3, 10.0, LIQUID) * 6e4 == pytest.approx(172, abs=0.5)
    assert flow_m3_per_s(120e3, 15.0, AIR) == pytest.approx(6.6, abs=0.05)
    ratio = flow_m3_per_s(1.0, 1.0, AIR) / flow_m3_per_s(1.0, 1.0, LIQUID)
    assert ratio == pytest.approx(3500, rel=0.02)


def test_the_air_of_a_rack_comes_through_its_door() -> None:
    """40 kW by 20 K: 40,000 / (1,211 · 20) = 1.65 m³/s, through a front of 0.6 m by 2 m at 1.38 m/s."""
    air = msgspec.structs.replace(CATALOG.cooling(AIR), rise_kelvin=20.0)
    found = rack_flow(air, 40e3)
    assert found.m3_per_s == pytest.approx(1.651, rel=1e-3)
    assert found.speed_m_per_s == pytest.approx(1.376, rel=1e-3)


@given(power_w=st.floats(1e2, 1e6), factor=st.floats(1.0, 100.0))
def test_twice_the_heat_is_twice_the_flow_and_twice_the_rise_half_of_it(
    power_w: float, factor: float
) -> None:
    flow = flow_m3_per_s(power_w, 10.0, AIR)
    assert flow_m3_per_s(factor * power_w, 10.0, AIR) == pytest.approx(factor * flow)
    assert flow_m3_per_s(power_w, 10.0 * factor, AIR) == pytest.approx(flow / factor)


@pytest.mark.parametrize(("rack_w", "by"), [(1e3, AIR), (40e3, AIR), (40.1e3, LIQUID), (120e3, LIQUID)])
def test_air_stops_where_its_limit_is(rack_w: float, by: str) -> None:
    assert usual_cooling(CATALOG, rack_w).name == by
    assert rack_flow(CATALOG.cooling(AIR), rack_w).carries == (by == AIR)


def test_a_rack_holds_what_its_power_is_enough_for() -> None:
    assert [servers_per_rack(10.2e3, watts) for watts in (5e3, 10.2e3, 20.4e3, 40e3, 81.6e3)] == [
        1,
        1,
        2,
        3,
        8,
    ]


def test_the_carbon_of_llama_3_405b() -> None:
    """Its model card: 30.84 million GPU-hours at 700 W and 8,930 t of CO₂; the United States are 11 % below that."""
    energy_j = 30.84e6 * HOUR_S * 700.0
    assert energy_j / KWH_J == pytest.approx(21.6e6, rel=1e-3)
    assert carbon_kg(energy_j, CATALOG.grid("usa")) == pytest.approx(8.93e6, rel=0.12)


@pytest.mark.parametrize("name", GRIDS)
def test_resting_in_dirty_hours_never_costs_carbon_and_saves_more_the_longer(name: str) -> None:
    grid = CATALOG.grid(name)
    day = day_of(grid, CATALOG)
    saved = [day.saved_fraction(hours) for hours in range(24)]
    assert saved[0] == pytest.approx(0.0, abs=1e-12)
    assert saved == sorted(saved)
    assert saved[-1] == pytest.approx(1 - min(day.hours_kg_per_j) / day.mean_kg_per_j)
    assert day.mean_kg_per_j == pytest.approx(grid.carbon_kg_per_j, rel=1e-3)
    assert day.is_estimate != bool(grid.hourly_kg_per_j)


def test_hours_by_hand() -> None:
    """California, 2022: the eight hours from 8 to 15 are the cleanest; at 177 to 210 g/kWh."""
    day = day_of(CATALOG.grid("california"), CATALOG)
    assert day.cleanest_hours(8) == tuple(range(8, 16))
    hours = sorted(CATALOG.grid("california").hourly_kg_per_j)[:8]
    assert day.saved_fraction(16) == pytest.approx(1 - fmean(hours) / day.mean_kg_per_j)
    assert day.saved_fraction(16) > 0.25


def test_manufacture_is_written_off_over_a_life() -> None:
    server = CATALOG.server("dgx-h100")
    assert embodied_kg_per_s(server, 12_500) * 5 * 365 * 86_400 == pytest.approx(12_500 * 1312)
    unknown = embodied_kg_per_s(CATALOG.server("gb200-nvl72"), 1)
    assert unknown != unknown
