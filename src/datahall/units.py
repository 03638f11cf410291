"""Quantities at the border: the only parser and the only formatter of numbers with units.

Inside the code a quantity is an SI float whose name ends in its unit (`memory_bytes_per_s`).
Here "400 Gb/s" becomes 5e10 and 5e10 becomes "50 GB/s".  GB is 1e9, GiB is 2**30; a lower-case
`b` is a bit and exists only on this side of the border.
"""

from __future__ import annotations

import math
import re
from functools import cache

from datahall.errors import UnitError

GB = 1e9
MTOK = 1e6  # tokens that a price is of
GIB = float(2**30)
HOUR_S = 3600.0
DAY_S = 86400.0
YEAR_S = 365.25 * DAY_S
KWH_J = 3.6e6

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_SMALL = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3}


def _scaled(bases: dict[str, float], *prefix_maps: dict[str, float]) -> dict[str, float]:
    return {
        prefix + base: scale * factor
        for base, factor in bases.items()
        for prefixes in prefix_maps
        for prefix, scale in prefixes.items()
    }


_BYTES = _scaled({"B": 1.0, "b": 0.125}, _DECIMAL, _BINARY) | {"bytes": 1.0, "byte": 1.0}
_FLOP = _scaled({"FLOP": 1.0, "FLOPs": 1.0, "OP": 1.0}, _DECIMAL)
_COUNT = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_TIME = {
    **_scaled({"s": 1.0}, _SMALL, {"": 1.0}),
    "sec": 1.0, "min": 60.0, "h": HOUR_S, "hour": HOUR_S, "hours": HOUR_S,
    "d": DAY_S, "day": DAY_S, "days": DAY_S, "y": YEAR_S, "year": YEAR_S, "years": YEAR_S,
}  # fmt: skip
MONTH_S = YEAR_S / 12  # as rates "per month" are meant
_PER_DAY = {
    "": 1.0, "/day": 1.0, "%/day": 0.01, "/month": DAY_S / MONTH_S, "%/month": 0.01 * DAY_S / MONTH_S,
}  # fmt: skip


def _per_second(units: dict[str, float], *words: str) -> dict[str, float]:
    rates = {f"{name}/s": factor for name, factor in units.items()}
    for word in words:
        rates |= {prefix + word: scale for prefix, scale in _DECIMAL.items()}
    return rates


_PER_ENERGY = {"kWh": KWH_J, "MWh": 1e3 * KWH_J}
_PER_POWER = {"W": 1.0, "kW": 1e3, "MW": 1e6}
_BITS_PER_S = {prefix + "bps": scale / 8 for prefix, scale in _DECIMAL.items()}

