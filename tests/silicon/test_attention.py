"""Attention on one chip: prefill over blocks of scores, decode over a cache."""

from __future__ import annotations

import math
from functools import partial

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.silicon.attention import (
    DecodeConstants,
    PrefillConstants,
    decode_times,
    prefill_times,
    smooth_max,
)
from datahall.silicon.calibration import calibrate, num_sms
from datahall.silicon.kernel import KernelTime, time_operators
from datahall.silicon.roofline import BoundTimes
from datahall.workload.forward import forward_pass
from datahall.workload.operator import Attention, Number, attention_flop, visible_tokens

CATALOG = Catalog(user=False)
CHIPS = ("h200-sxm", "h100-pcie", "a100-sxm-80gb", "b200-sxm", "l40s", "mi300x", "tpu-v5p")
MODELS = ("llama-3.1-8b", "deepseek-v3", "gemma-3-27b", "gpt-3-175b", "falcon-7b", "gpt-oss-120b")

few = settings(max_examples=60, deadline=None)
chips = st.sampled_from(CHIPS)
batches = st.integers(1, 256).map(float)
lengths = st.integers(1, 65536).map(float)
kv_heads = st.sampled_from([1.0, 2.0, 8.0, 32.0])
groups = st.sampled_from([1.0, 4.0, 16.0])
widths = st.sampled_from([64.0, 128.0, 256.0])


def prefill(
    chip: str,
    batch: Number,
    query: Number,
    past: Number = 0.0,
    *,
    heads: float = 32.0,
    kv: float = 8.0,
    width: float = 128.0,
    window: float = 0.0,
    causal: bool = True,
) -> BoundTimes:
    machine = CATALOG.chip(chip)
    return prefill_times(
        Attention(batch, query, query + past, heads, kv, width, width, window, causal),
        calibrate(machine).constants.prefill,
        num_sms=num_sms(machine),
        peak_flop_per_s=machine.peak("bf16"),
        memory_bytes_per_s=machine.memory_bytes_per_s,
        kv_bytes=2.0,
        value_bytes=2.0,
    )


def decode(
    chip: str,
    batch: Number,
    cache: Number,
    *,
    heads: float = 32.0,
    kv: float = 8.0,
    width: float = 128.0,
    value: float | None = None,
    window: float = 0.0,
    kv_bytes: float = 2.0,
) -> BoundTimes:
    machine = CATALOG.chip(chip)
    return decode_times(
        Attention(batch, 1.0, cache, heads, kv, width, width if value is None else value, window),
        calibrate(machine).constants.decode,
        num_sms=num_sms(machine),
        memory_bytes_per_s=machine.memory_bytes_per_s,
        kv_bytes=kv_bytes,
        peak_flop_per_s=machine.peak("bf16"),
        value_bytes=2.0,
    )


@few
@given(chips, batches, lengths, st.integers(0, 65536).map(float), kv_heads, groups, widths)
def test_prefill_beats_neither_its_arithmetic_nor_its_bytes(
    chip: str, batch: float, query: float, past: float, kv: float, group: float, width: float
) -> None:
    machine, heads = CATALOG.chip(chip), kv * group
    flop = batch * attention_flop(visible_tokens(query, past), heads, width)
    moved = 2.0 * batch * width * (2 * query * heads + 2 * (query + past) * kv)
    time_s = prefill(chip, batch, query, past, heads=heads, kv=kv, width=width).time_s
    assert time_s >= flop / machine.peak("bf16")
    assert time_s >= moved / machine.memory_bytes_per_s


