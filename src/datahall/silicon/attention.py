"""How long attention takes on one chip: prefill over blocks of scores, decode over a cache.

Both walk the keys in blocks of 128.  Prefill gives each block of 128 (or 64) queries of each head to one
multiprocessor; the last block of queries sees every key, so its chain of blocks bounds the time from below:

    block   = 4·128·128·head_dim / sm_flop_per_s + softmax_s
    chain   = ⌈keys seen / 128⌉ · block + tile_s
    work    = Σ blocks · block / num_sms
    time    = launch + max(chain, work + imbalance · chain, flop / (peak · power_efficiency))

Decode gives each (sequence, KV head) to one multiprocessor, and splits caches where those are too few and it is faster:

    chain   = waves · (tile_s + blocks per part · block bytes / sm_stream)
    memory  = tile_s + one block + (queries + cache) / (bandwidth · efficiency) + tail
    time    = launch + smooth max(chain, flop / peak, memory) + combine (when split), the less of whole and split

Arithmetic binds only where many heads share one cache: latent attention does 242 FLOP per byte of it.

Reference: Dao (2023), FlashAttention-2; Dao et al. (2023), Flash-Decoding.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.silicon.roofline import BoundTimes
from datahall.workload.operator import Attention, Number, keys_read, visible_tokens

BLOCK = 128.0


class PrefillConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What limits attention over many new tokens."""

    launch_s: float
    softmax_s: float  # exponentials of one block that the matrix units wait for
    tile_s: float  # start and end of one block of queries
    tensor_efficiency: float
    power_efficiency: float
    imbalance: float  # share of the longest chain that does not overlap with the rest
    num_query_rows: float = BLOCK  # queries in a block: chips with little shared memory take fewer
    narrow_launch_s: float = 0.0  # kernels that cast queries, keys and values where the cache is narrow
    narrow_element_s: float = 0.0  # and their time per element of the queries
    # of a block without queries, where decodes share the launch of prompts (`joined_attention.py`); 0: they do not
    empty_block_s: float = 0.0


class DecodeConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What limits attention of one new token per sequence over a cache."""

    launch_s: float
    tile_s: float
    sm_stream_bytes_per_s: float
    memory_efficiency: float
    tail_s: float  # multiprocessors that finish late once memory binds
    combine_s: float  # the kernel that joins the parts of a split cache
    combine_part_s: float  # and its time per part
    sharpness: float
    l2_bytes_per_s: float = math.inf  # of a cache that a run before left in L2, as micro-benchmarks do
    narrow_launch_s: float = 0.0  # added where the cache is narrower than two bytes and must be widened
    narrow_rate_factor: float = 1.0  # and what that leaves of the rates


def prefill_times(
    shape: Attention,
    constants: PrefillConstants,
    *,
    num_sms: float,
    peak_flop_per_s: float,
    memory_bytes_per_s: float,
    kv_bytes: float,
    value_bytes: float,
) -> BoundTimes:
    """Times of attention over new tokens that see themselves and what was before them.

    `kv_bytes` and `value_bytes` are those of one value of the cache, and of one of the queries or the output [B].
    """
    q, width = shape.q_len, (shape.head_dim + shape.value_dim) / 2.0
    pairs = visible_tokens(q, shape.kv_len - q, _scalar(shape.window)) if shape.causal else q * shape.kv_len
    rows = constants.num_query_rows
    query_blocks = np.ceil(np.asarray(q) / rows)
    seen = np.where(np.asarray(shape.window) > 0, np.minimum(shape.window, shape.kv_len), shape.kv_len)
    # block pairs touched: visible pairs, plus half a block of masked scores along each diagonal block
    touched = pairs / (rows * BLOCK) + 0.5 * query_blocks
    block_s = 4.0 * rows * BLOCK * width * num_sms / (peak_flop_per_s * constants.tensor_efficiency)
    block_s = block_s + constants.softmax_s * rows / BLOCK
    heads = shape.batch * shape.num_heads
    chain_s = np.ceil(seen / BLOCK) * block_s + constants.tile_s
    work_s = heads * (touched * block_s + query_blocks * constants.tile_s) / num_sms
    power_s = 4.0 * heads * pairs * width / (peak_flop_per_s * constants.power_efficiency)
    keys = keys_read(q, shape.kv_len - q, _scalar(shape.window))
    moved = (
        heads * q * width * 2.0 * value_bytes
        + shape.batch * shape.num_kv_heads * keys * width * 2.0 * kv_bytes
    )
    memory_s = moved / memory_bytes_per_s
    compute_s = np.maximum(np.maximum(chain_s, work_s + constants.imbalance * chain_s), power_s)
    launch_s: Number = constants.launch_s
    if kv_bytes < 2.0:
        launch_s = launch_s + constants.narrow_launch_s + heads * q * width * constants.narrow_element_s
    return BoundTimes(launch_s + np.maximum(compute_s, memory_s), compute_s, memory_s)


def decode_times(
    shape: Attention,
    constants: DecodeConstants,
    *,
    num_sms: float,
    memory_bytes_per_s: float,
    kv_bytes: float,
    value_bytes: float,
    peak_flop_per_s: float = math.inf,
    warm_bytes: float = 0.0,
) -> BoundTimes:
    """Times of attention of one new token per sequence over its cache.

    A cache of up to `warm_bytes` is read from L2, where a run before left it; in service the weights of other layers
    have pushed it out.
    """
    window = np.asarray(shape.window)
    seen = np.where(window > 0, np.minimum(window, shape.kv_len), shape.kv_len) * 1.0
    units = np.asarray(shape.batch * shape.num_kv_heads) * 1.0
    row_bytes = (shape.head_dim + _stored_value_dim(shape)) * kv_bytes
    blocks = np.ceil(seen / BLOCK)
    spare = units < 0.8 * num_sms
    parts = np.where(spare, np.minimum(np.maximum(1.0, np.floor(num_sms / units)), blocks), 1.0)
    narrow = kv_bytes < 2.0
    rate = constants.narrow_rate_factor if narrow else 1.0
    block_s = np.minimum(seen, BLOCK) * row_bytes / (constants.sm_stream_bytes_per_s * rate)
    queries = shape.batch * shape.num_heads * (shape.head_dim + shape.value_dim)
    flop_s = 2.0 * queries * seen / peak_flop_per_s
    moved = units * seen * row_bytes + queries * value_bytes
    dram_rate = memory_bytes_per_s * min(1.0, constants.memory_efficiency * rate)
    dram_s = moved / np.where(moved <= warm_bytes, max(dram_rate, constants.l2_bytes_per_s), dram_rate)
    memory_s = constants.tile_s + block_s + dram_s + constants.tail_s * np.minimum(1.0, dram_s / 1e-5)

    def walked(parts: Number) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What multiprocessors are busy for with a cache in so many parts, and the time with memory and the join."""
        waves = np.ceil(units * parts / num_sms)
        chain_s = waves * (constants.tile_s + np.ceil(blocks / parts) * block_s)
        compute_s = np.maximum(chain_s, flop_s)
        join_s = np.where(np.asarray(parts) > 1, constants.combine_s + constants.combine_part_s * parts, 0.0)
        return compute_s, smooth_max(compute_s, memory_s, constants.sharpness) + join_s

    (whole_compute_s, whole_s), (split_compute_s, split_s) = walked(1.0), walked(parts)
    splits = split_s < whole_s
    launch_s = constants.launch_s + (constants.narrow_launch_s if narrow else 0.0)
    return BoundTimes(
        launch_s + np.where(splits, split_s, whole_s),
        np.where(splits, split_compute_s, whole_compute_s),
        dram_s,
    )


def smooth_max(a: Number, b: Number, sharpness: float) -> NDArray[np.float64]:
    """A maximum with a rounded corner: (a^p + b^p)^(1/p)."""
    high = np.maximum(a, b)
    low = np.minimum(a, b)
    rounded: NDArray[np.float64] = high * (1.0 + (low / high) ** sharpness) ** (1.0 / sharpness)
    return rounded


def _stored_value_dim(shape: Attention) -> Number:
    """Latent attention stores one vector, shared by all heads, that serves as key and value."""
    latent = (np.asarray(shape.value_dim) < shape.head_dim) & (np.asarray(shape.num_kv_heads) == 1)
    return np.where(latent, 0.0, shape.value_dim)


def _scalar(window: Number) -> float:
    return float(np.max(window)) if np.ndim(window) else float(window)  # one kind of layer has one window
