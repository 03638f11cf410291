"""Published algorithms: what they promise, in seconds, bytes and steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.fabric.collectives.algorithms import all_gather, all_reduce, all_to_all, rooted, torus
from datahall.fabric.collectives.algorithms.bus import (
    bus_bandwidth,
    bus_factor,
)
from datahall.fabric.collectives.algorithms.pipeline import overlapped
from datahall.fabric.collectives.ctran import busiest_nic_bytes

FLAT = [
    all_reduce.ring_all_reduce_time, all_reduce.tree_all_reduce_time, all_reduce.pipelined_tree_all_reduce_time,
    all_reduce.double_binary_tree_all_reduce_time, all_reduce.halving_doubling_all_reduce_time,
    all_reduce.nvlink_sharp_all_reduce_time, all_gather.bruck_all_gather_time,
    all_gather.pat_all_gather_time, rooted.ring_broadcast_time,
    rooted.tree_broadcast_time,
]  # fmt: skip
TWO_LEVEL = [
    all_reduce.two_level_all_reduce_time, all_reduce.infiniband_sharp_all_reduce_time,
    all_to_all.hierarchical_all_to_all_time,
]  # fmt: skip
TORUS = [torus.bucket_all_gather_time, torus.bucket_all_reduce_time, torus.torus_all_to_all_time]

sizes = st.floats(1.0, 1e11)
ranks = st.integers(2, 20_000)
hops = st.floats(1e-7, 1e-4)
rates = st.floats(1e9, 1e12)


@pytest.fixture(scope="module")
def unit() -> pint.UnitRegistry[float]:
    return pint.UnitRegistry()


@pytest.mark.parametrize("model", [*FLAT, *TWO_LEVEL], ids=lambda model: model.__name__)
def test_every_closed_form_is_a_time(model: Callable[..., object], unit: pint.UnitRegistry[float]) -> None:
    more = {}
    if model in TWO_LEVEL:
        more = {
            "num_domain": 8.0,
            "across_hop_s": 1e-5 * unit.s,
            "across_bytes_per_s": 5e10 * unit.byte / unit.s,
        }
    if model is all_gather.pat_all_gather_time:
        more = {"rank_s": 2.8e-6 * unit.s}
    found = model(1e9 * unit.byte, 64.0, hop_s=1e-6 * unit.s, bytes_per_s=3e11 * unit.byte / unit.s, **more)
    assert found.check("[time]")  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", TORUS, ids=lambda model: model.__name__)
def test_every_torus_form_is_a_time(model: Callable[..., object], unit: pint.UnitRegistry[float]) -> None:
    found = model(1e9 * unit.byte, (4, 8), hop_s=1e-6 * unit.s, bytes_per_s=4e10 * unit.byte / unit.s)
    assert found.check("[time]")  # type: ignore[attr-defined]


@given(size=sizes, n=ranks, hop=hops, rate=rates, more=st.floats(1.0, 100.0))
@pytest.mark.parametrize("model", FLAT, ids=lambda model: model.__name__)
def test_more_bytes_never_take_less_time(
    model: Callable[..., float], size: float, n: int, hop: float, rate: float, more: float
) -> None:
    small = model(size, float(n), hop_s=hop, bytes_per_s=rate)
    assert model(size * more, float(n), hop_s=hop, bytes_per_s=rate) >= small * (1 - 1e-12)


@given(size=sizes, n=ranks, hop=hops, rate=rates)
def test_a_ring_never_passes_its_link(size: float, n: int, hop: float, rate: float) -> None:
    time = all_reduce.ring_all_reduce_time(size, float(n), hop_s=hop, bytes_per_s=rate)
    assert bus_bandwidth("all-reduce", size, time, float(n)) <= rate * (1 + 1e-9)
    assert size / time <= rate * (1 + 1e-9) if n > 2 else True


def test_both_phases_of_ten_thousand_ranks_are_28_and_19998_steps() -> None:
    assert all_reduce.tree_all_reduce_steps(10_000.0) == 28
    assert all_reduce.ring_all_reduce_steps(10_000.0) == 19_998


def test_fewer_steps_do_not_win_for_large_arrays() -> None:
    """Seed 000: O(log n) against O(n) is true of steps; bytes decide for large arrays."""
    wire = {"hop_s": 5e-6, "bytes_per_s": 50e9}
    small, large = 1e5, 1e12
    assert all_reduce.tree_all_reduce_time(small, 1e4, **wire) < all_reduce.ring_all_reduce_time(
        small, 1e4, **wire
    )
    assert (
        all_reduce.ring_all_reduce_time(large, 1e4, **wire)
        < all_reduce.tree_all_reduce_time(large, 1e4, **wire) / 10
    )


@given(n=st.integers(2, 64))
def test_halving_and_doubling_matches_a_simulation_of_its_rounds(n: int) -> None:
    """Oracle: fold to a power of two, then count the bytes and rounds of each exchange."""
    size, hop, rate = 1.0, 1e-3, 1.0
    power = 1 << (n.bit_length() - 1)
    time = (2 * (hop + size / rate)) if n > power else 0.0
    part = size
    for _ in range(power.bit_length() - 1):
        part /= 2
        time += 2 * (hop + part / rate)
    found = all_reduce.halving_doubling_all_reduce_time(size, float(n), hop_s=hop, bytes_per_s=rate)
    assert found == pytest.approx(time)


@given(chunks=st.floats(1.0, 1e5))
def test_the_best_number_of_chunks_is_the_best(chunks: float) -> None:
    wire = {"hop_s": 5e-6, "bytes_per_s": 50e9}
    depth = all_reduce.tree_depth(1024.0)
    other = 2 * (depth + chunks - 1) * (wire["hop_s"] + 1e9 / (chunks * wire["bytes_per_s"]))
    assert all_reduce.pipelined_tree_all_reduce_time(1e9, 1024.0, **wire) <= other * (1 + 1e-12)


@given(latency=st.floats(1e-9, 1.0), transfer=st.floats(1e-9, 1.0), p=st.floats(1.0, 8.0))
def test_overlap_lies_between_the_larger_and_the_sum(latency: float, transfer: float, p: float) -> None:
    found = overlapped(latency, transfer, p)
    assert max(latency, transfer) * (1 - 1e-9) <= found <= (latency + transfer) * (1 + 1e-9)


@given(message=st.floats(1.0, 1e9), first=st.floats(1.0, 1e7))
def test_the_busier_nic_has_at_least_half_and_at_most_all(message: float, first: float) -> None:
    found = float(busiest_nic_bytes(np.array([message]), first, interleaved=False)[0])
    assert message / 2 <= found <= message


def test_a_whole_column_of_ranks_is_one_call() -> None:
    n = np.array([2.0, 8.0, 1024.0])
    found = all_reduce.ring_all_reduce_time(1e9, n, hop_s=1e-6, bytes_per_s=1e11)
    assert found == pytest.approx(
        [all_reduce.ring_all_reduce_time(1e9, one, hop_s=1e-6, bytes_per_s=1e11) for one in n]
    )
    assert bus_factor("all-reduce", n) == pytest.approx([1.0, 1.75, 2046 / 1024])


def test_moe_dispatch_sends_264_241_152_bytes() -> None:
    assert all_to_all.dispatch_bytes(2**20, 2.0, 4096.0, 64.0, bytes_per_value=2.0) == 264_241_152
