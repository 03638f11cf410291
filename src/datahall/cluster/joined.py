"""Chips that exchange something, and what joins them."""

from __future__ import annotations

from typing import NamedTuple

from datahall.catalog.entries.chip import Chip
from datahall.fabric.collectives.system import System


class Joined(NamedTuple):
    """Chips of an answer, what joins them, and over how many of them the widest group that exchanges stretches."""

    chip: Chip
    system: System | None  # None: nobody published what joins them, and they exchange nothing
    span: int
    ports: bool = (
        False  # something else goes through their network ports, such as a cache that is handed over
    )
    switched: bool = False  # timed on switches where nobody says how they are wired, TPUs too
