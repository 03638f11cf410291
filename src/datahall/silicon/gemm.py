"""How long one matrix product takes on one chip.

A GEMM library cuts the (m × n) result into tiles, one per multiprocessor at a time, and picks from a menu
the tile that fills the chip best.  The time follows from that tile:

    waves   = ⌈⌈n/tile_n⌉ · ⌈m/tile_m⌉ · split / num_sms⌉
    per_k   = max(2·tile_n·tile_m / sm_flop_per_s, (tile_n + tile_m)·bytes / feed)
    compute = waves · (k/split · per_k + epilogue)
    memory  = max((weights + activations that outgrow L2) / bandwidth, waves · bytes of a tile / sm_stream)
    power   = flop / (peak · power_efficiency)
    time    = max(launch + (compute^p + memory^p)^(1/p) + split_s, power)

`power` is the energy of the product over the power limit: a chip that would draw more lowers its clock, while the
pause between kernels lets short products run above it.  A product with too few tiles
splits k over idle multiprocessors and pays a second, reducing kernel.

The library chooses by its own estimate, which knows no shared memory bandwidth: `choose` constants are kept
apart from the timing ones, because a library does not always choose the fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Bare
from datahall.workload.operator import Number

FINE_N = (64, 80, 96, 112, 128, 144, 160, 168, 176, 192, 256, 320, 384, 448, 512)
FINE_M = (8, 16, 24, 32, 48, 64, 80, 96, 128, 192, 256)
COARSE = (
    (64, 32),
    (64, 64),
    (128, 32),
    (128, 64),
    (64, 128),
    (128, 128),
    (256, 64),
    (64, 256),
    (256, 128),
    (128, 256),
)
MAX_ACCUMULATORS = 40960  # what the register file of a multiprocessor holds beside its operands
INTERPRET_BELOW = 200  # shapes of all questions so far that cost less than to load machine code

Column = NDArray[np.float64]


@cache
def fine_tiles() -> NDArray[np.float64]:
    """Tiles of a library that generates them in steps of a few columns (Hopper and later)."""
    tiles = [
        (n, m)
        for n in FINE_N
        for m in FINE_M
        if n * m <= MAX_ACCUMULATORS and (n <= 320 or m <= 64) and (m <= 128 or n in {64, 128, 160, 192})
    ]
    return np.array(tiles, dtype=np.float64)


def coarse_tiles() -> NDArray[np.float64]:
    """The handful of tiles of earlier libraries (Volta, Ampere, Ada)."""
    return np.array(COARSE, dtype=np.float64)


class GemmConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What a chip and its GEMM library do beyond the datasheet: times, rates and shares."""

    launch_s: float  # from one kernel to the next inside a graph, first operands included
    memory_efficiency: float  # share of the datasheet's bandwidth a weight stream reaches
    tensor_efficiency: float  # share of peak inside a tile, at full clock
    power_efficiency: float  # share of peak held at the power limit
    feed_bytes_per_s: float  # operands into one multiprocessor
    epilogue_bytes_per_s: float  # results out of one multiprocessor
    sm_stream_bytes_per_s: float  # what one multiprocessor can draw alone
    split_s: float  # the reducing kernel of a split product
    l2_keep_bytes: float  # activations that stay in L2 between kernels
    ridge_sharpness: float  # p of the smooth maximum where compute and memory meet
    choose_stream_bytes_per_s: float
    choose_split_s: float
    choose_tile_s: float
    tiles: str = "fine"


class GemmTimes(msgspec.Struct, frozen=True):
    """Times of many products as columns, and the tile behind each."""

    time_s: NDArray[np.float64]
    compute_s: NDArray[np.float64]
    memory_s: NDArray[np.float64]
    power_s: NDArray[np.float64]
    tile_n: NDArray[np.float64]
    tile_m: NDArray[np.float64]
    split: NDArray[np.float64]
    waves: NDArray[np.float64]


