"""Groups of ranks on a torus: the axes they span, and what slices add."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from datahall.errors import InfeasibleError
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.torus import bucket_all_gather_time, group_axes, torus_times

Counts = NDArray[Any]
CUBES = st.tuples(*(st.sampled_from([4, 8, 16]),) * 3)


def time(collective: Collective, num_ranks: int, stride: int = 1, nic: float = 3e9) -> float:
    found = torus_times(
        collective,
        1e9,
        (4, 4, 8),
        num_ranks=num_ranks,
        stride=stride,
        chip_bytes_per_s=540e9,
        network_bytes_per_s=nic,
    )
    return float(found)


@given(CUBES)
def test_all_ranks_span_all_axes(sides: tuple[int, int, int]) -> None:
    assert group_axes(sides, prod(sides), 1) == (sides, (1, 1, 1), True, 1)


@given(CUBES, st.sampled_from([1, 2, 4, 8, 16]))
def test_a_group_and_the_groups_across_it_fill_the_slice(sides: tuple[int, int, int], inner: int) -> None:
    near = group_axes(sides, inner, 1)
    far = group_axes(sides, prod(sides) // inner, inner)
    assert prod(near.axes) * prod(far.axes) * far.num_slices == prod(sides)


@given(st.lists(st.integers(2, 12), min_size=1, max_size=3), st.integers(1, 60), st.integers(2, 60))
def test_ranks_that_stand_in_one_slice_are_in_one_whatever_the_stride(
    sides: list[int], stride: int, num_ranks: int
) -> None:
    axes, _, _, slices = group_axes(sides, num_ranks, stride)
    if stride * num_ranks <= prod(sides):
        met = {stride * rank % sides[0] for rank in range(num_ranks)}
        assert slices == 1
        assert prod(axes) >= num_ranks
        assert len(met) == 1 or axes[0] == len(met)
    assert prod(axes) * slices >= num_ranks


def test_part_of_an_axis_is_no_ring() -> None:
    assert group_axes((16, 16), 8, 1) == ((8,), (1,), False, 1)
    assert group_axes((8, 16), 128, 1) == ((8, 16), (1, 1), False, 1)


def test_ranks_of_several_groups_share_the_links_of_an_axis() -> None:
    """Of 16 places in a ring every fourth: four groups pass each link, and four hops lead to the next rank."""
    group = group_axes((16, 16), 4, 4)
    assert group == ((4,), (4,), True, 1)
    alone = bucket_all_gather_time(1e9, (4,), hop_s=1e-6, bytes_per_s=90e9)
    shared = bucket_all_gather_time(1e9, group.axes, hop_s=1e-6, bytes_per_s=90e9, apart=group.apart)
    assert shared == pytest.approx(4 * alone)


LEAVE: dict[
    Collective, Callable[[Counts, int], Counts]
] = {  # least bytes out of a part with m of n ranks, over S
    "all-gather": lambda m, n: m / n,
    "reduce-scatter": lambda m, n: (n - m) / n,
    "all-reduce": lambda m, n: 1.0 * (m < n),
    "all-to-all": lambda m, n: m * (n - m) / n,
}


def over_the_cut_s(kind: Collective, sides: tuple[int, ...], num_ranks: int, stride: int) -> float:
    """Bytes over the narrowest of all layers of a torus with rings of links of 1 B/s, for all groups and 1 B each."""
    chip = np.arange(prod(sides))
    group = chip // (num_ranks * stride) * stride + chip % stride
    least = 0.0
    for axis, side in enumerate(sides):
        place = chip // prod(sides[:axis]) % side
        inside = np.zeros((group.max() + 1, side), int)
        np.add.at(inside, (group, place), 1)
        twice = np.cumsum(np.concatenate((inside, inside), axis=1), axis=1)
        for length in range(1, side):
            for first in range(side):
                members = twice[:, first + length - 1] - (twice[:, first - 1] if first else 0)
                across = members[(members > 0) & (members < num_ranks)]
                least = max(least, LEAVE[kind](across, num_ranks).sum() / (2 * prod(sides) / side))
    return float(least)


@given(
    kind=st.sampled_from(sorted(LEAVE)),
    sides=st.lists(st.sampled_from([4, 8, 16]), min_size=1, max_size=3).map(tuple),
    ranks=st.integers(1, 11),
    stride=st.integers(0, 11),
)
@settings(max_examples=150, deadline=None)
@example(kind="all-gather", sides=(16,), ranks=1, stride=3)
@example(kind="all-reduce", sides=(16, 4), ranks=2, stride=3)
def test_no_group_is_faster_than_its_bytes_over_the_cut(
    kind: Collective, sides: tuple[int, ...], ranks: int, stride: int
) -> None:
    num_ranks, apart = 2**ranks, 2**stride
    assume(num_ranks * apart <= prod(sides))
    time = torus_times(
        kind, 1.0, sides, num_ranks=num_ranks, stride=apart, chip_bytes_per_s=0.0, network_bytes_per_s=0.0,
        link_bytes_per_s=1.0, hop_s=0.0, wrapped=True,
    )  # fmt: skip
    assert time >= over_the_cut_s(kind, sides, num_ranks, apart) * (1 - 1e-9)


def test_a_gather_and_a_scattered_sum_cross_the_network_once() -> None:
    inside = bucket_all_gather_time(1e9, (4, 4, 8), hop_s=1e-6, bytes_per_s=90e9)
    across = 3 / 4 * (1e9 / 128) / 3e9
    assert time("all-gather", 512) == time("reduce-scatter", 512) == pytest.approx(float(inside) + across)
    assert time("all-reduce", 512) == pytest.approx(2 * (float(inside) + across))


def by_hand(
    kind: Collective,
    size: float,
    sides: tuple[int, ...],
    num_ranks: int,
    network: float = 0.0,
) -> float:
    """On rings of links of 10 B/s."""
    found = torus_times(
        kind, size, sides, num_ranks=num_ranks, stride=1, chip_bytes_per_s=0.0, network_bytes_per_s=network,
        link_bytes_per_s=10.0, hop_s=0.0, wrapped=True,
    )  # fmt: skip
    return float(found)


@pytest.mark.parametrize(
    ("sides", "num_links"),
    [((4,), 2), ((2, 4), 3), ((2, 2, 4), 4), ((2, 4, 4), 5), ((4, 4, 4), 6), ((3, 2), 3)],
)
def test_an_axis_of_two_has_one_link_and_the_longer_ones_of_a_torus_still_close(
    sides: tuple[int, ...], num_links: int
) -> None:
    """60 B over all links of a chip of 10 B/s; a ring of two would be the same cable twice."""
    assert by_hand("all-gather", 60.0, sides, prod(sides)) == pytest.approx(60 / (10 * num_links))


def test_of_a_wrapped_fabric_all_chips_are_on_rings_and_a_part_of_them_need_not_be() -> None:
    assert group_axes((2, 4, 4), 32, 1, wrapped=True) == ((2, 4, 4), (1, 1, 1), True, 1)
    assert group_axes((2, 4, 4), 2, 1, wrapped=True) == ((2,), (1,), False, 1)
    assert group_axes((2, 4, 4), 16, 2, wrapped=True) == ((4, 4), (1, 1), True, 1)
    assert not group_axes((2, 2, 2), 8, 1, wrapped=True).rings  # nothing is long enough to close


@pytest.mark.parametrize(
    ("kind", "network", "time_s"),
    [
        # 4 × 4 chips in each of two slices; of 80 B each, half of all go over the middle of a ring: 80 · 4/(8 · 10) s
        ("all-to-all", 20.0, 4.0),  # while 40 B go to the other slice in 2 s
        ("all-to-all", 5.0, 8.0),  # or in 8 s
        ("send-recv", 20.0, 8.0),  # 80 B over one link, or in 4 s over the network
        ("send-recv", 5.0, 16.0),
    ],
)
def test_pieces_and_messages_go_over_links_and_network_at_the_same_time(
    kind: Collective, network: float, time_s: float
) -> None:
    assert by_hand(kind, 80.0, (4, 4), 32, network) == pytest.approx(time_s)


@pytest.mark.parametrize("kind", ["reduce-scatter", "all-gather", "all-to-all", "send-recv"])
def test_without_a_network_slices_exchange_nothing(kind: Collective) -> None:
    with pytest.raises(InfeasibleError, match="no network"):
        time(kind, 256, nic=0.0)
