"""What was published of serving techniques: measurements of others, beside what is computed here."""

from __future__ import annotations

from functools import cache

from datahall.catalog.fact import Seen, read_seen


@cache
def published() -> tuple[Seen, ...]:
    """All of it.

    >>> [one.date for one in published() if one.of == "easy requests routed"]
    ['2024-06', '2023-05']
    """
    return read_seen("datahall.inference", "data/published.toml")
