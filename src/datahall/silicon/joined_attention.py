"""Attention of decodes that share one launch with prompts, where the kernel does not pack heads.

FlashAttention-2 packs the heads of a group into one block of queries only when every sequence brings one query.  Beside
a prompt each head of each decode takes a block of its own, one row of which is used, and walks the whole cache; blocks
that a longer prompt would have needed are launched for every sequence and end at once (`empty_blocks_time`):

    block   = 4·rows·128·head_dim / sm_flop_per_s + softmax_s
    chain   = ⌈cache / 128⌉ · block + tile_s
    work    = batch · heads · chain / num_sms
    memory  = cache · reads / (bandwidth · efficiency)
    time    = smooth max(chain or work, memory), with the corner of decode attention

Heads of a group run one after the other over all sequences, so the cache of one KV head is read once where it fits L2
and once per head where it does not:  reads = 1 + (group − 1) · max(0, 1 − l2 / cache of one KV head).

Reference: Dao (2023), FlashAttention-2, flash_api.cpp (seqlenq_ngroups_swapped).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datahall.silicon.attention import BLOCK, PrefillConstants, smooth_max
from datahall.workload.operator import Attention

ROWS = 64.0  # queries of a block in the kernel that reads a paged cache, on every chip


def joined_decode_times(
    shape: Attention,
    constants: PrefillConstants,
    *,
    num_sms: float,
    peak_flop_per_s: float,
    memory_bytes_per_s: float,
    l2_bytes: float,
    kv_bytes: float,
    sharpness: float,
) -> NDArray[np.float64]:
    """What decodes add to the launch of a prompt's chunk [s]; `memory_bytes_per_s` is what the kernel reaches."""
    window = np.asarray(shape.window)
    seen = np.where(window > 0, np.minimum(window, shape.kv_len), shape.kv_len) * 1.0
    width = (shape.head_dim + shape.value_dim) / 2.0
    block_s = 4.0 * ROWS * BLOCK * width * num_sms / (peak_flop_per_s * constants.tensor_efficiency)
    block_s = block_s + constants.softmax_s * ROWS / BLOCK
    chain_s = np.ceil(seen / BLOCK) * block_s + constants.tile_s
    work_s = shape.batch * shape.num_heads * chain_s / num_sms
    head_bytes = np.maximum(shape.batch * seen * 2.0 * width * kv_bytes, 1.0)
    again = (shape.num_heads / shape.num_kv_heads - 1.0) * np.maximum(0.0, 1.0 - l2_bytes / head_bytes)
    memory_s = shape.num_kv_heads * head_bytes * (1.0 + again) / memory_bytes_per_s
    return smooth_max(np.maximum(chain_s, work_s), memory_s, sharpness)


def empty_blocks_time(shape: Attention, constants: PrefillConstants, *, num_sms: float) -> float:
    """What each decode adds for each token of the longest chunk beside it: blocks that hold no query [s]."""
    heads = float(np.max(shape.num_heads))
    return heads * constants.empty_block_s / (ROWS * num_sms)
