"""What `units.py` reads and writes is what it was: see `record.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.recorded.record import check_calls, or_refused

from datahall.units import chained, example, fmt, parse, unit_of

UNITS = (
    "s", "bytes", "bytes_per_s", "flop", "flop_per_s", "w", "j", "usd", "usd_per_hour", "tokens",
    "tokens_per_s", "count", "fraction", "ratio", "hz", "year",
)  # fmt: skip
VALUES = (
    0.0, 1e-12, 9.9e-10, 1e-9, 4.2e-7, 9.995e-7, 1e-6, 0.00012345, 0.001, 0.0099996, 0.5, 0.99995, 1.0,
    1.5, 9.9996, 12.0, 59.0, 59.9996, 60.0, 61.0, 119.0, 120.0, 999.0, 999.95, 1000.0, 1023.0, 1024.0,
    3599.0, 3600.0, 7200.0, 12345.0, 86399.0, 86400.0, 172800.0, 1e6, 2.592e6, 1e7, 3.2e7, 1e9, 1.5e10,
    1e12, 9.9e13, 1e15, 3e18, 1e21, 2e24, float("inf"), float("nan"), -1.5, -2e9,
)  # fmt: skip
TEXTS = (
    "1", "1.5", "1,000", "2e3", "400 Gb/s", "50 GB/s", "3.35 TB/s", "100 Mb/s", "80 GB", "64 GiB",
    "1 kB", "2MB", "1 TiB", "10 ms", "5us", "5 µs", "3 ns", "2 min", "1.5 h", "90d", "2 weeks", "1 s",
    "989 TFLOP/s", "4.9 PFLOP/s", "1e18 FLOP", "15T tokens", "15T", "8k", "2M", "100B", "25 %", "0.25",
    "1.5x", "2×", "700 W", "1.2 MW", "3 kWh", "$2.5", "2.5 $/h", "1.7 GHz", "4/s", "100 tokens/s", "",
    "abc", "5 parsec", "1 GB/x", "-3 s", "nan", "inf", "1e400", "1 2",
)  # fmt: skip


def calls() -> Iterator[tuple[str, object]]:
    for unit in UNITS:
        for digits in (2, 3, 4, 6):
            yield (
                f"shown in {unit} with {digits}",
                " | ".join(shown(value, unit, digits) for value in VALUES),
            )
        yield (
            f"chained in {unit}",
            " | ".join(str(or_refused(partial(chained, one, unit))) for one in VALUES),
        )
        yield f"example of {unit}", str(or_refused(partial(example, unit)))
        for text in TEXTS:
            found = or_refused(partial(parse, text, unit))
            if not isinstance(found, str):
                yield f"{text} as {unit}", found
    names = (
        "time_s",
        "weight_bytes",
        "rate_bytes_per_s",
        "peak_flop_per_s",
        "share_fraction",
        "num_chips",
        "cost_usd",
        "x",
    )
    yield "units by name", " | ".join(map(unit_of, names))


def shown(value: float, unit: str, digits: int) -> str:
    return str(or_refused(partial(fmt, value, unit, digits)))


def test_figures_of_calls(update: bool) -> None:
    check_calls("units", calls(), update)
