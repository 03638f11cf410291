"""Decodes that share one launch with a prompt."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.silicon.attention import PrefillConstants
from datahall.silicon.calibration import calibrate, constant_sets
from datahall.silicon.joined_attention import ROWS, empty_blocks_time, joined_decode_times
from datahall.workload.operator import Attention

CONSTANTS = constant_sets()["rtx-pro-6000-vllm"]


def shape(batch: float, context: float, num_kv_heads: float = 8.0) -> Attention:
    return Attention(
        batch=batch, q_len=1.0, kv_len=context, num_heads=32.0, num_kv_heads=num_kv_heads, head_dim=128.0,
        value_dim=128.0,
    )  # fmt: skip


def joined_s(one: Attention, l2_bytes: float = 128e6) -> float:
    found = joined_decode_times(
        one, CONSTANTS.prefill, num_sms=188.0, peak_flop_per_s=468e12, memory_bytes_per_s=1.46e12, l2_bytes=l2_bytes,
        kv_bytes=2.0, sharpness=CONSTANTS.decode.sharpness,
    )  # fmt: skip
    return float(np.ravel(found)[0])


@pytest.mark.parametrize(
    ("batch", "context", "measured_s"),
    # LLMServingSim's table of the RTX PRO 6000, Llama-3.1-8B: a chunk of 32 tokens beside decodes, less the chunk alone
    [(8, 2048, 91.5e-6), (32, 1024, 158e-6), (64, 2048, 546e-6), (128, 1024, 664e-6), (128, 4096, 4292e-6)],
)
def test_as_measured(batch: float, context: float, measured_s: float) -> None:
    assert joined_s(shape(batch, context)) == pytest.approx(measured_s, rel=0.2)


def test_a_head_walks_its_cache_as_a_whole_block_of_queries() -> None:
    flop = 4.0 * ROWS * 64 * 32 * 1024 * 128  # each row of the blocks, though one is used
    assert joined_s(shape(64, 1024)) > flop / 468e12


def test_a_cache_that_outgrows_l2_is_read_once_per_head() -> None:
    many = shape(128, 16384)
    once_s = 128 * 16384 * 4096 / 1.46e12
    assert joined_s(many, l2_bytes=1e12) < 1.9 * once_s
    assert 3.9 * once_s < joined_s(many, l2_bytes=0.0) < 4.6 * once_s


def test_heads_without_company_read_their_cache_once() -> None:
    assert joined_s(shape(64, 8192, num_kv_heads=32.0), 0.0) == joined_s(shape(64, 8192, 32.0), 1e12)


def test_empty_blocks_grow_with_the_chunk_beside() -> None:
    each_s = empty_blocks_time(shape(1, 1024), CONSTANTS.prefill, num_sms=188.0)
    assert (
        5e-5 < each_s * 128 * 1024 < 1.2e-4
    )  # 128 decodes beside 1,024 tokens: 0.1 ms of a layer, as measured


def test_only_chips_of_that_kernel_have_it(catalog: Catalog) -> None:
    joined = {
        name: calibrate(catalog.chip(name), None, "vllm").constants.prefill.empty_block_s > 0
        for name in ("rtx-pro-6000", "l40s", "rtx-4090", "h100-sxm", "b200-sxm")
    }
    assert joined == {
        "rtx-pro-6000": True, "l40s": True, "rtx-4090": True, "h100-sxm": False, "b200-sxm": False,
    }  # fmt: skip


def test_the_pipes_of_the_rtx_4090_bind_before_its_power(catalog: Catalog) -> None:
    own = constant_sets()["rtx-4090-vllm"]
    kin, chip, relative = constant_sets()["l40s-vllm"], catalog.chip("rtx-4090"), catalog.chip("l40s")
    limited = (
        kin.path("bf16").power_efficiency
        * relative.peak("bf16")
        * chip.power_limit_w
        / relative.power_limit_w
    )
    assert limited > chip.peak("bf16")
    assert own.path("bf16").power_efficiency == 1.0
    assert own.gemm.feed_bytes_per_s == kin.gemm.feed_bytes_per_s  # the same die at the same clock


# On 2 multiprocessors a block of 64 rows × 128 keys of 64 values is 4·64·128·64 = 2^21 FLOP at 2^23 · ½ / 2 FLOP/s:
# 1 s, and half of the exponentials of 128 rows; the start is ½ s.
TOY = PrefillConstants(
    launch_s=99.0, softmax_s=0.5, tile_s=0.5, tensor_efficiency=0.5, power_efficiency=1.0, imbalance=9.0,
    empty_block_s=2.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("batch", "context", "window", "l2_bytes", "kv_bytes", "walk_s", "moved_bytes"),
    [
        # a chain of 2 blocks is 3 s; 4 heads of one sequence over 2 multiprocessors: 6 s
        (1, 256, 0, 1e9, 2.0, 6.0, 2 * 256 * 256),
        (1, 257, 0, 1e9, 2.0, 2 * 4.25, 2 * 257 * 256),
        (3, 256, 0, 1e9, 2.0, 18.0, 3 * 2 * 256 * 256),
        (1, 256, 128, 1e9, 2.0, 2 * 1.75, 2 * 128 * 256),
        (1, 256, 512, 1e9, 2.0, 6.0, 2 * 256 * 256),
        (1, 256, 0, 1e9, 1.0, 6.0, 2 * 256 * 128),
        (1, 256, 0, 0.0, 2.0, 6.0, 4 * 256 * 256),  # each of 2 heads of a group reads for itself
        (1, 256, 0, 128 * 256, 2.0, 6.0, 3 * 256 * 256),  # half of the cache of a KV head stays
    ],
)
def test_by_hand(
    batch: float,
    context: float,
    window: float,
    l2_bytes: float,
    kv_bytes: float,
    walk_s: float,
    moved_bytes: float,
) -> None:
    one = Attention(batch, 1.0, context, 4.0, 2.0, 64.0, 64.0, window)
    found = joined_decode_times(
        one, TOY, num_sms=2.0, peak_flop_per_s=2.0**23, memory_bytes_per_s=2.0**15, l2_bytes=l2_bytes,
        kv_bytes=kv_bytes, sharpness=1.0,
    )  # fmt: skip
    assert float(found) == pytest.approx(walk_s + moved_bytes / 2.0**15)


def test_a_single_head_waits_for_its_own_chain() -> None:
    """One head on two multiprocessors: its blocks come one after the other, and half of the values are wider."""
    one = Attention(1.0, 1.0, 256.0, 1.0, 1.0, 64.0, 192.0)
    found = joined_decode_times(
        one, TOY, num_sms=2.0, peak_flop_per_s=2.0**23, memory_bytes_per_s=1e12, l2_bytes=0.0, kv_bytes=2.0,
        sharpness=1.0,
    )  # fmt: skip
    assert float(found) == pytest.approx(2 * 2.25 + 0.5)


def test_an_empty_block_for_each_head_and_each_64_tokens() -> None:
    """32 heads beside a chunk of 128 tokens launch 64 blocks of 2 s over 4 multiprocessors."""
    each_s = empty_blocks_time(shape(1, 1024), TOY, num_sms=4.0)
    assert each_s * 128 == pytest.approx(64 * 2.0 / 4)
