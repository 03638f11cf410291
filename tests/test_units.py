"""Quantities survive the way to a person and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import UnitError
from datahall.units import SPELLINGS, fmt, parse, unit_of

SHOWN = sorted(set(SPELLINGS) - {"year"})


@given(unit=st.sampled_from(SHOWN), value=st.floats(1e-3, 1e15))
def test_what_is_shown_reads_back_to_the_digits_shown(unit: str, value: float) -> None:
    assert parse(fmt(value, unit), unit) == pytest.approx(value, rel=6e-3)


@given(unit=st.sampled_from(SHOWN), value=st.floats(-1e15, -1e-3))
def test_negative_quantities_keep_their_sign(unit: str, value: float) -> None:
    assert parse(fmt(value, unit), unit) == pytest.approx(value, rel=6e-3)


@given(unit=st.sampled_from(sorted(SPELLINGS)), value=st.floats(1e-6, 1e6))
def test_every_spelling_of_a_unit_scales_linearly(unit: str, value: float) -> None:
    for word, factor in SPELLINGS[unit].items():
        assert parse(f"{value!r} {word}".strip(), unit) == pytest.approx(value * factor)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("400 Gb/s", "bytes_per_s", 5e10),
        ("400 Gbps", "bytes_per_s", 5e10),
        ("3.35 TB/s", "bytes_per_s", 3.35e12),
        ("80 GB", "bytes", 80e9),
        ("80 GiB", "bytes", 80 * 2**30),
        ("256KiB", "bytes", 262144),
        ("1,979 TFLOPS", "flop_per_s", 1.979e15),
        ("2.2 PFLOPS", "flop_per_s", 2.2e15),
        ("15T tokens", "tokens", 15e12),
        ("2^20", "count", 1048576),
        ("50 ms", "s", 0.05),
        ("$2.50/h", "usd_per_hour", 2.5),
        ("$30,000", "usd", 30000),
        ("80 %", "fraction", 0.8),
        (7, "count", 7),
    ],
)
def test_spellings_a_person_writes(text: str | float, unit: str, value: float) -> None:
    assert parse(text, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("80", "bytes"),
        ("80 GB/s", "bytes"),
        ("fast", "s"),
        ("1e400 s", "s"),
        ("400 Gbit per fortnight", "bytes_per_s"),
    ],
)
def test_an_unreadable_quantity_is_an_error_with_an_example(text: str, unit: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, unit)
    assert "e.g." in caught.value.hint


def test_a_bit_is_an_eighth_of_a_byte() -> None:
    assert parse("8 Gb/s", "bytes_per_s") == parse("1 GB/s", "bytes_per_s")


def test_the_name_of_an_attribute_says_its_unit() -> None:
    names = {"scale_up_bytes_per_s": "bytes_per_s", "num_sms": "count", "clock_hz": "hz", "title": ""}
    assert {name: unit_of(name) for name in names} == names


def test_unknown_is_shown_as_a_dash() -> None:
    assert fmt(float("nan"), "bytes") == "–"
