"""The roofline, in numbers and in dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog.entries.chip import Chip
from datahall.silicon.attention import smooth_max
from datahall.silicon.roofline import ridge_intensity, roofline_time

amounts = st.floats(1.0, 1e18)


@pytest.fixture(scope="module")
def unit() -> pint.UnitRegistry[float]:
    registry: pint.UnitRegistry[float] = pint.UnitRegistry()
    registry.define("flop = [flop]")
    return registry


def test_the_roofline_is_a_time(unit: pint.UnitRegistry[float]) -> None:
    time: Any = roofline_time(
        1e12 * unit.flop, 1e9 * unit.byte, 1e15 * unit("flop/second"), 4.8e12 * unit("byte/second")
    )
    assert time.check("[time]")
    assert time.to("ms").magnitude == pytest.approx(1.0)


def test_a_roofline_of_bytes_over_arithmetic_is_no_time(unit: pint.UnitRegistry[float]) -> None:
    with pytest.raises(pint.DimensionalityError):
        roofline_time(
            1e9 * unit.byte, 1e12 * unit.flop, 1e15 * unit("flop/second"), 4.8e12 * unit("byte/second")
        )


def test_the_ridge_is_arithmetic_per_byte(unit: pint.UnitRegistry[float]) -> None:
    ridge: Any = ridge_intensity(1e15 * unit("flop/second"), 4.8e12 * unit("byte/second"))
    assert ridge.check("[flop]/[]")
    assert ridge.to("flop/byte").magnitude == pytest.approx(1e15 / 4.8e12)


def test_the_rounded_corner_keeps_the_dimension(unit: pint.UnitRegistry[float]) -> None:
    rounded: Any = smooth_max(2.0 * unit.ms, 3.0 * unit.ms, 4.0)
    assert rounded.check("[time]")


@given(amounts, amounts, amounts, amounts)
def test_the_ridge_parts_memory_from_arithmetic(
    flop: float, moved: float, peak: float, bandwidth: float
) -> None:
    time_s = roofline_time(flop, moved, peak, bandwidth)
    assert time_s == (flop / peak if flop / peak >= moved / bandwidth else moved / bandwidth)


def test_a_column_of_operators_has_a_column_of_times(h200: Chip) -> None:
    flop = np.array([1e12, 1e15])
    times = roofline_time(flop, 1e9, h200.peak("bf16"), h200.memory_bytes_per_s)
    assert np.shape(times) == (2,)
    assert isinstance(roofline_time(1.0, 1.0, 1.0, 1.0), float)
