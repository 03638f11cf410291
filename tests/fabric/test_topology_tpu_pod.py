"""Pods of cubes: which slices exist, how likely enough of them work."""

from __future__ import annotations

from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fabric.topologies import WIRE

from datahall.fabric.topology.grids.tpu_pod import (
    PODS,
    TPU_V4,
    TPU_V5P,
    crosses_cubes,
    cube_of,
    num_circuit_switches,
    slice_for,
    slice_shapes,
    tpu_pod,
    tpu_slice,
)  # fmt: skip
from datahall.reliability.nodes.availability import at_least, unit_availability


def test_pods_have_the_published_sizes() -> None:
    assert (TPU_V4.num_chips, TPU_V4.num_cubes) == (4096, 64)
    assert (TPU_V5P.num_chips, TPU_V5P.num_cubes) == (8960, 140)
    assert prod(TPU_V5P.largest) == 6144
    assert num_circuit_switches(64) == 48


@pytest.mark.parametrize(
    "sides",
    [
        "2x2x1",
        "2x2x2",
        "2x4x4",
        "4x4x4",
        "4x4x8",
        "4x8x8",
        "8x8x8",
        "8x8x16",
        "8x16x16",
        "16x16x16",
        "16x16x24",
    ],
)
def test_every_slice_in_the_documentation_can_be_scheduled(sides: str) -> None:
    shape = tuple(map(int, sides.split("x")))
    assert tuple(sorted(shape)) in {tuple(sorted(one)) for one in slice_shapes(TPU_V5P)}


def test_the_largest_slice_is_the_last_one() -> None:
    assert slice_shapes(TPU_V5P)[-1] == (16, 16, 24)
    assert all(prod(shape) <= pod.num_chips for pod in PODS.values() for shape in slice_shapes(pod))
    assert slice_for(512, TPU_V4) == (8, 8, 8)


def test_a_part_of_a_cube_has_no_wrap_around() -> None:
    assert tpu_slice((2, 2, 4), WIRE, TPU_V4).shape.wrap == (False,) * 3
    assert tpu_slice((4, 4, 8), WIRE, TPU_V4).shape.wrap == (True,) * 3


def test_a_quarter_of_the_cables_are_optical() -> None:
    fabric = tpu_pod(TPU_V4, WIRE)
    optical = crosses_cubes(fabric, TPU_V4.sides)
    assert optical.sum() / 2 == 64 * 96 / 2
    cube = cube_of(TPU_V4.sides, np.arange(4096, dtype=np.int32))
    assert (np.bincount(cube) == 64).all()


def test_cube_availability_is_as_google_printed_it() -> None:
    cube = unit_availability(0.999)
    assert at_least(64, 64, cube) == pytest.approx(0.359, abs=5e-4)
    assert at_least(60, 64, cube) == pytest.approx(0.9965, abs=5e-5)
    assert at_least(48, 64, cube) == pytest.approx(1.0)
    assert at_least(130, 144, 0.9347) == pytest.approx(0.95, abs=5e-4)


def test_a_share_that_hardly_is_leaves_next_to_no_chance() -> None:
    for share in (5e-324, 2.225073858507e-311, 1e-300, 1e-20):
        assert at_least(1, 2, share) == pytest.approx(2.0 * share, rel=1e-9, abs=1e-300)


@given(total=st.integers(1, 60), share=st.floats(0.0, 1.0), data=st.data())
def test_binomial_tails_are_exact(total: int, share: float, data: st.DataObject) -> None:
    needed = data.draw(st.integers(0, total))
    exact = sum(comb(total, n) * share**n * (1 - share) ** (total - n) for n in range(needed, total + 1))
    assert at_least(needed, total, share) == pytest.approx(exact, abs=1e-9)
