"""The step table read over columns, for closed forms, and what they read of columns of their own."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.inference.step.table import GRID_PER_OCTAVE, StepTable

Column = NDArray[np.float64]


def distinct(values: Column) -> Column:
    """Each value once, from the least; `np.unique` loads all of masked arrays to ask whether it has been given one.

    >>> distinct(np.array([2.0, 1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    found = np.sort(values)
    return found[np.diff(found, prepend=-np.inf) > 0.0]


def step_times(
    table: StepTable, tokens: Column, decodes: Column, context: float, prompts_s: Column, rows: Column
) -> Column:
    """Steps of so many new tokens, decoding sequences, attention of prompts and rows that get a token [s]."""
    head = np.interp(rows, np.arange(table.head_s.size), table.head_s)
    host = table.host[0] + table.host[1] * rows
    return np.asarray(
        token_times(table, tokens) + decode_times(table, decodes, context) + prompts_s + head + host
    )


def token_times(table: StepTable, tokens: Column) -> Column:
    """`tokens_time` over a column; between whole tokens it is linear."""
    last = table.tokens_s.size - 1
    start = last // 2
    slope = (table.tokens_s[last] - table.tokens_s[start]) / max(1, last - start)
    inside = np.interp(np.maximum(tokens, 1.0), np.arange(last + 1), table.tokens_s)
    return np.asarray(inside + slope * np.maximum(tokens - last, 0.0))


def met_times(table: StepTable, tokens: Column) -> Column:
    """The part of `token_times` where data-parallel ranks meet."""
    return np.asarray(np.interp(tokens, np.arange(table.met_s.size), table.met_s))


def decode_times(table: StepTable, decodes: Column, context: float) -> Column:
    """`decode_time` over a column of sequences, all of one mean context."""
    return _by_context(table.decode_s, decodes, context)


def joined_times(table: StepTable, decodes: Column, context: float, chunk: Column) -> Column:
    """`joined_time` over columns of sequences and of the longest chunk beside them."""
    if table.joined_s.size == 1:
        return decode_times(table, decodes, context)
    return np.asarray(_by_context(table.joined_s, decodes, context) + table.empty_s[0] * decodes * chunk)


def _by_context(times: NDArray[np.float64], decodes: Column, context: float) -> Column:
    by_rows = at_context(times[: int(np.ceil(decodes.max(initial=1.0))) + 1], context)
    return np.asarray(np.interp(decodes, np.arange(by_rows.size), by_rows))


def at_context(times: NDArray[np.float64], context: float) -> Column:
    """Each row read at one context, as `np.interp` reads one."""
    axis = _axis(times.shape[1])
    place = int(np.searchsorted(axis, context, side="right")) - 1
    if place < 0 or place == axis.size - 1 or axis[place] == context:
        return times[:, max(place, 0)]
    slope = (times[:, place + 1] - times[:, place]) / (axis[place + 1] - axis[place])
    return np.asarray(slope * (context - axis[place]) + times[:, place])


def prefill_times(table: StepTable, chunk: Column, past: Column) -> Column:
    """`prefill_time` over columns."""
    times, shape = table.prefill_s, table.prefill_s.shape
    i, x = _place(np.asarray(chunk, dtype=np.float64), shape[0])
    j, y = _place(np.asarray(past, dtype=np.float64), shape[1])
    low = times[i, j] + y * (times[i, j + 1] - times[i, j])
    high = times[i + 1, j] + y * (times[i + 1, j + 1] - times[i + 1, j])
    return np.asarray(low + x * (high - low))


def _axis(size: int) -> Column:
    return np.asarray(2.0 ** (np.arange(size) / GRID_PER_OCTAVE) - 1.0)


def _place(tokens: Column, size: int) -> tuple[NDArray[np.int64], Column]:
    axis = _axis(size)
    point = np.clip(np.searchsorted(axis, tokens, side="right") - 1, 0, size - 2)
    return point, (tokens - axis[point]) / (axis[point + 1] - axis[point])


def rising(column: Column, places: Column) -> tuple[Column, Column]:
    """A column from the origin on where it rises, and its places; flat stretches are left out."""
    best = np.maximum.accumulate(column)
    kept = np.append(True, best[1:] > best[:-1])
    return np.append(0.0, column[kept]), np.append(0.0, places[kept])


class Between(NamedTuple):
    """Columns over places that rise, for a search that reads all of them a thousand times, each time at one place."""

    places: list[float]  # two at least
    columns: tuple[list[float], ...]

    @classmethod
    def of(cls, places: Column, *columns: Column) -> Between:
        """As lists, whose numbers Python takes at once."""
        return cls(places.tolist(), tuple(column.tolist() for column in columns))

    def at(self, place: float) -> tuple[float, ...]:
        """Each column there, as `np.interp` reads it.

        >>> Between.of(np.array([1.0, 2.0, 4.0]), np.array([0.0, 10.0, 30.0])).at(3.0)
        (20.0,)
        """
        places = self.places
        below = min(max(bisect_right(places, place) - 1, 0), len(places) - 2)
        width = places[below + 1] - places[below]
        beyond = min(max(place, places[0]), places[-1]) - places[below]
        return tuple((one[below + 1] - one[below]) / width * beyond + one[below] for one in self.columns)