# unit suffix of an attribute -> spellings a person may write for it, as factors to SI
SPELLINGS: dict[str, dict[str, float]] = {
    "bytes": _BYTES,
    "bytes_per_s": _per_second(_BYTES) | _BITS_PER_S,
    "flop": _FLOP,
    "flop_per_s": _per_second(_FLOP, "FLOPS", "OPS"),
    "s": _TIME,
    "chip_s": {"chip-hours": HOUR_S, "chip-h": HOUR_S, "chip-days": DAY_S},
    "flop_per_j": _scaled({"FLOP/J": 1.0}, _DECIMAL),
    "w": _scaled({"W": 1.0}, _DECIMAL, {"m": 1e-3}),
    "j": _scaled({"J": 1.0, "Wh": HOUR_S}, _DECIMAL),
    "w_per_s": _scaled({"W/s": 1.0, "W/min": 1 / 60.0}, _DECIMAL),
    "j_per_byte": {"J/B": 1.0, "pJ/B": 1e-12},
    "j_per_value": {"J/value": 1.0, "pJ/value": 1e-12},
    "j_per_token": _scaled({"J/token": 1.0, "Wh/token": HOUR_S}, _DECIMAL, {"m": 1e-3}),
    "kg": {"kg": 1.0, "g": 1e-3, "t": 1e3, "kt": 1e6, "Mt": 1e9},
    "kg_per_j": {"g/kWh": 1e-3 / KWH_J, "kg/kWh": 1.0 / KWH_J, "kg/MWh": 1e-3 / KWH_J, "t/MWh": 1.0 / KWH_J},
    "usd_per_j": {
        f"{word}/{per}": 1.0 / joule for word in ("USD", "$", "") for per, joule in _PER_ENERGY.items()
    },
    "kelvin": {"K": 1.0, "°C": 1.0},
    "m3_per_s": {"m³/s": 1.0, "m3/s": 1.0, "L/s": 1e-3, "L/min": 1e-3 / 60.0},
    "hz": _scaled({"Hz": 1.0}, _DECIMAL),
    "m": {"m": 1.0, "km": 1e3},
    "deg": {"°": 1.0, "deg": 1.0, "": 1.0},
    "usd": {"USD": 1.0, "$": 1.0, "kUSD": 1e3, "MUSD": 1e6, "k": 1e3, "M": 1e6, "": 1.0},
    "usd_per_month": {"USD/month": 1.0, "$/month": 1.0, "/month": 1.0, "": 1.0},
    "usd_per_w": {
        f"{word}/{per}": dollars / watt
        for word, dollars in (("USD", 1.0), ("$", 1.0), ("MUSD", 1e6), ("", 1.0))
        for per, watt in _PER_POWER.items()
    },
    "usd_per_w_month": {
        f"{word}/{per}-month": 1.0 / watt for word in ("USD", "$", "") for per, watt in _PER_POWER.items()
    },
    "usd_per_hour": {"USD/h": 1.0, "$/h": 1.0, "USD/hour": 1.0, "/h": 1.0, "": 1.0},
    "usd_per_mtok": {"USD/Mtok": 1.0, "$/Mtok": 1.0, "/Mtok": 1.0, "": 1.0},
    "usd_per_gb": {"USD/GB": 1.0, "$/GB": 1.0, "/GB": 1.0, "": 1.0},
    "usd_per_gb_month": {"USD/GB-month": 1.0, "$/GB-month": 1.0, "/GB-month": 1.0, "": 1.0},
    "bytes_per_parameter": {"B/parameter": 1.0, "": 1.0},
    "tokens": _COUNT | {f"{p} tokens".strip(): f for p, f in _COUNT.items()},
    "tokens_per_s": {"tokens/s": 1.0, "tok/s": 1.0, "ktok/s": 1e3, "Mtok/s": 1e6, "Gtok/s": 1e9},
    "parameters": _COUNT,
    "count": _COUNT,
    "fraction": {"": 1.0, "%": 0.01},
    "ratio": {"": 1.0, "x": 1.0, "×": 1.0},
    "flop_per_byte": {"FLOP/B": 1.0, "FLOP/byte": 1.0, "": 1.0},
    "year": {"": 1.0},
    "per_day": _PER_DAY,
    "per_node_day": _PER_DAY | {"/node-day": 1.0},
}

# how a value of a unit is shown: base word and the prefixes that may stand before it
_SHOWN: dict[str, tuple[str, str]] = {
    "bytes": ("B", "kMGTPE"),
    "bytes_per_s": ("B/s", "kMGTPE"),
    "flop": ("FLOP", "kMGTPE"),
    "flop_per_s": ("FLOP/s", "kMGTPE"),
    "flop_per_j": ("FLOP/J", "kMGTPE"),
    "w": ("W", "kMG"),
    "w_per_s": ("W/s", "kMG"),
    "j_per_token": ("J/token", "kM"),
    "kelvin": ("K", ""),
    "hz": ("Hz", "kMG"),
    "m": ("m", "k"),
    "deg": ("°", ""),
    "parameters": ("", "kMBT"),
    "tokens": (" tokens", "kMBT"),
    "tokens_per_s": ("tok/s", ""),
}

_RATES = {"per_s": "/s", "per_day": "/day", "per_node_day": "/node-day"}
# what stands behind a price
_PRICED = {
    "usd": "", "usd_per_hour": " /h", "usd_per_month": " /month", "usd_per_w": " /W",
    "usd_per_mtok": " /Mtok", "usd_per_gb": " /GB",
    "usd_per_gb_month": " /GB-month",
}  # fmt: skip

