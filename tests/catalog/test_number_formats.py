"""One table of number formats: what each takes, and what multiplies it."""

from __future__ import annotations

import pytest

from datahall.catalog.entries.chip import FAMILIES
from datahall.catalog.number_formats import (
    FORMATS,
    GROUP_SCALED,
    PACKED,
    PEAK_FORMATS,
    SCALED_UNITS,
    bytes_per_value,
    format_named,
    is_wide,
    unit_for,
)
from datahall.errors import UnknownNameError


@pytest.mark.parametrize(
    ("name", "values", "total"),  # by the definition of the format: so many values lie in so many bytes
    [
        ("fp64", 1, 8), ("fp32", 1, 4), ("tf32", 1, 4), ("fp16", 1, 2), ("bf16", 1, 2), ("fp8", 1, 1),
        ("fp6", 4, 3), ("fp4", 2, 1), ("int8", 1, 1), ("int4", 128, 66), ("mxfp8", 32, 33), ("mxfp6", 32, 25),
        ("mxfp4", 32, 17), ("nvfp4", 16, 9),
    ],
)  # fmt: skip
def test_values_and_their_scales_take_their_bytes(name: str, values: int, total: int) -> None:
    assert bytes_per_value(name) * values == total


def test_a_format_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(UnknownNameError, match="fp7") as caught:
        bytes_per_value("fp7")
    assert "nvfp4" in caught.value.hint


def test_scaled_formats_run_on_units_that_chips_have() -> None:
    assert set(PEAK_FORMATS) | set(GROUP_SCALED) == set(FORMATS)
    assert GROUP_SCALED == ("mxfp8", "mxfp6", "mxfp4", "nvfp4")
    assert SCALED_UNITS == ("fp6", "fp4")
    for name in GROUP_SCALED:
        assert unit_for(name) in PEAK_FORMATS
        assert FORMATS[unit_for(name)].bits == FORMATS[name].bits


def test_checkpoints_are_packed_in_formats_of_fewer_bits() -> None:
    assert PACKED
    assert not any(is_wide(name) for name in PACKED)


def test_the_chips_that_take_a_maker_s_scales_are_families() -> None:
    for one in FORMATS.values():
        assert set(one.families) | set(one.foreign) <= set(FAMILIES)
        assert not set(one.families) & set(one.foreign)


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_name_is_its_own_and_a_spelling_that_of_one(name: str) -> None:
    assert format_named(name) == name
    for other in FORMATS[name].also:
        assert format_named(other) == format_named(f"torch.{other.upper()}") == name
        assert other not in FORMATS