@few
@given(chips, batches, lengths, kv_heads, groups, widths, st.sampled_from([1.0, 2.0]))
def test_decode_beats_neither_its_arithmetic_nor_its_bytes(
    chip: str, batch: float, cache: float, kv: float, group: float, width: float, kv_bytes: float
) -> None:
    machine, heads = CATALOG.chip(chip), kv * group
    flop = batch * attention_flop(cache, heads, width)
    moved = 2.0 * batch * width * (kv_bytes * cache * kv + 2 * heads)
    time_s = decode(chip, batch, cache, heads=heads, kv=kv, width=width, kv_bytes=kv_bytes).time_s
    assert time_s >= flop / machine.peak("bf16")
    assert time_s >= moved / machine.memory_bytes_per_s


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("query", "past"), [(1, 127), (1, 16383), (3, 4000), (2048, 0), (512, 8192)])
def test_attention_of_every_kind_of_model_stays_under_the_roof(name: str, query: int, past: int) -> None:
    machine, model = CATALOG.chip("h200-sxm"), CATALOG.model(name)
    for batch in (1, 64, 512):
        step = forward_pass(model, batch=float(batch), query=float(query), past=float(past))
        for kernel in time_operators(
            machine, [one for one in step if isinstance(one.shape, Attention)]
        ).kernels:
            assert kernel.time_s >= kernel.roofline_s, (batch, kernel.operator.shape)


@few
@given(chips, batches, lengths, lengths, st.integers(1, 1000).map(float))
def test_more_prefill_is_never_faster(
    chip: str, batch: float, query: float, past: float, more: float
) -> None:
    now = prefill(chip, batch, query, past).time_s
    assert prefill(chip, batch + more, query, past).time_s >= now
    assert prefill(chip, batch, query + more, past).time_s >= now
    assert prefill(chip, batch, query, past + more).time_s >= now


@few
@given(chips, st.integers(128, 512).map(float), lengths, st.integers(1, 1000).map(float))
def test_more_decode_is_never_faster_on_a_full_chip(
    chip: str, batch: float, cache: float, more: float
) -> None:
    now = decode(chip, batch, cache).time_s * (1 - 1e-12)
    assert decode(chip, batch + more, cache).time_s >= now
    assert decode(chip, batch, cache + more).time_s >= now


@few
@given(
    st.sampled_from([chip.name for chip in CATALOG.chips() if "bf16" in chip.peak_flop_per_s]),
    st.integers(1, 8).map(float),
    st.integers(1, 4096).map(float),
    st.integers(1, 512).map(float),
    kv_heads,
    widths,
)
def test_a_longer_cache_is_never_faster(
    chip: str, batch: float, cache: float, more: float, kv: float, width: float
) -> None:
    """Though from some length on it is split over multiprocessors that were idle."""
    now = decode(chip, batch, cache, kv=kv, width=width).time_s * (1 - 1e-12)
    assert decode(chip, batch, cache + more, kv=kv, width=width).time_s >= now


def test_arithmetic_of_a_prompt_grows_with_its_square() -> None:
    short, long = (prefill("h200-sxm", 4.0, query).time_s for query in (16384.0, 32768.0))
    assert long / short == pytest.approx(4.0, rel=0.05)


def test_causal_attention_costs_half_of_full_attention() -> None:
    causal, full = (prefill("h200-sxm", 8.0, 16384.0, causal=causal).time_s for causal in (True, False))
    assert causal / full == pytest.approx(0.5, rel=0.05)


@few
@given(chips, batches, st.integers(2, 16384).map(float), st.integers(0, 16384).map(float))
def test_a_prompt_in_chunks_is_never_faster_than_whole(
    chip: str, batch: float, query: float, past: float
) -> None:
    first = np.ceil(query / 2)
    parts = (
        prefill(chip, batch, first, past).time_s + prefill(chip, batch, query - first, past + first).time_s
    )
    assert parts >= prefill(chip, batch, query, past).time_s


def test_a_chunk_pays_for_the_past_it_attends_to() -> None:
    fresh, late = (prefill("h200-sxm", 8.0, 512.0, past).time_s for past in (0.0, 15872.0))
    assert late > 10 * fresh


@few
@given(chips, batches, lengths, st.integers(1, 65536).map(float))
def test_a_window_never_costs_more_and_a_wide_one_changes_nothing(
    chip: str, batch: float, length: float, window: float
) -> None:
    for times in (prefill, decode):
        without = times(chip, batch, length).time_s
        assert times(chip, batch, length, window=length).time_s == without
    assert prefill(chip, batch, length, window=window).time_s <= prefill(chip, batch, length).time_s


