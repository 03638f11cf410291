"""A fabric without each thing that was said of it, to see what that changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from datahall.errors import DatahallError
from datahall.scenario.field import grouped
from datahall.scenario.sections.fabric import FabricDesign

Less = TypeVar("Less")


def each_left_out(asked: FabricDesign, *groups: str) -> dict[str, FabricDesign]:
    """By name, the design without each input of some groups that was given another value than the usual."""
    plain = FabricDesign()
    return {
        field.name: msgspec.structs.replace(asked, **{field.attribute: getattr(plain, field.attribute)})
        for field in grouped("fabric", *groups)
        if getattr(asked, field.attribute) != getattr(plain, field.attribute)
    }


def same_without(left: Mapping[str, Less], why: Callable[[Less], str]) -> dict[str, str]:
    """Inputs without which nothing changes, each with why: `why` says it of what is left, or nothing if that differs.

    What cannot be built, or joined, without an input differs.
    """
    found = {}
    for name, less in left.items():
        try:
            reason = why(less)
        except DatahallError:
            continue
        if reason:
            found[name] = reason
    return found
