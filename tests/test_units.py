"""Quantities survive the way to a person and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import UnitError
from datahall.units import SPELLINGS, chained, example, fmt, parse, short, unit_of

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
        ("10 MW/min", "w_per_s", 10e6 / 60),
        ("369 g/kWh", "kg_per_j", 0.369 / 3.6e6),
        ("$66/MWh", "usd_per_j", 0.066 / 3.6e6),
        ("172 L/min", "m3_per_s", 172e-3 / 60),
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


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0, "bytes", "0 B"),
        (999.0, "bytes", "999 B"),
        (1000.0, "bytes", "1 kB"),
        (1e18, "bytes", "1 EB"),
        (1e21, "bytes", "1,000 EB"),  # past the last prefix digits grow
        (0.25, "bytes", "0.25 B"),
        (9.99e14, "flop_per_s", "999 TFLOP/s"),
        (1.979e15, "flop_per_s", "1,979 TFLOP/s"),  # as the field says it
        (1e15, "flop_per_s", "1,000 TFLOP/s"),
        (1e16, "flop_per_s", "10 PFLOP/s"),
        (1.979e15, "flop", "1.979 PFLOP"),
        (2.5e6, "w", "2.5 MW"),
        (2.5e10, "w", "25 GW"),
        (1.5e12, "tokens", "1.5T tokens"),
        (70.6e9, "parameters", "70.6B"),
        (4460.0, "tokens_per_s", "4,460 tok/s"),
        (1234.5678, "tokens_per_s", "1,235 tok/s"),
        (0.0, "s", "0 s"),
        (9.99e-7, "s", "999 ns"),
        (1e-6, "s", "1 µs"),
        (1e-3, "s", "1 ms"),
        (1.0, "s", "1 s"),
        (-1.0, "s", "-1 s"),
        (119.0, "s", "119 s"),
        (120.0, "s", "2 min"),
        (7199.0, "s", "120 min"),
        (7200.0, "s", "2 h"),
        (172_799.0, "s", "48 h"),
        (172_800.0, "s", "2 days"),
        (0.12345, "fraction", "12.3 %"),
        (999.0, "usd", "$999.00"),
        (1000.4, "usd", "$1,000"),
        (1.0, "usd", "$1.00"),
        (0.0123456, "usd", "$0.0123"),
        (2.5, "usd_per_hour", "$2.50 /h"),
        (0.15, "usd_per_mtok", "$0.15 /Mtok"),
        (0.023, "usd_per_gb_month", "$0.023 /GB-month"),
        (0.02, "usd_per_gb", "$0.02 /GB"),
        (13.0, "bytes_per_parameter", "13 B/parameter"),
        (0.4171, "points", "0.42 points"),
        (206.12, "flop_per_byte", "206 FLOP/B"),
        (2026.0, "year", "2026"),
        (2.5, "ratio", "2.5×"),
        (12345.678, "count", "12,346"),
        (1.23456, "", "1.235"),
        (100.0, "count", "100"),
        (float("inf"), "s", "∞"),
        (float("-inf"), "bytes", "−∞"),
    ],
)
def test_a_quantity_is_shown_as_the_field_writes_it(value: float, unit: str, shown: str) -> None:
    assert fmt(value, unit) == shown


@pytest.mark.parametrize(("significant", "shown"), [(2, "1.2 GB"), (3, "1.23 GB"), (6, "1.23457 GB")])
def test_as_many_digits_as_asked_for(significant: int, shown: str) -> None:
    assert fmt(1.2345678e9, "bytes", significant) == shown
    assert fmt(1.2345678e-3, "s", significant) == shown.replace("GB", "ms")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("0", "bytes", 0.0),  # nothing needs no unit
        ("1.5e3 B", "bytes", 1500.0),
        ("1_000 B", "bytes", 1000.0),
        (" .5 s ", "s", 0.5),
        ("+2 min", "s", 120.0),
        ("-3 h", "s", -10_800.0),
        ("2 d", "s", 172_800.0),
        ("1 kWh", "j", 3.6e6),
        ("2^3 s", "s", 8.0),
        ("8 bps", "bytes_per_s", 1.0),
        ("3 OPS", "flop_per_s", 3.0),
        ("5 µs", "s", 5e-6),
        ("1 Mi" + "b", "bytes", 2**17),
        (0.5, "fraction", 0.5),
        (80e9, "bytes", 80e9),  # a number is taken to be in the unit
    ],
)
def test_numbers_and_units_by_hand(text: str | float, unit: str, value: float) -> None:
    assert parse(text, unit) == pytest.approx(value)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_number_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(UnitError, match="not a finite number"):
        parse(value, "s")


def test_a_dollar_sign_stands_before_money_only() -> None:
    assert parse("$3", "usd_per_mtok") == 3.0
    with pytest.raises(UnitError, match="not a quantity"):
        parse("$3", "s")


def test_the_longest_unit_that_a_name_ends_in_is_its_unit() -> None:
    assert unit_of("usd_per_hour") == "usd_per_hour"
    assert unit_of("step_s") == "s"
    assert unit_of("s") == "s"
    assert unit_of("tokens_per_s") == "tokens_per_s"
    assert unit_of("news") == ""
    assert unit_of("num_tokens") == "count"


def test_every_unit_has_an_example_that_can_be_read() -> None:
    for unit in set(SPELLINGS) - {"m"}:
        first = example(unit).split('"')[1]
        assert parse(first, unit) > 0


@pytest.mark.parametrize(
    ("unit", "word", "inverse"),
    [("fraction", "%", 100), ("s", "ms", 1000), ("s", "us", 10**6), ("bytes", "b", 8)],
)
def test_small_units_round_once(unit: str, word: str, inverse: int) -> None:
    """What is written as a hundredth is the nearest number to that hundredth, not a product of two rounded ones."""
    for number in range(1, 400):
        assert parse(f"{number} {word}", unit) == number / inverse


@pytest.mark.parametrize(
    ("text", "unit", "si"), [("7 min", "s", 420), ("3 h", "s", 10_800), ("5 KiB", "bytes", 5120)]
)
def test_large_units_multiply(text: str, unit: str, si: float) -> None:
    assert parse(text, unit) == si


PREFIXES = {
    "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "n": 1e-9, "u": 1e-6, "µ": 1e-6,
    "m": 1e-3, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip
A_DAY = {"": 1, "/day": 1, "%/day": 0.01, "/month": 12 / 365.25, "%/month": 0.12 / 365.25}
# what each word means without a prefix
BASES: dict[str, dict[str, float]] = {
    "bytes": {"B": 1, "b": 1 / 8, "bytes": 1, "byte": 1},
    "bytes_per_s": {"B/s": 1, "b/s": 1 / 8, "bps": 1 / 8, "bytes/s": 1, "byte/s": 1},
    "flop": {"FLOP": 1, "FLOPs": 1, "OP": 1},
    "flop_per_s": {"FLOP/s": 1, "FLOPs/s": 1, "OP/s": 1, "FLOPS": 1, "OPS": 1},
    "s": {
        "s": 1, "sec": 1, "min": 60, "h": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400,
        "y": 31557600, "year": 31557600, "years": 31557600,
    },
    "flop_per_j": {"FLOP/J": 1},
    "chip_s": {"chip-hours": 3600, "chip-h": 3600, "chip-days": 86400},
    "w": {"W": 1},
    "j": {"J": 1, "Wh": 3600},
    "w_per_s": {"W/s": 1, "W/min": 1 / 60},
    "j_per_token": {"J/token": 1, "Wh/token": 3600},
    "j_per_byte": {"J/B": 1, "pJ/B": 1e-12},
    "j_per_value": {"J/value": 1, "pJ/value": 1e-12},
    "kg": {"g": 1e-3, "kg": 1, "t": 1000},
    "kg_per_j": {"g/kWh": 1 / 3.6e9, "kg/kWh": 1 / 3.6e6, "kg/MWh": 1 / 3.6e9, "t/MWh": 1 / 3.6e6},
    "usd_per_j": {f"{word}/{per}": 1 / j for word in ("USD", "$", "") for per, j in (("kWh", 3.6e6), ("MWh", 3.6e9))},
    "kelvin": {"K": 1, "°C": 1},
    "m3_per_s": {"m³/s": 1, "m3/s": 1, "L/s": 1e-3, "L/min": 1 / 6e4},
    "hz": {"Hz": 1},
    "m": {"m": 1},
    "deg": {"°": 1, "deg": 1, "": 1},
    "usd": {"USD": 1, "$": 1, "": 1},
    "usd_per_month": {"USD/month": 1, "$/month": 1, "/month": 1, "": 1},
    "usd_per_w": {
        f"{word}/{per}": usd / w
        for word, usd in (("USD", 1), ("$", 1), ("", 1), ("MUSD", 1e6))
        for per, w in (("W", 1), ("kW", 1e3), ("MW", 1e6))
    },
    "usd_per_w_month": {
        f"{word}/{per}-month": 1 / w
        for word in ("USD", "$", "")
        for per, w in (("W", 1), ("kW", 1e3), ("MW", 1e6))
    },
    "usd_per_hour": {"USD/h": 1, "$/h": 1, "USD/hour": 1, "/h": 1, "": 1},
    "usd_per_mtok": {"USD/Mtok": 1, "$/Mtok": 1, "/Mtok": 1, "": 1},
    "usd_per_gb": {"USD/GB": 1, "$/GB": 1, "/GB": 1, "": 1},
    "usd_per_gb_month": {"USD/GB-month": 1, "$/GB-month": 1, "/GB-month": 1, "": 1},
    "bytes_per_parameter": {"B/parameter": 1, "": 1},
    "tokens_per_s": {"tokens/s": 1, "tok/s": 1},
    "ratio": {"": 1, "x": 1, "×": 1},
    "fraction": {"": 1, "%": 0.01},
    "flop_per_byte": {"FLOP/B": 1, "FLOP/byte": 1, "": 1},
    "year": {"": 1},
    "per_day": A_DAY,
    "per_node_day": A_DAY | {"/node-day": 1},
}  # fmt: skip
COUNTED = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}


@pytest.mark.parametrize("unit", sorted(SPELLINGS))
def test_a_word_means_its_prefix_times_its_base(unit: str) -> None:
    if unit in ("tokens", "parameters", "count"):  # the field says 70B parameters and 15T tokens
        for word, factor in SPELLINGS[unit].items():
            assert factor == COUNTED[word.removesuffix("tokens").strip()]
        return
    known = {
        f"{prefix}{base}": size * factor
        for prefix, size in PREFIXES.items()
        for base, factor in BASES[unit].items()
    } | BASES[unit]
    for word, factor in SPELLINGS[unit].items():
        assert factor == pytest.approx(known[word], rel=1e-15)


@pytest.mark.parametrize("unit", sorted(SPELLINGS))
def test_a_wrong_unit_is_said_in_words_with_a_right_one(unit: str) -> None:
    with pytest.raises(UnitError, match="is not a unit of") as caught:
        parse("5 furlongs", unit)
    assert "_" not in str(caught.value), "a unit by the name that only this code has for it"
    assert not str(caught.value).partition("\n")[0].endswith((" of s", " of w", " of j", " of m", " of hz"))
    for text in example(unit).replace('"', "").split(" or "):
        assert parse(text, unit) > 0


@pytest.mark.parametrize("unit", [*sorted(SPELLINGS), "points", "percentile", "per_s", ""])
@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e-30, 1e-12, 1e12, 1e18, 1e30, 1e300, 1.7e308])
def test_no_figure_is_longer_than_a_word(unit: str, value: float) -> None:
    for shown in (fmt(value, unit), chained(value, unit), short(value), fmt(-value, unit)):
        assert len(shown) < 40, shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (1.0, "100 %"), (0.9994, "99.9 %"), (0.9996, "99.96 %"), (0.9999, "99.99 %"), (0.999999, "99.9999 %"),
        (1.0 - 1e-15, "100 %"), (1.0001, "100 %"),
    ],
)  # fmt: skip
def test_a_share_that_is_not_all_is_not_shown_as_all(share: float, shown: str) -> None:
    assert fmt(share, "fraction") == shown
    if share > 0.9995:
        assert chained(share, "fraction").startswith(shown[:-2])
