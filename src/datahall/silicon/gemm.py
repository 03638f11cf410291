"""How long one matrix product takes on one chip.

A GEMM library cuts the (m × n) result into tiles, one per multiprocessor at a time, and picks from a menu
the tile that fills the chip best.  The time follows from that tile:

    waves   = ⌈⌈n/tile_n⌉ · ⌈m/tile_m⌉ · split / num_sms⌉
    per_k   = max(2·tile_n·tile_m / sm_flop_per_s, (tile_n + tile_m)·bytes / feed)
    compute = waves · (k/split · per_k + epilogue)
    memory  = max((weights + activations that outgrow L2) / bandwidth, waves · bytes of a tile / sm_stream)
    power   = flop / (peak · power_efficiency)
    time    = max(launch + (compute^p + memory^p)^(1/p) + split_s, power)

`power` is the energy of the product over the power limit: a chip that would draw more lowers its clock,
while the
pause between kernels lets short products run above it.  A product with too few
tiles splits k over idle multiprocessors and pays a second, reducing kernel.

The library chooses by its own estimate, which knows no shared memory bandwidth: `choose` constants are kept
apart from the timing ones, because a library does not always choose the fastest.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

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
MOST_PARTS, LEAST_DEPTH = 16.0, 1024.0  # of a product whose depth is split
AT_ONCE = 128  # products whose tiles are weighed together: their table stays in a cache

Columns: TypeAlias = NDArray[np.float64]
Sizes: TypeAlias = tuple[Columns, NDArray[np.intp]]  # distinct ones, and which of them each tile has


class _Machine(NamedTuple):
    num_sms: float
    peak: float  # FLOP/s
    bandwidth: float  # B/s


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


class _Menu(NamedTuple):
    """Tiles, and what one takes for each step in depth, as the library thinks, and to be written out [s]."""

    n: Columns
    m: Columns
    per_k_s: Columns
    chosen_per_k_s: Columns
    drain_s: Columns
    widths: Sizes
    heights: Sizes


def _sizes(kind: str) -> tuple[Columns, Columns, Sizes, Sizes]:
    """Widths and heights of a menu of tiles, and the distinct ones of each."""
    n, m = (fine_tiles() if kind == "fine" else coarse_tiles()).T
    widths, heights = (np.unique(column, return_inverse=True) for column in (n, m))
    return n, m, widths, heights


def _menu(on: _Machine, constants: GemmConstants, weight_bytes: float, operand_bytes: float) -> _Menu:
    n, m, widths, heights = _sizes(constants.tiles)
    area, feed_s = n * m, (n + m) * operand_bytes / constants.feed_bytes_per_s
    dense = 2.0 * area * on.num_sms
    chosen = np.maximum(dense / (on.peak * constants.power_efficiency), feed_s)
    return _Menu(
        n,
        m,
        np.maximum(dense / (on.peak * constants.tensor_efficiency), feed_s),
        np.maximum(chosen, n * weight_bytes / constants.choose_stream_bytes_per_s),
        area * 2.0 / constants.epilogue_bytes_per_s,
        widths,
        heights,
    )


def _chosen(
    rows: Columns, columns: Columns, depth: Columns, on: _Machine, constants: GemmConstants, menu: _Menu
) -> tuple[NDArray[np.intp], Columns]:
    """The tile that a library takes for each product, and into how many parts it splits the depth."""
    # tiles share few widths and heights, so each is divided by once
    across, down = (
        np.ceil(column[:, None] / sizes)[:, which]
        for column, (sizes, which) in ((columns, menu.widths), (rows, menu.heights))
    )
    count = np.multiply(across, down, out=across)
    waves = np.divide(count, on.num_sms, out=down)
    np.ceil(waves, out=waves)
    cost_s = depth[:, None] * menu.chosen_per_k_s
    cost_s += constants.choose_tile_s + menu.drain_s
    cost_s *= waves
    too_high = (menu.m > 8.0) & (menu.m >= 2.0 * rows[:, None]) & (menu.m > menu.m[0])
    cost_s[too_high] = np.inf
    tile = cost_s.argmin(axis=1)  # of equal ones the first
    parts, places = np.ones(rows.size), np.arange(rows.size)
    narrow = np.flatnonzero((count.min(axis=1) * 2.0 <= on.num_sms) & (depth >= LEAST_DEPTH))
    if not narrow.size:
        return tile, parts
    m, n, k, count = rows[narrow, None], columns[narrow, None], depth[narrow, None], count[narrow]
    split = np.clip(np.floor(on.num_sms / count), 1.0, MOST_PARTS)
    reduced_s = constants.choose_split_s + 2.0 * split * m * n * 4.0 / on.bandwidth
    fixed_s = constants.choose_tile_s + menu.drain_s
    split_s = np.ceil(count * split / on.num_sms) * (k / split * menu.chosen_per_k_s + fixed_s) + reduced_s
    split_s[(count * 2.0 > on.num_sms) | too_high[narrow]] = np.inf
    other = split_s.argmin(axis=1)
    least_s, whole_s = split_s[places[: narrow.size], other], cost_s[narrow, tile[narrow]]
    better = (least_s < whole_s) | ((least_s == whole_s) & (other < tile[narrow]))
    taken = narrow[better]
    tile[taken], parts[taken] = other[better], split[places[: narrow.size], other][better]
    return tile, parts


def _times(
    shapes: list[Columns],
    on: _Machine,
    constants: GemmConstants,
    weight_bytes: float,
    activation_bytes: float,
) -> tuple[Columns, ...]:
    """The columns of `GemmTimes`, for products of so many rows, columns and depth."""
    rows, columns, depth = shapes
    menu = _menu(on, constants, weight_bytes, max(weight_bytes, activation_bytes))
    tile, parts = _chosen(rows, columns, depth, on, constants, menu)
    tile_n, tile_m = menu.n[tile], menu.m[tile]
    waves = np.ceil(np.ceil(columns / tile_n) * np.ceil(rows / tile_m) * parts / on.num_sms)
    part = depth / parts
    compute_s = waves * (part * menu.per_k_s[tile] + menu.drain_s[tile])
    streamed = tile_n * weight_bytes + tile_m * activation_bytes
    stream_s = waves * streamed * part / constants.sm_stream_bytes_per_s
    kept = rows * (depth * activation_bytes + columns * 2.0) - constants.l2_keep_bytes
    moved = columns * depth * weight_bytes + np.maximum(0.0, kept)
    memory_s = np.maximum(moved / (on.bandwidth * constants.memory_efficiency), stream_s)
    sharpness = constants.ridge_sharpness
    core_s = (compute_s**sharpness + memory_s**sharpness) ** (1.0 / sharpness)
    reduced_s = constants.split_s + 2.0 * parts * rows * columns * 4.0 / on.bandwidth
    power_s = 2.0 * rows * columns * depth / (on.peak * constants.power_efficiency)
    taken_s = constants.launch_s + core_s + np.where(parts > 1.0, reduced_s, 0.0)
    return np.maximum(taken_s, power_s), compute_s, memory_s, power_s, tile_n, tile_m, parts, waves


def gemm_times(
    m: Number,
    n: Number,
    k: Number,
    *,
    num_sms: float,
    peak_flop_per_s: float,
    memory_bytes_per_s: float,
    constants: GemmConstants,
    weight_bytes: float = 2.0,
    activation_bytes: float = 2.0,
) -> GemmTimes:
    """Times of (m × k)·(k × n) products on one chip, scalars or columns.

    Parameters
    ----------
    m, n, k
        Rows of activations, columns of weights, depth.
    num_sms, peak_flop_per_s, memory_bytes_per_s
        The chip: multiprocessors, dense peak at the precision of the arithmetic [FLOP/s], bandwidth [B/s].
    weight_bytes, activation_bytes
        Bytes of one stored weight and of one activation value [B].

    References
    ----------
    Tile and wave quantisation: NVIDIA, Matrix Multiplication Background User's Guide (2023).
    """
    columns = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (m, n, k)]
    rows, width, depth = (np.ascontiguousarray(x) for x in np.broadcast_arrays(*columns))
    on = _Machine(num_sms, peak_flop_per_s, memory_bytes_per_s)
    shapes, which = _distinct(rows.ravel(), width.ravel(), depth.ravel())
    found = [
        _times(
            [column[start : start + AT_ONCE] for column in shapes],
            on,
            constants,
            weight_bytes,
            activation_bytes,
        )
        for start in range(0, shapes[0].size, AT_ONCE)
    ]
    return GemmTimes(
        *(np.concatenate(column)[which].reshape(rows.shape) for column in zip(*found, strict=True))
    )


def _distinct(*columns: Columns) -> tuple[list[Columns], NDArray[np.intp]]:
    """Each product once, and for each row which it is: layouts of one model share most of theirs."""
    order = np.lexsort(columns)
    ordered = [column[order] for column in columns]
    first = np.ones(order.size, np.bool_)
    first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in ordered])
    which = np.empty(order.size, np.intp)
    which[order] = np.cumsum(first) - 1
    return [column[first] for column in ordered], which