def _search_tiles(
    m: NDArray[np.float64],
    n: NDArray[np.float64],
    k: NDArray[np.float64],
    weight_bytes: float,
    activation_bytes: float,
    output_bytes: float,
    machine: NDArray[np.float64],
    tiles: NDArray[np.float64],
    tile_s: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    num_sms, peak, bandwidth = machine[0], machine[1], machine[2]
    launch_s, memory_eff, tensor_eff, power_eff = machine[3], machine[4], machine[5], machine[6]
    feed, epilogue, stream, split_s, l2_keep, sharpness = (
        machine[7], machine[8], machine[9], machine[10], machine[11], machine[12],
    )  # fmt: skip
    choose_stream, choose_split_s, choose_tile_s = machine[13], machine[14], machine[15]
    num_tiles = tiles.shape[0]
    operand = max(weight_bytes, activation_bytes)
    per_k, chosen_per_k, drain = tile_s[0], tile_s[1], tile_s[2]
    for j in range(num_tiles):
        area = tiles[j, 0] * tiles[j, 1]
        feed_s = (tiles[j, 0] + tiles[j, 1]) * operand / feed
        per_k[j] = max(2.0 * area * num_sms / (peak * tensor_eff), feed_s)
        chosen_per_k[j] = max(
            max(2.0 * area * num_sms / (peak * power_eff), feed_s), tiles[j, 0] * weight_bytes / choose_stream
        )
        drain[j] = area * output_bytes / epilogue
    for i in range(m.size):
        rows, columns, depth = m[i], n[i], k[i]
        best, chosen, parts = np.inf, 0, 1.0
        wide, across = 0.0, 0.0
        for j in range(num_tiles):
            tile_n, tile_m = tiles[j, 0], tiles[j, 1]
            if tile_m > 8.0 and tile_m >= 2.0 * rows and tile_m > tiles[0, 1]:
                continue
            if tile_n != wide:  # neighbours on the menu share it
                wide, across = tile_n, float(math.ceil(columns / tile_n))
            count = across * math.ceil(rows / tile_m)
            cost = math.ceil(count / num_sms) * (depth * chosen_per_k[j] + choose_tile_s + drain[j])
            if cost < best:
                best, chosen, parts = cost, j, 1.0
            if count * 2.0 <= num_sms and depth >= 1024.0:
                split = min(16.0, math.floor(num_sms / count))
                cost = math.ceil(count * split / num_sms) * (
                    depth / split * chosen_per_k[j] + choose_tile_s + drain[j]
                ) + (choose_split_s + 2.0 * split * rows * columns * 4.0 / bandwidth)
                if cost < best:
                    best, chosen, parts = cost, j, split
        tile_n, tile_m = tiles[chosen, 0], tiles[chosen, 1]
        waves = math.ceil(math.ceil(columns / tile_n) * math.ceil(rows / tile_m) * parts / num_sms)
        part = depth / parts
        compute_s = waves * (part * per_k[chosen] + drain[chosen])
        stream_s = waves * (tile_n * weight_bytes + tile_m * activation_bytes) * part / stream
        spilled = max(0.0, rows * (depth * activation_bytes + columns * output_bytes) - l2_keep)
        memory_s = max((columns * depth * weight_bytes + spilled) / (bandwidth * memory_eff), stream_s)
        core = (compute_s**sharpness + memory_s**sharpness) ** (1.0 / sharpness)
        extra = split_s + 2.0 * parts * rows * columns * 4.0 / bandwidth if parts > 1.0 else 0.0
        power_s = 2.0 * rows * columns * depth / (peak * power_eff)
        out[0, i] = max(launch_s + core + extra, power_s)
        out[1, i] = compute_s
        out[2, i] = memory_s
        out[3, i] = power_s
        out[4, i] = tile_n
        out[5, i] = tile_m
        out[6, i] = parts
        out[7, i] = waves


search_tiles = Bare(_search_tiles)


def gemm_times(
    m: Number,
    n: Number,
    k: Number,
    *,
    num_sms: float,
    peak_flop_per_s: float,
    memory_bytes_per_s: float,
    constants: GemmConstants,
    weight_bytes: float,
    activation_bytes: float,
    output_bytes: float,
) -> GemmTimes:
    """Times of (m × k)·(k × n) products on one chip, scalars or columns.

    Parameters
    ----------
    m, n, k
        Rows of activations, columns of weights, depth.
    num_sms, peak_flop_per_s, memory_bytes_per_s
        The chip: multiprocessors, dense peak at the precision of the arithmetic [FLOP/s], bandwidth [B/s].
    weight_bytes, activation_bytes, output_bytes
        Bytes of one stored weight, of one value that is multiplied and of one that is written [B].

    References
    ----------
    Tile and wave quantisation: NVIDIA, Matrix Multiplication Background User's Guide (2023).
    """
    columns = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (m, n, k)]
    rows, width, depth = (np.ascontiguousarray(x) for x in np.broadcast_arrays(*columns))
    machine = np.array([
        num_sms, peak_flop_per_s, memory_bytes_per_s,
        constants.launch_s, constants.memory_efficiency, constants.tensor_efficiency,
        constants.power_efficiency,
        constants.feed_bytes_per_s, constants.epilogue_bytes_per_s, constants.sm_stream_bytes_per_s,
        constants.split_s, constants.l2_keep_bytes, constants.ridge_sharpness,
        constants.choose_stream_bytes_per_s, constants.choose_split_s, constants.choose_tile_s,
    ])  # fmt: skip
    tiles = fine_tiles() if constants.tiles == "fine" else coarse_tiles()
    shapes, which = _distinct(rows.ravel(), width.ravel(), depth.ravel())
    out = np.empty((8, shapes[0].size))
    run = search_tiles.suited_to(shapes[0].size, INTERPRET_BELOW)
    tile_s = np.empty((3, len(tiles)))
    widths = (float(weight_bytes), float(activation_bytes), float(output_bytes))
    run(*shapes, *widths, machine, tiles, tile_s, out)
    return GemmTimes(*(column[which].reshape(rows.shape) for column in out))