def test_a_window_makes_prefill_linear_and_decode_constant() -> None:
    near, far = (prefill("h200-sxm", 4.0, query, window=1024.0).time_s for query in (32768.0, 65536.0))
    assert far / near == pytest.approx(2.0, rel=0.05)
    early, late = (decode("h200-sxm", 64.0, cache, window=1024.0).time_s for cache in (2048.0, 65536.0))
    assert early == late == decode("h200-sxm", 64.0, 1024.0).time_s


def test_a_long_cache_of_few_heads_is_split_over_idle_multiprocessors() -> None:
    """A single multiprocessor would need a hundred times as long as its share of a split cache."""
    machine = CATALOG.chip("h200-sxm")
    stream = calibrate(machine).constants.decode.sm_stream_bytes_per_s
    alone_s = 65536 * 2 * 128 * 2.0 / stream
    split = decode("h200-sxm", 1.0, 65536.0, heads=4.0, kv=1.0)
    assert split.time_s < 0.1 * alone_s
    assert split.compute_s >= alone_s / num_sms(machine)


def test_a_short_cache_is_not_split() -> None:
    constants = calibrate(CATALOG.chip("h200-sxm")).constants.decode
    short = decode("h200-sxm", 1.0, 128.0, heads=4.0, kv=1.0)
    assert short.time_s < constants.launch_s + constants.combine_s + 2 * short.compute_s


def test_grouped_heads_read_a_share_of_the_cache() -> None:
    """At a long context the time follows the stored bytes: heads that share a cache read it once."""
    every, grouped, single = (
        decode("h200-sxm", 256.0, 32768.0, heads=32.0, kv=kv).time_s for kv in (32.0, 8.0, 1.0)
    )
    assert every / grouped == pytest.approx(4.0, rel=0.05)
    assert every / single == pytest.approx(32.0, rel=0.1)
    halved = decode("h200-sxm", 256.0, 32768.0, kv_bytes=1.0).time_s
    assert 0.49 < halved / grouped < 1, "half the bytes, less what widening them costs"


def test_latent_attention_reads_one_vector_for_keys_and_values() -> None:
    latent = decode("h200-sxm", 64.0, 8192.0, heads=128.0, kv=1.0, width=576.0, value=512.0)
    machine = CATALOG.chip("h200-sxm")
    moved = 64 * 8192 * 576 * 2.0 + 64 * 128 * (576 + 512) * 2.0
    rate = machine.memory_bytes_per_s * calibrate(machine).constants.decode.memory_efficiency
    assert latent.memory_s == pytest.approx(moved / rate)


def test_expanded_latent_heads_store_keys_and_values() -> None:
    """Each of 128 heads has its own key of 192 and value of 128."""
    kernel = _attention_of("deepseek-v3", batch=32.0, past=4095.0, latent="expanded")
    stored = 32 * 4096 * 128 * (192 + 128) * 2.0
    assert kernel.memory_s >= stored / CATALOG.chip("h200-sxm").memory_bytes_per_s


def test_latent_decode_is_held_back_by_arithmetic() -> None:
    """128 heads on one cache of 576 values do 242 FLOP per byte, past the ridge of an H200."""
    kernel = _attention_of("deepseek-v3", batch=128.0, past=16383.0)
    assert kernel.bound == "compute"
    assert kernel.time_s >= kernel.operator.flop / CATALOG.chip("h200-sxm").peak("bf16")


def _attention_of(name: str, *, batch: float, past: float, latent: str = "auto") -> KernelTime:
    step = forward_pass(CATALOG.model(name), batch=batch, query=1.0, past=past, latent=latent)  # type: ignore[arg-type]
    cores = [one for one in step if isinstance(one.shape, Attention)]
    return time_operators(CATALOG.chip("h200-sxm"), cores).kernels[0]


def _decode_columns(chip: str, batch: Number, query: Number, past: Number) -> BoundTimes:
    del query
    return decode(chip, batch, past)


