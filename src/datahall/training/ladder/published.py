"""What was published of what a technique does to learning.

Nothing is computed from it: a step is timed, and how much it learns is what somebody saw, of which models, and where.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from datahall.breakdown import Source


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody saw of a technique, and where it is printed."""

    of: str  # the name of a rung
    says: str
    by: str
    date: str

    @property
    def source(self) -> Source:
        return Source(self.by, self.date, "measured")

    @property
    def named(self) -> str:
        """What was seen, with who says so: "… (Lin et al., 2017)"."""
        author = self.by.partition(",")[0]
        return f"{self.says} ({author}, {self.date[:4]})"


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fact: tuple[Seen, ...]


@cache
def published() -> tuple[Seen, ...]:
    """All of it."""
    text = resources.files("datahall.training").joinpath("data/convergence.toml").read_bytes()
    return msgspec.toml.decode(text, type=_Facts).fact


def seen_of(name: str) -> tuple[Seen, ...]:
    """What was seen of a rung.

    >>> [one.date for one in seen_of("local steps")]
    ['2023-11', '2025-03', '2024-07']
    """
    return tuple(one for one in published() if one.of == name)
