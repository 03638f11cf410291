"""What was published of what a technique does to learning.

Nothing is computed from it: a step is timed, and how much it learns is what somebody saw, of which models, and where.
"""

from __future__ import annotations

from functools import cache

from datahall.catalog.fact import Seen, read_seen


@cache
def published() -> tuple[Seen, ...]:
    """All of it."""
    return read_seen("datahall.training", "data/convergence.toml")


def seen_of(name: str) -> tuple[Seen, ...]:
    """What was seen of a rung.

    >>> [one.date for one in seen_of("local steps")]
    ['2023-11', '2025-03', '2024-07']
    """
    return tuple(one for one in published() if one.of == name)
