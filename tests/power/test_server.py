"""A server: what stands around its chips, and the supplies in front."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.breakdown import false_nodes
from datahall.catalog import load
from datahall.power.activity import Activity
from datahall.power.chip import chip_power
from datahall.power.constants import constants
from datahall.power.server import NIC_W, server_power, server_power_w, without_band

H100, B200 = load().chip("h100-sxm"), load().chip("b200-sxm")


@given(st.floats(110.0, 700.0), st.integers(1, 16), st.integers(0, 16), st.booleans())
def test_the_figure_says_what_the_function_says(chip_w: float, chips: int, nics: int, wall: bool) -> None:
    figure = server_power(H100, chip_w, chips, num_nics=nics, at_the_wall=wall)
    assert figure.value == pytest.approx(server_power_w(H100, chip_w, chips, num_nics=nics, at_the_wall=wall))
    assert figure.value > chips * chip_w
    assert false_nodes(figure) == []


def test_by_hand() -> None:
    found = constants().server
    dc = 8 * 500.0 + found.host_w + 8 * 25.0 + found.load_fraction * 8 * (500.0 - 110.0)
    assert server_power_w(H100, 500.0, at_the_wall=False) == pytest.approx(dc)
    assert server_power_w(H100, 500.0) == pytest.approx(dc / found.supply_efficiency)
    assert NIC_W == 25.0


def test_a_tray_of_four_chips_and_two_nics_by_hand() -> None:
    """Half of what stands in a server of eight, 50 W of NICs, and what four chips load beyond their 440 W at rest."""
    found = constants().server
    dc = 4 * 600.0 + found.host_w / 2 + 50.0 + found.load_fraction * (2400.0 - 440.0)
    assert server_power_w(H100, 600.0, 4, num_nics=2, at_the_wall=False) == pytest.approx(dc)


def test_half_a_server_has_half_a_host() -> None:
    whole, half = (server_power_w(H100, 500.0, num, num_nics=num) for num in (8, 4))
    assert half == pytest.approx(whole / 2)


def test_parts_are_named() -> None:
    figure = server_power(H100, chip_power(H100, Activity(0.4, 0.3, 0.0, 1.0)))
    dc = figure.at("DC power of a server")
    assert [part.name for part in dc.parts] == [
        "chips",
        "host",
        "NICs",
        "fans, regulators and CPUs under load",
    ]
    assert dc.at("chips", "power of a chip").band is None  # the server has earned its own
    assert figure.band is not None
    low, high = constants().bands["server, measured"]
    assert (figure.band.low, figure.band.high) == pytest.approx((low * figure.value, high * figure.value))
    assert false_nodes(figure) == []


def test_bands_of_parts_go_with_the_parts_of_parts() -> None:
    figure = chip_power(H100, Activity(0.4, 0.3, 0.0, 1.0))
    assert figure.band is not None
    assert all(one.band is None for _, one in without_band(figure).walk())


@pytest.mark.parametrize(
    ("chip_name", "chip_w", "low_w", "high_w"),
    [
        ("h100-sxm", 700.0, 7000.0, 8500.0),  # 8.4 kW at most in training, of 10.2 kW (arXiv:2412.08602)
        ("h100-sxm", 110.0, 1900.0, 2300.0),  # before MLPerf Inference runs of Dell and NVIDIA
        ("b200-sxm", 1000.0, 9500.0, 11000.0),  # serving Llama 2 70B, two servers of Lenovo
    ],
)
def test_anchors_at_the_wall(chip_name: str, chip_w: float, low_w: float, high_w: float) -> None:
    assert low_w < server_power_w(load().chip(chip_name), chip_w) < high_w