def times_of_each(
    shapes: Sequence[tuple[Number, Number, Number]], times: Callable[[Column, Column, Column], GemmTimes]
) -> Iterator[GemmTimes]:
    """`times` (`gemm_times` on a chip) of several products, each of scalars or columns, in one search; a scalar for
    scalars."""
    forms = [np.broadcast(*sides).shape for sides in shapes]
    rows, width, depth = (
        np.concatenate([_spread(side, form) for side, form in zip(column, forms, strict=True)])
        for column in zip(*shapes, strict=True)
    )
    every = msgspec.structs.astuple(times(rows, width, depth))
    start = 0
    for form in forms:
        part = slice(start, start := start + math.prod(form))
        yield GemmTimes(*(column[part].reshape(form)[()] for column in every))


def _spread(side: Number, form: tuple[int, ...]) -> Column:
    """A side of a product for each value that its other sides have."""
    found = np.asarray(side, np.float64)
    if found.shape != form:
        found = np.full(form, found) if found.size == 1 else np.broadcast_to(found, form)
    return found.ravel()


def _distinct(*columns: Column) -> tuple[tuple[Column, Column, Column], NDArray[np.intp]]:
    """Each product once, and for each row which it is: layouts of one model share most of theirs."""
    if columns[0].size == 1:
        return (columns[0], columns[1], columns[2]), np.zeros(1, np.intp)
    order = np.lexsort(columns)
    m, n, k = (column[order] for column in columns)
    first = np.ones(order.size, np.bool_)
    first[1:] = (m[1:] != m[:-1]) | (n[1:] != n[:-1]) | (k[1:] != k[:-1])
    which = np.empty(order.size, np.intp)
    which[order] = np.cumsum(first) - 1
    return (m[first], n[first], k[first]), which
