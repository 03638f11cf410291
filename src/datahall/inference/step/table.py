"""The price of an engine step as a table: one kernel source for the closed form and for the event simulation.

    step = tokens(m) + decode(n, c̄) + Σ prefill(chunk, past) + head(rows) + host + host_sequence · sequences

Where a kernel does not pack the heads of decodes beside a prompt, decode(n, c̄) is `joined_time` in a step with chunks.

m new tokens of the step (`num_verified` of each decode, and the chunks: GEMMs, norms, exchange), n decoding sequences
with a mean context of c̄ tokens, chunks of prompts after what is already cached, and sequences that get a token.  All
per data-parallel rank.  The table is filled from silicon kernels and fabric collectives (`price.py`) and read by
interpolation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.compiled import inline

Column = NDArray[np.float64]

GRID_PER_OCTAVE = 4  # points per doubling of a context, chunk or past
WITHIN_OCTAVE: tuple[float, ...] = tuple(2.0 ** (place / GRID_PER_OCTAVE) for place in range(GRID_PER_OCTAVE))


NOT_MET = np.zeros(1)
NOT_JOINED = np.zeros((1, 1))


class StepTable(NamedTuple):
    """Times by tokens, sequences and contexts; axes of contexts are logarithmic with point i at 2^(i/4) − 1 tokens."""

    tokens_s: Column  # [m], m = 0 … most tokens of a step
    head_s: Column  # [rows], rows = 0 … most sequences
    decode_s: NDArray[np.float64]  # [n, point of the mean context], n = 0 … most sequences
    prefill_s: NDArray[np.float64]  # [point of the chunk, point of the past]
    host: Column  # host time of a step, and of each sequence in it
    num_verified: int  # new tokens that a decoding sequence brings into a step: one, and those drafted
    met_s: Column = (
        NOT_MET  # [m], the part of tokens_s where data-parallel ranks meet: experts and their exchange
    )
    joined_s: NDArray[np.float64] = NOT_JOINED  # as decode_s, in a step with prompts, where that differs
    empty_s: Column = NOT_MET  # and what each decode adds there per token of the longest chunk


@inline
def tokens_time(table: StepTable, num_tokens: int) -> float:
    """GEMMs, norms and exchange of a step of so many new tokens [s]; past the table it grows by its last slope."""
    last = table.tokens_s.size - 1
    if num_tokens <= last:
        return float(table.tokens_s[num_tokens])
    start = last // 2
    slope = (table.tokens_s[last] - table.tokens_s[start]) / (last - start)
    return float(table.tokens_s[last] + slope * (num_tokens - last))


@inline
def ranks_time(table: StepTable, fullest: int, mean: int) -> float:
    """Data-parallel ranks that step together: one has `fullest` new tokens, and experts see the `mean` of all [s]."""
    last = table.met_s.size - 1
    if fullest == mean or last == 0:
        return tokens_time(table, fullest)
    own_s = tokens_time(table, fullest) - float(table.met_s[min(fullest, last)])
    return own_s + float(table.met_s[min(mean, last)])


@inline
def head_time(table: StepTable, num_rows: int) -> float:
    """Head and sampler for so many sequences that get a token [s]."""
    return float(table.head_s[min(num_rows, table.head_s.size - 1)])


@inline
def grid_place(tokens: float, size: int) -> tuple[int, float]:
    """The point below a number of tokens on a logarithmic axis of `size` points, and the share of the way to the next.

    >>> grid_place(0.0, 40), grid_place(1.0, 40), grid_place(2.0**4 - 1, 40)
    ((0, 0.0), (4, 0.0), (16, 0.0))
    """
    point = int(GRID_PER_OCTAVE * np.log2(tokens + 1.0) + 1e-9)
    if point > size - 2:
        point = size - 2
    low, high = grid_point(point), grid_point(point + 1)
    return point, (tokens - low) / (high - low)


@inline
def grid_point(point: int) -> float:
    """Tokens at a point of a logarithmic axis: 2^(point/4) − 1, whose powers take as long as all else in a step.

    >>> [grid_point(point) for point in (0, 4, 8, 40)]
    [0.0, 1.0, 3.0, 1023.0]
    """
    return float(1 << point // GRID_PER_OCTAVE) * WITHIN_OCTAVE[point % GRID_PER_OCTAVE] - 1.0


@inline
def decode_time(table: StepTable, num_decodes: int, mean_context: float) -> float:
    """Attention of so many decoding sequences, by their mean context [s]."""
    if num_decodes == 0:
        return 0.0
    row = min(num_decodes, table.decode_s.shape[0] - 1)
    point, share = grid_place(mean_context, table.decode_s.shape[1])
    return float(
        table.decode_s[row, point] + share * (table.decode_s[row, point + 1] - table.decode_s[row, point])
    )


@inline
def joined_time(table: StepTable, num_decodes: int, mean_context: float, longest_chunk: float) -> float:
    """Attention of decodes in a step that carries chunks of prompts, of which the longest has so many tokens [s]."""
    if num_decodes == 0 or table.joined_s.shape[1] < 2:
        return decode_time(table, num_decodes, mean_context)
    row = min(num_decodes, table.joined_s.shape[0] - 1)
    point, share = grid_place(mean_context, table.joined_s.shape[1])
    low, high = table.joined_s[row, point], table.joined_s[row, point + 1]
    return float(low + share * (high - low) + table.empty_s[0] * num_decodes * longest_chunk)


@inline
def prefill_time(table: StepTable, chunk: float, past: float) -> float:
    """Attention of one chunk of a prompt after `past` cached tokens [s]."""
    if chunk <= 0:
        return 0.0
    i, x = grid_place(chunk, table.prefill_s.shape[0])
    j, y = grid_place(past, table.prefill_s.shape[1])
    times = table.prefill_s
    low = times[i, j] + y * (times[i, j + 1] - times[i, j])
    high = times[i + 1, j] + y * (times[i + 1, j + 1] - times[i + 1, j])
    return float(low + x * (high - low))


@inline
def host_time(table: StepTable, num_sequences: int) -> float:
    """Host time of a step that the chip waits for [s]."""
    return float(table.host[0] + table.host[1] * num_sequences)


@inline
def decode_step_time(table: StepTable, num_decodes: int, mean_context: float) -> float:
    """A step in which so many sequences decode, and nothing else happens [s]."""
    return (
        tokens_time(table, num_decodes * table.num_verified)
        + decode_time(table, num_decodes, mean_context)
        + head_time(table, num_decodes)
        + host_time(table, num_decodes)
    )
