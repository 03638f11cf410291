"""Remedies make a swing smaller, cost what they say, and are sized as by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.power.swing.waves import square_trace

from datahall.breakdown import false_nodes
from datahall.catalog import load
from datahall.power.swing.battery import (
    Need,
    binds,
    num_units,
    periodic_need,
    stop_need,
    trace_need,
    units_figure,
)
from datahall.power.swing.remedy import fewest, floored, ramp_capped, stored
from datahall.power.swing.trace import Trace

MEGAPACK, SUPERCAP, SUPPLY = (load().buffer(name) for name in ("megapack", "supercapacitor", "psu"))
WAVE = square_trace(time_constant_s=0.01)
MWH_J, KWH_J = 3.6e9, 3.6e6


def test_the_worked_cases_of_sizing() -> None:
    periodic = periodic_need(75e6, duty_fraction=0.8, period_s=4.0)
    assert periodic.power_w == pytest.approx(60e6)
    assert periodic.energy_j / KWH_J == pytest.approx(13.3, abs=0.05)
    assert periodic.rate_per_hour == pytest.approx(4500)  # in the thousands: no battery has that
    stop = stop_need(150e6, 10e6 / 60.0)
    assert stop.energy_j / MWH_J == pytest.approx(18.75)
    stored_j = 100_000 * SUPPLY.energy_j
    assert stored_j == pytest.approx(6.5e6)
    assert stored_j / 75e6 == pytest.approx(0.087, abs=5e-4)


@settings(max_examples=40, deadline=None)
@given(duty=st.floats(0.05, 0.95), step_s=st.floats(0.3, 20.0), swing_w=st.floats(1e3, 1e8))
def test_what_a_square_wave_needs_is_the_formula(duty: float, step_s: float, swing_w: float) -> None:
    found = trace_need(square_trace(0.0, swing_w, duty=duty, step_s=step_s))
    by_hand = periodic_need(swing_w, duty_fraction=duty, period_s=step_s)
    assert found.energy_j == pytest.approx(by_hand.energy_j, rel=0.02)
    assert found.power_w == pytest.approx(by_hand.power_w, rel=0.02)


def test_units_by_hand() -> None:
    """60 MW is 31.6 containers of 1.9 MW; 18.75 MWh are 5.5 of 3.9 MWh, at 90 % of it and √0.937 on the way out."""
    assert num_units(MEGAPACK, Need(13.3 * KWH_J, 60e6)) == 32
    assert binds(MEGAPACK, Need(13.3 * KWH_J, 60e6)) == "power"
    slow = Need(18.75 * MWH_J, 5e6)
    assert num_units(MEGAPACK, slow) == 6 == int(np.ceil(18.75 / (3.9 * 0.9 * 0.937**0.5)))
    assert binds(MEGAPACK, slow) == "energy"
    figure = units_figure(MEGAPACK, slow, "by hand")
    assert false_nodes(figure) == []
    assert figure.at("the larger", "by energy").value == pytest.approx(5.5185, rel=1e-3)


@pytest.mark.parametrize("buffer", [MEGAPACK, SUPERCAP, SUPPLY], ids=lambda one: one.name)
def test_more_of_a_store_never_leaves_more_swing(buffer) -> None:  # type: ignore[no-untyped-def]
    sizes = [0, 1, 3, 10, 30, 100, 1000, 10_000, 100_000, 1_000_000]
    swings = [stored(WAVE, buffer, num).trace.swing_w for num in sizes]
    assert swings[0] == WAVE.swing_w
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(swings))
    assert swings[-1] < 0.01 * WAVE.swing_w


def test_as_many_as_even_it_out_do() -> None:
    for buffer in (MEGAPACK, SUPERCAP):
        num = num_units(buffer, trace_need(WAVE))
        assert stored(WAVE, buffer, num).trace.swing_w < 1e-3 * WAVE.swing_w
        assert stored(WAVE, buffer, num // 2).trace.swing_w > 0.2 * WAVE.swing_w


@settings(max_examples=30, deadline=None)
@given(num=st.integers(0, 200_000), duty=st.floats(0.1, 0.9))
def test_a_store_keeps_energy_but_what_it_loses_and_stays_within_what_it_has(num: int, duty: float) -> None:
    wave = square_trace(20e6, 90e6, duty=duty, step_s=3.0, time_constant_s=0.02)
    found = stored(wave, SUPPLY, num)
    assert found.trace.mean_w == pytest.approx(wave.mean_w + found.cost_w)
    through_w = wave.power_w - (found.trace.power_w - found.cost_w)
    assert np.abs(through_w).max() <= num * SUPPLY.power_w * (1 + 1e-9) + 1e-6
    assert np.ptp(np.cumsum(through_w)) * wave.step_s <= num * SUPPLY.usable_j * (1 + 1e-6) + 1e-3
    given_w = float(np.maximum(through_w, 0.0).mean())
    assert found.cost_w == pytest.approx(given_w * (1 / 0.97 - 1), rel=1e-6, abs=1e-6)


def test_capacitors_of_a_supply_slow_edges_but_hold_no_step() -> None:
    """6.5 MJ are 87 ms of 75 MW."""
    found = stored(WAVE, SUPPLY, 100_000)
    assert found.stored.energy_j == pytest.approx(6.5e6 * 0.97**0.5, rel=1e-3)
    assert found.trace.swing_w > 0.9 * WAVE.swing_w
    assert found.trace.ramp_w_per_s < 0.2 * WAVE.ramp_w_per_s


@given(share=st.floats(0.0, 1.0))
def test_a_floor_leaves_the_rest_of_the_swing_and_burns_what_is_missing(share: float) -> None:
    floor_w = WAVE.low_w + share * WAVE.swing_w
    found = floored(WAVE, floor_w)
    assert found.trace.swing_w == pytest.approx((1 - share) * WAVE.swing_w, abs=1.0)
    assert found.cost_w == pytest.approx(float(np.maximum(floor_w - WAVE.power_w, 0.0).mean()), abs=1e-3)


@pytest.mark.parametrize("ramp", [1e6, 20e6, 75e6, 1e9, 1e12])
def test_a_ramp_cap_keeps_its_ramp_and_never_takes_power_away(ramp: float) -> None:
    found = ramp_capped(WAVE, ramp)
    assert found.trace.ramp_w_per_s <= ramp * (1 + 1e-6)
    assert (found.trace.power_w >= WAVE.power_w - 1e-6).all()
    assert found.cost_w >= -1e-6
    by_hand = np.array(
        [
            max(
                WAVE.power_w[other] - ramp * WAVE.step_s * min((other - at) % 4000, (at - other) % 4000)
                for other in range(0, 4000, 7)
            )
            for at in range(0, 4000, 401)
        ]
    )
    assert (found.trace.power_w[::401] >= by_hand - 1.0).all()


def test_a_slower_ramp_burns_more() -> None:
    costs = [ramp_capped(WAVE, ramp).cost_w for ramp in (1e9, 1e8, 5e7, 2e7, 1e7)]
    assert costs == sorted(costs)


@pytest.mark.parametrize("limit_w", [1e6, 10e6, 40e6])
def test_the_fewest_units_keep_a_swing_and_one_less_does_not(limit_w: float) -> None:
    def keeps(num: int) -> bool:
        return stored(WAVE, MEGAPACK, num).trace.swing_w <= limit_w

    num = fewest(keeps, 0, 1000)
    assert num is not None
    assert (
        stored(WAVE, MEGAPACK, num).trace.swing_w <= limit_w < stored(WAVE, MEGAPACK, num - 1).trace.swing_w
    )
    assert fewest(lambda _: True, 0, 1000) == 0
    assert fewest(lambda _: True, 7, 1000) == 7
    assert fewest(keeps, 0, num - 1) is None


def test_one_unit_is_found_where_one_is_enough() -> None:
    small = square_trace(0.0, 1e6, duty=0.5, step_s=2.0)
    assert fewest(lambda num: stored(small, MEGAPACK, num).trace.swing_w <= 1e5, 0, 1000) == 1
    assert floored(small, 0.0).stored == ramp_capped(small, 1e6).stored == Need(0.0, 0.0)


def test_a_load_without_swing_needs_nothing() -> None:
    flat = Trace(period_s=1.0, power_w=np.full(1000, 5e6))
    assert trace_need(flat) == Need(0.0, 0.0)
    assert Need(0.0, 0.0).rate_per_hour == 0.0
    found = stored(flat, MEGAPACK, 10)
    assert found.cost_w == 0.0
    assert found.trace.power_w == pytest.approx(flat.power_w)


def test_what_rounding_leaves_of_a_level_line_is_no_swing() -> None:
    level = stored(floored(WAVE, WAVE.peak_w).trace, MEGAPACK, 3).trace
    assert level.swing_w == 0.0
    assert Trace(period_s=1.0, power_w=np.array([1e6, 1e6 + 1e-7])).swing_w == 0.0
    assert Trace(period_s=1.0, power_w=np.array([1e6, 1e6 + 1.0])).swing_w == 1.0
