"""Points and spans of time as schedulers write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from datahall.scheduling.loop.state import Floats

UNKNOWN = {"", "unknown", "none", "n/a", "nan", "null"}
ENDLESS = {"unlimited", "partition_limit", "infinite"}
STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
OFFSET = re.compile(r"(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?$")


def points_s(texts: Sequence[str]) -> Floats:
    """Seconds since 1970 of dates ("2023-01-16T00:56:11", "2023-03-01 00:18:22+08:00") or numbers; NaN where unknown.

    >>> points_s(["1970-01-01T00:01:00", "Unknown", "90", "1970-01-01 08:00:05+08:00"]).tolist()
    [60.0, nan, 90.0, 5.0]
    """
    try:  # most are all numbers, or dates that are all of one form
        return np.array(texts, np.float64)
    except ValueError:
        pass
    known = [text if STAMP.match(text) else "NaT" for text in texts]
    dates = np.array([text[:19] for text in known], "datetime64[s]")
    found = np.where(np.isnat(dates), np.nan, dates.astype(np.int64).astype(np.float64))
    for row, text in enumerate(texts):
        if len(text) > 19:
            found[row] -= _offset_s(text[19:])
        elif np.isnan(found[row]):
            found[row] = _number(text)
    return found


def _offset_s(text: str) -> float:
    found = OFFSET.match(text)
    if found is None:
        return float("nan")
    zone = found[1] or "Z"
    if zone == "Z":
        return 0.0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (-1 if zone[0] == "-" else 1) * (3600.0 * hours + 60.0 * minutes)


def span_s(text: str) -> float:
    """Seconds of a span as Slurm writes it: [days-]hours:minutes:seconds, or minutes:seconds; inf where it has no end.

    >>> span_s("1-02:00:00"), span_s("02:30"), span_s("UNLIMITED"), span_s("Unknown")
    (93600.0, 150.0, inf, nan)
    """
    word = text.strip().lower()
    if word in ENDLESS:
        return float("inf")
    days, dash, clock = word.rpartition("-")
    parts = clock.split(":")
    try:
        numbers = [float(part) for part in parts]
        whole = 86400.0 * float(days) if dash else 0.0
    except ValueError:
        return float("nan")
    if dash:
        numbers += [0.0] * (3 - len(numbers))  # days-hours
    seconds = 0.0
    for number in numbers:
        seconds = 60.0 * seconds + number
    return whole + seconds


def _number(text: str) -> float:
    try:
        return float(text) if text.strip().lower() not in UNKNOWN else float("nan")
    except ValueError:
        return float("nan")
