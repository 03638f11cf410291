"""When an upstream says it may be asked again (RFC 9110, 10.2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST_S = 3600.0  # that an upstream is believed


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Seconds from now, by the clock of the day; nothing where nothing readable is said.

    >>> retry_after_s({"retry-after": "2"}, 0.0), retry_after_s({"retry-after-ms": "250"}, 0.0)
    (2.0, 0.25)
    >>> retry_after_s({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 10.0)
    20.0
    >>> retry_after_s({"retry-after": "soon"}, 0.0) is None
    True
    """
    for name, factor in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            wait_s = float(text) * factor
        except ValueError:
            try:
                wait_s = parsedate_to_datetime(text).timestamp() - now_s
            except (ValueError, TypeError, OverflowError):
                continue
        if wait_s == wait_s:
            return min(max(0.0, wait_s), LONGEST_S)
    return None
