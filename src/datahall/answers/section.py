"""The words of one section of a plan: what a room adds to it, as rows of a table and as results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from datahall.answer import Cell, Quantity

Row = tuple[str, Quantity | None, str]  # what, how much, which is; None: no number is


def _nothing(_: object) -> str:
    return ""


class Words(NamedTuple):
    """How a section is worded."""

    rows: Callable[[Any], Iterable[Row]]
    results: Callable[[Any], dict[str, Cell]]
    note: Callable[[Any], str] = _nothing  # what its rows rest on
