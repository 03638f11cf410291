"""Decodes that share one launch with a prompt."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import Catalog
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
