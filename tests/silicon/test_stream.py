"""Memory-bound kernels: latency, cache, main memory."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.silicon.calibration import calibrate
from datahall.silicon.stream import StreamConstants, stream_times
from datahall.workload.operator import Number, Stream

CATALOG = Catalog(user=False)
CHIPS = ("h200-sxm", "a100-sxm-80gb", "b200-sxm", "l40s", "mi300x", "tpu-v5p", "rubin")
PATTERNS = ("plain", "rows", "strided", "cast")

few = settings(max_examples=60, deadline=None)
chips = st.sampled_from(CHIPS)
patterns = st.sampled_from(PATTERNS)
amounts = st.floats(1.0, 1e12)


def timed(
    chip: str, pattern: str, moved_bytes: Number, *, kernels: float = 1.0, width: float = 4096.0
) -> Number:
    machine = CATALOG.chip(chip)
    shape = Stream(kernels, pattern, width)  # type: ignore[arg-type]
    return stream_times(shape, moved_bytes, constants(chip), memory_bytes_per_s=machine.memory_bytes_per_s)[0]


def constants(chip: str) -> StreamConstants:
    return calibrate(CATALOG.chip(chip)).constants.stream


@few
@given(chips, patterns, amounts, st.floats(1.0, 100.0))
def test_more_bytes_are_never_faster(chip: str, pattern: str, moved_bytes: float, ratio: float) -> None:
    """Also where the traffic moves over from the cache to main memory."""
    assert timed(chip, pattern, moved_bytes * ratio) >= timed(chip, pattern, moved_bytes)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_step_from_cache_to_memory_only_goes_up(chip: str, pattern: str) -> None:
    keep = constants(chip).l2_keep_bytes
    times = np.asarray(timed(chip, pattern, np.linspace(0.5 * keep, 2.0 * keep, 2000)))
    assert np.all(np.diff(times) >= 0)


@few
@given(chips, patterns, st.floats(1e9, 1e12))
def test_what_outgrows_the_cache_does_not_beat_main_memory(
    chip: str, pattern: str, moved_bytes: float
) -> None:
    keep = constants(chip).l2_keep_bytes
    if moved_bytes > 1.5 * keep:
        assert timed(chip, pattern, moved_bytes) >= moved_bytes / CATALOG.chip(chip).memory_bytes_per_s


def test_a_small_stream_runs_at_the_rate_of_the_cache() -> None:
    one = constants("h200-sxm")
    small = 0.5 * one.l2_keep_bytes
    assert timed("h200-sxm", "plain", small) == pytest.approx(one.kernel_s + small / one.l2_bytes_per_s)


def test_every_kernel_costs_its_latency() -> None:
    one, three = (timed("h200-sxm", "plain", 1e6, kernels=kernels) for kernels in (1.0, 3.0))
    assert three - one == pytest.approx(2 * constants("h200-sxm").kernel_s)


def test_a_norm_waits_for_its_longest_row() -> None:
    narrow, wide = (timed("h200-sxm", "rows", 1e4, width=width) for width in (1024.0, 16384.0))
    assert wide - narrow == pytest.approx(15360 * constants("h200-sxm").row_element_s, rel=0.5)
    assert timed("h200-sxm", "plain", 1e4, width=16384.0) == timed("h200-sxm", "plain", 1e4, width=1.0)


@pytest.mark.parametrize("pattern", ["rows", "strided", "cast"])
def test_harder_patterns_are_slower(pattern: str) -> None:
    assert timed("h200-sxm", pattern, 1e9) > timed("h200-sxm", "plain", 1e9)


# Main memory reaches 50 B/s (40 in rows), the cache 200 B/s for up to 1,000 bytes.
TOY = StreamConstants(
    kernel_s=1.0, eager_kernel_s=9.0, memory_efficiency=0.5, row_efficiency=0.4, row_element_s=0.25,
    strided_bytes_per_s=20.0, cast_bytes_per_s=25.0, l2_bytes_per_s=200.0, l2_keep_bytes=1000.0,
    served_kernel_s=0.5, served_row_element_s=0.125,
)  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "moved", "memory_s"),
    [
        (Stream(2.0), 1000.0, 5.0),
        (Stream(2.0), 1500.0, 30.0),  # past one and a half times what the cache keeps all comes from memory
        (Stream(2.0), 1250.0, 0.5 * 1250 / 50 + 0.5 * 1250 / 200),
        (Stream(2.0), 3000.0, 60.0),
        (Stream(1.0, "rows", 8.0), 3000.0, 75.0),
        (Stream(1.0, "rows", 400.0), 1000.0, 100.0),  # one row of 400 elements
        (Stream(1.0, "strided"), 1000.0, 50.0),
        (Stream(1.0, "cast"), 1000.0, 40.0),
        (Stream(1.0, "cast"), 3000.0, 120.0),
    ],
)
def test_a_stream_by_hand(shape: Stream, moved: float, memory_s: float) -> None:
    found = stream_times(shape, moved, TOY, memory_bytes_per_s=100.0)
    assert found == pytest.approx((shape.num_kernels * 1.0 + memory_s, memory_s))


def test_no_cache_is_slower_than_what_it_caches() -> None:
    assert stream_times(Stream(), 1000.0, TOY, memory_bytes_per_s=1e4)[1] == pytest.approx(0.2)


def test_an_engine_brings_its_own_small_kernels_where_they_were_measured() -> None:
    assert (TOY.served.kernel_s, TOY.served.row_element_s) == (0.5, 0.125)
    plain = msgspec.structs.replace(TOY, served_kernel_s=0.0, served_row_element_s=0.0)
    assert plain.served == plain
