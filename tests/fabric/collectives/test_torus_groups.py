"""Groups of ranks on a torus: the axes they span, and what slices add."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import InfeasibleError
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.torus import bucket_all_gather_time, group_axes, torus_times

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
    assert group_axes(sides, prod(sides), 1) == (sides, True, 1)


@given(CUBES, st.sampled_from([1, 2, 4, 8, 16]))
def test_a_group_and_the_groups_across_it_fill_the_slice(sides: tuple[int, int, int], inner: int) -> None:
    near, _, _ = group_axes(sides, inner, 1)
    far, _, slices = group_axes(sides, prod(sides) // inner, inner)
    assert prod(near) * prod(far) * slices == prod(sides)


@given(st.lists(st.integers(2, 12), min_size=1, max_size=3), st.integers(1, 60), st.integers(2, 60))
def test_ranks_that_stand_in_one_slice_are_in_one_whatever_the_stride(
    sides: list[int], stride: int, num_ranks: int
) -> None:
    axes, _, slices = group_axes(sides, num_ranks, stride)
    if stride * num_ranks <= prod(sides):
        met = {stride * rank % sides[0] for rank in range(num_ranks)}
        assert slices == 1
        assert prod(axes) >= num_ranks
        assert len(met) == 1 or axes[0] == len(met)
    assert prod(axes) * slices >= num_ranks


def test_part_of_an_axis_is_no_ring() -> None:
    assert group_axes((16, 16), 8, 1) == ((8,), False, 1)
    assert group_axes((8, 16), 128, 1) == ((8, 16), False, 1)


def test_a_gather_stays_in_the_slice_and_a_sum_crosses_the_network() -> None:
    inside = bucket_all_gather_time(1e9, (4, 4, 8), hop_s=1e-6, bytes_per_s=90e9)
    assert time("all-gather", 128) == time("all-gather", 512) == pytest.approx(float(inside))
    across = 2 * 3 / 4 * (1e9 / 128) / 3e9
    assert time("reduce-scatter", 512) == pytest.approx(float(inside) + across)


def test_without_a_network_slices_cannot_sum() -> None:
    with pytest.raises(InfeasibleError, match="no network"):
        time("reduce-scatter", 256, nic=0.0)