@few
@given(chips, st.integers(0, 10_000))
def test_a_column_holds_what_each_shape_alone_gives(chip: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    batch, query, past = (np.floor(2.0 ** random.uniform(0, top, 8)) for top in (8, 13, 14))
    for times in (partial(_decode_columns, chip), partial(prefill, chip)):
        together = times(batch, query, past)
        for row in range(8):
            alone = times(batch[row], query[row], past[row])
            for field in ("time_s", "compute_s", "memory_s"):
                assert getattr(alone, field) == pytest.approx(getattr(together, field)[row], rel=1e-12)


positive = st.floats(1e-9, 1e3)


@few
@given(positive, positive, st.floats(1.0, 20.0))
def test_the_rounded_corner_lies_between_the_larger_and_the_sum(a: float, b: float, sharpness: float) -> None:
    rounded = smooth_max(a, b, sharpness)
    assert max(a, b) <= rounded <= (a + b) * (1 + 1e-12)
    assert rounded == pytest.approx(smooth_max(b, a, sharpness), rel=1e-12)


# A chip whose blocks of scores take whole seconds: 2 multiprocessors, heads of 64 values.  A block is
# 4·128·128·64 = 2^22 FLOP at 2^24 · ½ / 2 FLOP/s of one multiprocessor: 1 s, and ½ s of exponentials.
PREFILL = PrefillConstants(
    launch_s=10.0, softmax_s=0.5, tile_s=0.25, tensor_efficiency=0.5, power_efficiency=0.5, imbalance=0.5,
)  # fmt: skip


def prompt_by_hand(
    shape: Attention, *, bandwidth: float = 2.0**17, kv_bytes: float = 2.0, **constants: float
) -> BoundTimes:
    return prefill_times(
        shape, msgspec.structs.replace(PREFILL, **constants), num_sms=2.0, peak_flop_per_s=2.0**24,
        memory_bytes_per_s=bandwidth, kv_bytes=kv_bytes,
        value_bytes=2.0,
    )  # fmt: skip


def square(
    q: float = 256.0,
    kv: float = 256.0,
    heads: float = 1.0,
    *,
    batch: float = 1.0,
    value: float = 64.0,
    window: float = 0.0,
    causal: bool = False,
) -> Attention:
    return Attention(batch, q, kv, heads, 1.0, 64.0, value, window, causal)


@pytest.mark.parametrize(
    ("shape", "options", "compute_s", "memory_s"),
    [
        # 2 × 2 blocks and half a block on each of 2 diagonals: 5 · 1.5 + 2 · 0.25 = 8 s over 2 multiprocessors;
        # the last queries walk 2 blocks: 3.25 s, half of which overlaps with nothing
        (square(), {}, 4.0 + 1.625, 1.0),
        (square(batch=3.0), {}, 12.0 + 1.625, 3.0),
        (square(heads=3.0), {}, 12.0 + 1.625, 2.0),  # heads share keys and values
        (square(q=128.0), {}, 2.0 + 1.625, 0.75),  # 2.5 · 1.5 + 0.25 = 4 s of work over two
        (square(q=128.0), {"imbalance": 0.0}, 3.25, 0.75),  # the chain is longer
        (square(q=129.0, kv=129.0), {"imbalance": 0.0}, 3.25, 129 / 256),
        (
            square(kv=257.0, q=1.0),
            {"imbalance": 0.0},
            3 * 1.5 + 0.25,
            (1 + 257) / 512,
        ),  # a part of a block is a block
        (square(), {"power_efficiency": 1 / 64}, 64.0, 1.0),  # 2^24 FLOP at a 64th of the peak
        (square(), {"bandwidth": 2.0**14}, 5.625, 8.0),
        (square(), {"kv_bytes": 1.0}, 5.625, 0.75),
        (square(), {"kv_bytes": 4.0}, 5.625, 1.5),
        # values of 192 make 128 on average: a block is 2 s and the exponentials
        (square(value=192.0), {}, (5 * 2.5 + 0.5) / 2 + 0.5 * 5.25, 2.0),
        # blocks of 64 queries take ¾ s: 8 and 4 halves of them, 4 starts, a chain of 1.75 s
        (square(), {"num_query_rows": 64.0}, (10 * 0.75 + 1.0) / 2 + 0.875, 1.0),
        # 24,640 of the scores are seen: 1.504 blocks, and the diagonal's half
        (square(q=128.0, causal=True), {"imbalance": 1.0}, 1.6279296875 + 3.25, 0.75),
        # a window of one block: 24,640 scores again over two blocks of queries, a chain of one block
        (square(causal=True, window=128.0), {}, 2.1279296875 + 0.875, 1.0),
        (square(q=128.0, kv=512.0, causal=True, window=128.0), {}, 1.25 + 0.875, (128 + 255) / 512),
    ],
)
def test_a_prompt_by_hand(
    shape: Attention, options: dict[str, float], compute_s: float, memory_s: float
) -> None:
    found = prompt_by_hand(shape, **options)
    assert found.compute_s == pytest.approx(compute_s)
    assert found.memory_s == pytest.approx(memory_s)
    assert found.time_s == pytest.approx(10.0 + max(compute_s, memory_s))


def test_a_narrow_cache_is_cast_before_a_prompt_reads_it() -> None:
    """One more launch, and a time for each of 256 · 64 · 3 values of the queries."""
    casts = {"narrow_launch_s": 5.0, "narrow_element_s": 2.0**-12}
    for kv_bytes, more_s in ((2.0, 0.0), (1.0, 5.0 + 12.0)):
        plain = prompt_by_hand(square(heads=3.0), kv_bytes=kv_bytes).time_s
        assert prompt_by_hand(square(heads=3.0), kv_bytes=kv_bytes, **casts).time_s == pytest.approx(
            plain + more_s
        )


# Decode on 10 multiprocessors: a token of a KV head is 64 bytes, a block of 128 tokens streams in 1 s.  At a sharpness
# of 1 the chain of blocks and memory add up.
DECODE = DecodeConstants(
    launch_s=100.0, tile_s=1.0, sm_stream_bytes_per_s=8192.0, memory_efficiency=0.5, tail_s=3.0, combine_s=1.0,
    combine_part_s=0.25, sharpness=1.0,
)  # fmt: skip


def decode_by_hand(
    batch: float,
    cache: float,
    *,
    heads: float = 4.0,
    kv: float = 2.0,
    dims: tuple[float, float] = (16.0, 16.0),
    window: float = 0.0,
    bandwidth: float = 2.0**20,
    kv_bytes: float = 2.0,
    peak: float = math.inf,
    warm_bytes: float = 0.0,
    **constants: float,
) -> BoundTimes:
    return decode_times(
        Attention(batch, 1.0, cache, heads, kv, *dims, window), msgspec.structs.replace(DECODE, **constants),
        num_sms=10.0, memory_bytes_per_s=bandwidth, kv_bytes=kv_bytes, peak_flop_per_s=peak, warm_bytes=warm_bytes,
        value_bytes=2.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("batch", "cache", "chain_s", "join_s"),
    [
        (4.0, 512.0, 1 + 4, 0.0),  # 8 of 10 multiprocessors are busy: nothing is split
        (6.0, 512.0, 2 * (1 + 4), 0.0),  # 12 pieces are two waves
        (3.5, 512.0, 1 + 4, 0.0),  # 7 pieces: no multiprocessor is free for a second part
        (1.0, 256.0, 1 + 2, 0.0),  # joining two parts takes longer than the second block
        (1.0, 257.0, 1 + 1, 1 + 3 * 0.25),  # 3 blocks on 3 multiprocessors for each of 2 KV heads
        (1.0, 512.0, 1 + 1, 1 + 4 * 0.25),  # no more parts than blocks
        (1.0, 1024.0, 1 + 2, 1 + 5 * 0.25),  # 8 blocks in 5 parts: two of them in the longest
        (1.5, 1024.0, 1 + 3, 1 + 3 * 0.25),  # 3 pieces in 3 parts
        (2.0, 64.0, 1 + 0.5, 0.0),  # half a block
    ],
)
def test_a_cache_by_hand(batch: float, cache: float, chain_s: float, join_s: float) -> None:
    found = decode_by_hand(batch, cache)
    block_s, dram_s = min(cache, 128.0) / 128.0, (batch * 2 * cache * 64 + batch * 256) / 2.0**19
    assert found.compute_s == pytest.approx(chain_s)
    assert found.memory_s == pytest.approx(dram_s)
    assert found.time_s == pytest.approx(100 + chain_s + (1 + block_s + dram_s + 3.0) + join_s)


def test_the_tail_grows_until_memory_is_busy_for_ten_microseconds() -> None:
    moved = 4 * 2 * 512 * 64 + 4 * 256
    for dram_s, tail_s in ((2e-5, 3.0), (5e-6, 1.5)):
        found = decode_by_hand(4.0, 512.0, bandwidth=2 * moved / dram_s)
        assert found.memory_s == pytest.approx(dram_s)
        assert found.time_s == pytest.approx(100 + 5 + 2 + tail_s + dram_s)


def test_many_heads_on_one_cache_are_held_back_by_their_arithmetic() -> None:
    """2 FLOP for each of 4 · 4 · 32 values of queries and answers and each of 512 tokens, at 2^14 FLOP/s: 32 s."""
    assert decode_by_hand(4.0, 512.0, peak=2.0**14).compute_s == pytest.approx(32.0)
    assert decode_by_hand(4.0, 512.0, peak=2.0**17).compute_s == pytest.approx(5.0)


def test_a_narrow_cache_is_widened_by_the_kernel_that_reads_it() -> None:
    """Half the bytes at a quarter of the rates, and a launch of 7 s more."""
    widened = {"narrow_launch_s": 7.0, "narrow_rate_factor": 0.25}
    wide, narrow = (decode_by_hand(4.0, 512.0, kv_bytes=size, **widened) for size in (2.0, 1.0))
    assert wide.time_s == decode_by_hand(4.0, 512.0).time_s
    assert narrow.compute_s == pytest.approx(1 + 4 * 2)
    dram_s = (4 * 2 * 512 * 32 + 1024) / (2.0**20 * 0.125)
    assert narrow.memory_s == pytest.approx(dram_s)
    assert narrow.time_s == pytest.approx(107 + 9 + (1 + 2 + dram_s + 3))
    boosted = decode_by_hand(4.0, 512.0, kv_bytes=1.0, narrow_rate_factor=10.0)
    assert boosted.memory_s == pytest.approx((4 * 2 * 512 * 32 + 1024) / 2.0**20)  # never above the datasheet


def test_a_cache_that_a_run_before_left_in_l2_is_read_there() -> None:
    moved = 4 * 2 * 512 * 64 + 1024
    for warm_bytes, l2, rate in (
        (moved, 2.0**22, 2.0**22),
        (moved - 1, 2.0**22, 2.0**19),
        (moved, 2.0**10, 2.0**19),  # no cache is slower than what it caches
    ):
        found = decode_by_hand(4.0, 512.0, warm_bytes=warm_bytes, l2_bytes_per_s=l2)
        assert found.memory_s == pytest.approx(moved / rate)


@pytest.mark.parametrize(
    ("dims", "kv", "stored"),
    [
        ((24.0, 16.0), 1.0, 24.0),
        ((24.0, 16.0), 2.0, 40.0),
        ((24.0, 24.0), 1.0, 48.0),
        ((16.0, 24.0), 1.0, 40.0),
    ],
)
def test_only_one_shared_head_whose_keys_are_wider_is_latent(
    dims: tuple[float, float], kv: float, stored: float
) -> None:
    moved = 4 * kv * 512 * stored * 2 + 2 * 4 * 4 * sum(dims)
    assert decode_by_hand(4.0, 512.0, kv=kv, dims=dims).memory_s == pytest.approx(moved / 2.0**19)


def test_a_window_bounds_what_decode_reads() -> None:
    assert decode_by_hand(4.0, 512.0, window=128.0).time_s == decode_by_hand(4.0, 128.0).time_s
    assert decode_by_hand(4.0, 100.0, window=128.0).time_s == decode_by_hand(4.0, 100.0).time_s


def test_layers_of_one_kind_have_one_window() -> None:
    alone = prompt_by_hand(square(causal=True, window=128.0)).time_s
    column = prompt_by_hand(square(causal=True, window=np.full(3, 128.0))).time_s  # type: ignore[arg-type]
    assert np.asarray(column).tolist() == [alone] * 3


@pytest.mark.parametrize(("sharpness", "rounded"), [(1.0, 7.0), (2.0, 5.0)])
def test_the_corner_by_hand(sharpness: float, rounded: float) -> None:
    assert smooth_max(3.0, 4.0, sharpness) == pytest.approx(rounded)