_NUMBER = re.compile(r"\s*([-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:\s*\^\s*(\d+))?\s*(.*?)\s*$")


@cache
def unit_of(name: str) -> str:
    """Return the unit that an attribute's name ends in.

    >>> unit_of("memory_bytes_per_s"), unit_of("num_layers"), unit_of("power_limit_w"), unit_of("rate_per_s")
    ('bytes_per_s', 'count', 'w', 'per_s')
    """
    if name.startswith("num_"):
        return "count"
    for unit in sorted(SPELLINGS, key=len, reverse=True):
        if name == unit or name.endswith("_" + unit):
            return "per_s" if unit == "s" and name.endswith("_per_s") else unit
    return ""


def parse(text: str | float, unit: str) -> float:
    """Read a quantity written by a person as an SI float of `unit`.

    >>> parse("400 Gb/s", "bytes_per_s")
    50000000000.0
    >>> parse("15T tokens", "tokens"), parse("80 GiB", "bytes"), parse("2^20", "count")
    (15000000000000.0, 85899345920.0, 1048576.0)
    """
    spellings = SPELLINGS[unit]
    if isinstance(text, (int, float)):
        value, word = float(text), None
    else:
        match = _NUMBER.match(text.strip().removeprefix("$") if unit.startswith("usd") else text)
        if match is None:
            raise UnitError(
                f"{text!r} is not a quantity", hint=f"write a number and a unit, e.g. {example(unit)}"
            )
        value = float(match[1].replace(",", "").replace("_", ""))
        if match[2]:
            value = value ** int(match[2])
        word = match[3]
    if not math.isfinite(value * spellings.get(word or "", 1.0)):
        raise UnitError(f"{text!r} is not a finite number", hint=f"e.g. {example(unit)}")
    if word is None or word == "":
        if word == "" and "" not in spellings and value != 0:
            raise UnitError(f"{text!r} has no unit", hint=f"e.g. {example(unit)}")
        return value
    if word not in spellings:
        raise UnitError(f"{text!r}: {word!r} is not a unit of {_SAID[unit][0]}", hint=f"e.g. {example(unit)}")
    return _in_si(value, spellings[word])


def _in_si(value: float, factor: float) -> float:
    """A number in SI.  Small units divide, which rounds once: "95 %" is 0.95, where 95 · 0.01 is 0.9500000000000001."""
    inverse = round(1.0 / factor)
    return value / inverse if inverse and 1.0 / inverse == factor else value * factor


# what a quantity is called in an error, and how one is written
_SAID: dict[str, tuple[str, str]] = {
    "bytes": ("bytes", '"80 GB" or "80 GiB"'), "bytes_per_s": ("bandwidth", '"400 Gb/s" or "3.35 TB/s"'),
    "flop": ("operations", '"1 TFLOP"'), "flop_per_j": ("operations of a joule", '"1 TFLOP/J"'),
    "flop_per_s": ("operations per second", '"989 TFLOP/s"'),
    "s": ("time", '"50 ms"'), "w": ("power", '"700 W"'), "j": ("energy", '"1 kWh"'), "hz": ("frequency", '"1.98 GHz"'),
    "w_per_s": ("ramps of power", '"10 MW/min"'), "kg": ("mass", '"1,312 kg"'),
    "kg_per_j": ("carbon of energy", '"369 g/kWh"'), "usd_per_j": ("the price of energy", '"0.066 USD/kWh"'),
    "kelvin": ("temperature", '"10 K"'), "m3_per_s": ("flow", '"172 L/min"'), "m": ("length", '"30 m"'),
    "deg": ("an angle", '"39.04°"'),
    "j_per_token": ("energy of a token", '"2 J/token"'), "j_per_byte": ("energy of a byte", '"150 pJ/B"'),
    "j_per_value": ("energy of a value", '"20 pJ/value"'), "usd": ("money", '"30000 USD"'),
    "usd_per_month": ("a price per month", '"20000 USD/month"'),
    "usd_per_w": ("the price of power that is built", '"11.7 USD/W"'),
    "usd_per_w_month": ("rent of power", '"184 USD/kW-month"'),
    "usd_per_hour": ("a price per hour", '"2.50 USD/h"'), "usd_per_mtok": ("a price of tokens", '"0.60 USD/Mtok"'),
    "usd_per_gb": ("a price of data", '"0.02 USD/GB"'),
    "usd_per_gb_month": ("a price of data that is kept", '"0.023 USD/GB-month"'),
    "bytes_per_parameter": ("bytes of a parameter", '"14 B/parameter"'), "tokens": ("tokens", '"15T tokens"'),
    "tokens_per_s": ("tokens per second", '"4,460 tok/s"'), "parameters": ("parameters", '"70.6B"'),
    "count": ("a number of things", '"16384" or "2^20"'), "fraction": ("a share", '"80 %"'),
    "ratio": ("a ratio", '"1"'), "flop_per_byte": ("arithmetic intensity", '"1"'),
    "chip_s": ("time of chips", '"312 chip-hours"'),
    "year": ("years", '"1"'), "per_day": ("a rate per day", '"0.5/day"'),
    "per_node_day": ("a rate per node and day", '"0.004/node-day"'),
}  # fmt: skip
assert set(_SAID) == set(SPELLINGS)


