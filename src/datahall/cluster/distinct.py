"""Distinct rows of columns: a space of layouts has few kinds of group, and each is computed once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[np.float64]


def unique_rows(columns: Iterable[NDArray[np.generic]]) -> tuple[Column, NDArray[np.intp]]:
    """Distinct rows of some columns in order, and for each row the index of its distinct one.

    Columns of a space hold few small whole numbers, so each is looked up in a table instead of sorted.

    >>> distinct, index = unique_rows((np.array([2.0, 1.0, 2.0]), np.array([8.0, 4.0, 8.0])))
    >>> distinct.tolist(), index.tolist()
    ([[1.0, 4.0], [2.0, 8.0]], [1, 0, 1])
    """
    rows = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
    if len(rows) == 1:
        return rows, np.zeros(1, np.intp)
    levels, codes = zip(*(_coded(np.ascontiguousarray(column)) for column in rows.T), strict=True)
    key = np.zeros(codes[0].size, dtype=np.int64)
    for values, code in zip(levels, codes, strict=True):
        key = key * max(1, values.size) + code
    found, index = _coded(key.astype(np.float64))
    places = np.zeros((len(levels), found.size), dtype=np.int64)
    rest = found.astype(np.int64)
    for place in range(len(levels) - 1, -1, -1):
        rest, places[place] = np.divmod(rest, max(1, levels[place].size))
    distinct = np.stack([values[places[at]] for at, values in enumerate(levels)], axis=1)
    return distinct, index


TABLE_PER_ROW = 64  # places of a table that are filled sooner than a row is sorted


def _coded(column: Column) -> tuple[Column, NDArray[np.intp]]:
    """Distinct values in order, and for each row the place of its own."""
    whole = column.astype(np.int64)
    if (
        column.size
        and whole.min() >= 0
        and whole.max() < TABLE_PER_ROW * column.size
        and bool((whole == column).all())
    ):
        seen = np.zeros(int(whole.max()) + 1, dtype=np.bool_)
        seen[whole] = True
        place = np.cumsum(seen, dtype=np.intp) - 1
        return np.flatnonzero(seen).astype(np.float64), place[whole]
    values, index = np.unique(column, return_inverse=True)
    return values, np.ravel(index)
