"""A store where power and energy ask for equally many units, and one whose power is too little for what it holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.power.swing.waves import square_trace

from datahall.catalog import load
from datahall.power.swing.battery import Need, binds, units_figure
from datahall.power.swing.remedy import stored

CATALOG = load()
MEGAPACK = CATALOG.buffer("megapack")


def test_what_binds_turns_where_a_container_is_empty_at_its_full_power() -> None:
    """3.9 MWh, of which 90 % may go and √0.937 arrives, are 3.398 MWh: 1.788 hours of 1.9 MW."""
    turn_s = 3.9 * 0.9 * 0.937**0.5 / 1.9 * 3600
    assert turn_s == pytest.approx(1.788 * 3600, rel=1e-3)
    for num in (1, 7):
        power_w = num * 1.9e6
        assert binds(MEGAPACK, Need(0.99 * turn_s * power_w, power_w)) == "power"
        assert binds(MEGAPACK, Need(1.01 * turn_s * power_w, power_w)) == "energy"


@given(
    name=st.sampled_from(["megapack", "supercapacitor", "psu"]),
    power_w=st.floats(1e3, 1e9),
    ratio=st.floats(0.8, 1.25),
)
def test_what_binds_is_the_larger_number_of_units(name: str, power_w: float, ratio: float) -> None:
    buffer = CATALOG.buffer(name)
    need = Need(ratio * power_w * buffer.usable_j / buffer.power_w, power_w)
    larger = units_figure(buffer, need, "drawn").at("the larger")
    by_power, by_energy = (larger.at(name).value for name in ("by power", "by energy"))
    if by_power != pytest.approx(by_energy, rel=1e-9):
        assert binds(buffer, need) == ("power" if by_power > by_energy else "energy")


@pytest.mark.parametrize("num", [1, 4, 16, 31, 40])
def test_a_store_says_the_energy_that_moved_through_it(num: int) -> None:
    """60 MW take 32 containers of 1.9 MW; fewer take that share of the swing, and of its energy."""
    wave = square_trace(0.0, 75e6, duty=0.8, step_s=4.0)
    found = stored(wave, MEGAPACK, num)
    through_w = wave.power_w - (found.trace.power_w - found.cost_w)
    assert found.stored.energy_j == pytest.approx(np.ptp(np.cumsum(through_w)) * wave.step_s)
    assert found.stored.power_w == pytest.approx(np.abs(through_w).max())
    assert found.stored.power_w <= num * MEGAPACK.power_w * (1 + 1e-9)
    assert found.stored.energy_j <= num * MEGAPACK.usable_j
    # 75 MW · 0.8 · 0.2 · 4 s = 48 MJ
    assert found.stored.energy_j == pytest.approx(48e6 * min(1.0, num * 1.9 / 60), rel=0.01)