def example(unit: str) -> str:
    """Return a legal spelling of a quantity of `unit`, to put into an error."""
    return _SAID.get(unit, ("", '"1"'))[1]


TINY, HUGE = 1e-9, 1e16  # what is beyond is written with an exponent
ROUNDING = 1e-7  # of 100 %: what is short of it by less is all


def _percent(value: float, significant: int) -> str:
    """A share of 100, with as many digits as tell it from all: 99.99 and not 100."""
    short_of = 100.0 - 100.0 * value
    text = _digits(value * 100, significant)
    if text != "100" or short_of <= ROUNDING:
        return text
    return f"{value * 100:.{-math.floor(math.log10(short_of))}f}".rstrip("0")


def _digits(value: float, significant: int = 4) -> str:
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    if not TINY <= abs(value) < HUGE:
        mantissa, _, power = f"{value:.{significant - 1}e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(power)}"
    decimals = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _prefixed(value: float, base: str, prefixes: str, significant: int) -> str:
    steps = min(len(prefixes), max(0, math.floor(math.log10(abs(value)) / 3 + 1e-12))) if value else 0
    if base == "FLOP/s" and 1e15 <= abs(value) < 1e16:
        steps = 4  # the field says 1,979 TFLOP/s, not 1.979 PFLOP/s
    prefix = prefixes[steps - 1] if steps else ""
    space = "" if base in {"", " tokens"} else " "
    return f"{_digits(value / 1000.0**steps, significant)}{space}{prefix}{base}"


def _seconds(value: float, significant: int) -> str:
    size = abs(value)
    for limit, factor, word in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s")):
        if size < limit:
            return f"{_digits(value * factor, significant)} {word}"
    for limit, factor, word in ((2 * HOUR_S, 60.0, "min"), (2 * DAY_S, HOUR_S, "h")):
        if size < limit:
            return f"{_digits(value / factor, significant)} {word}"
    return f"{_digits(value / DAY_S, significant)} days"


LARGE_J = 10 * KWH_J  # from here on energy is counted in kWh
_OWN_WAY = {"chip_s", "j", "j_per_byte", "j_per_value", "kg", "kg_per_j", "m3_per_s"}


def _own_way(value: float, unit: str, significant: int) -> str:
    """Chips in hours; energy in J, large ones in kWh; carbon in kg and tonnes, for a kWh in grams; flow in L/min."""
    if unit == "chip_s":
        return f"{_digits(value / HOUR_S, significant)} chip-hours"
    if unit in {"j_per_byte", "j_per_value"}:
        return f"{_digits(value * 1e12, significant)} {next(reversed(SPELLINGS[unit]))}"
    if unit == "kg_per_j":
        return f"{_digits(value * KWH_J * 1e3, significant)} g/kWh"
    if unit == "m3_per_s":
        small = abs(value) < 0.5
        return (
            f"{_digits(value * 6e4, significant)} L/min" if small else f"{_digits(value, significant)} m³/s"
        )
    if unit == "kg":
        return (
            _prefixed(value * 1e3, "g", "k", significant) if abs(value) < 1e3
            else _prefixed(value / 1e3, "t", "kM", significant)
        )  # fmt: skip
    if abs(value) >= LARGE_J:
        return _prefixed(value / HOUR_S, "Wh", "kMGT", significant)
    return _prefixed(value, "J", "kMGT", significant)


