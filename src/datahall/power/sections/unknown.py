"""Power that nobody can say: a plan has this section where a chip's or a network's was never published."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip
from datahall.errors import UnsupportedError
from datahall.power.chip import power_limit_w
from datahall.power.site import Machines

S = TypeVar("S")


class UnknownPower(msgspec.Struct, frozen=True):
    """What a plan draws is not known, and why."""

    why: str

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return ()


def power_or_why(
    chip: Chip, machines: Callable[[], Machines], section: Callable[[Machines], S]
) -> S | UnknownPower:
    """What is said of the power of such chips in their machines; why nothing is, where one of both is not published."""
    try:
        power_limit_w(chip)
        found = machines()
    except UnsupportedError as error:  # of the chip, or of a network that nobody sells the switches of
        return UnknownPower(error.message)
    return section(found)