def short(value: float, significant: int = 3) -> str:
    """A number of a sentence: three digits or all before the point; no exponent but for what nobody could read without.

    >>> short(36712.4), short(1230.0), short(45.83), short(0.01234)
    ('36,712', '1,230', '45.8', '0.0123')
    """
    return _digits(value, significant) if math.isfinite(value) else fmt(value, "")


def chained(value: float, unit: str) -> str:
    """Write a figure of a chain, which a person adds up by hand: four digits, and no count that looks whole and is not.

    >>> chained(0.70021, "ratio"), chained(27346.43, "count"), chained(8192, "tokens"), chained(0.98343, "fraction")
    ('0.7002×', '27,346.4', '8,192 tokens', '98.34 %')
    """
    if not math.isfinite(value):
        return fmt(value, unit)
    if unit == "ratio":
        return f"{_digits(value)}×"
    if unit == "fraction":
        return f"{_percent(value, 4)} %"
    if unit == "tokens" and value == round(value) and 1 < abs(value) < 1e6:
        return f"{value:,.0f} tokens"
    if unit == "count" and value != round(value):
        return _digits(value, max(4, 2 + math.floor(math.log10(abs(value)))))
    return fmt(value, unit)


def fmt(value: float, unit: str, significant: int = 4) -> str:
    """Write an SI float for a person.

    >>> fmt(5e10, "bytes_per_s"), fmt(0.0345, "s"), fmt(70.6e9, "parameters"), fmt(0.123, "fraction")
    ('50 GB/s', '34.5 ms', '70.6B', '12.3 %')
    >>> fmt(0.9999, "fraction"), fmt(1e-300, "per_node_day"), fmt(1e40, "bytes")
    ('99.99 %', '1e-300/node-day', '1e22 EB')
    >>> fmt(0.95, "percentile"), fmt(0.9999, "percentile"), fmt(1, "tokens")
    ('P95', 'P99.99', '1 token')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if unit == "s":
        return "0 s" if value == 0 else _seconds(value, significant)
    if unit == "tokens" and value == 1:
        return "1 token"
    if unit in _OWN_WAY:
        return _own_way(value, unit, significant)
    if unit in _SHOWN:
        base, prefixes = _SHOWN[unit]
        return _prefixed(value, base, prefixes, significant)
    if unit == "fraction":
        return f"{_percent(value, 3)} %"
    if unit == "percentile":
        return f"P{round(value * 100, 6):.9g}"
    if unit == "usd_per_j":
        return f"${_digits(value * KWH_J, 3)} /kWh"
    if unit == "usd_per_w_month":
        return f"{fmt(value * 1e3, 'usd')} /kW-month"
    if unit == "usd_to_the_cent":
        return f"${value:,.2f}"
    if unit in _PRICED:
        tail = _PRICED[unit]
        if 1000 <= abs(value) < HUGE:
            return f"${value:,.0f}{tail}"
        return f"${value:.2f}{tail}" if 1 <= abs(value) < HUGE else f"${_digits(value, 3)}{tail}"
    if unit == "flop_per_byte":
        return f"{_digits(value, 3)} FLOP/B"
    if unit == "year":
        return f"{value:.0f}" if abs(value) < HUGE else _digits(value)
    if unit == "bytes_per_parameter":
        return f"{_digits(value, significant)} B/parameter"
    if unit == "points":
        return f"{value:.2f} points" if abs(value) < HUGE else f"{_digits(value)} points"
    if unit == "ratio":
        return f"{_digits(value, 3)}×"
    text = _digits(value, max(significant, 4))
    if unit in _RATES:
        return f"{text}{_RATES[unit]}"
    return text if unit in {"", "count"} else f"{text} {unit}"
