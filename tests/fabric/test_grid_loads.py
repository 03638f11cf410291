"""What each link of a grid of chips carries: the ways through it, counted one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.fabric.routing.paths import num_paths, route
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.grids.torus import torus

WIRE = Wire(1.0, 0.0)
GRIDS = [
    torus(sides, WIRE, wrap=wrap)
    for sides, wrap in product([(5,), (2, 3), (3, 4), (4, 4), (2, 3, 4), (1, 4, 3)], [True, False])
]


def walked(fabric: Fabric, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Every shortest way of every flow, walked, each with its share of a byte."""
    loads = np.zeros(fabric.num_links)
    for here, there in zip(source.tolist(), target.tolist(), strict=True):
        count = int(num_paths(fabric, here, there)[0])
        if here != there:
            paths = route(fabric, np.full(count, here), np.full(count, there), np.arange(count))
            np.add.at(loads, paths.links, 1.0 / count)
    return loads


@pytest.mark.parametrize("fabric", GRIDS, ids=lambda one: one.name)
def test_an_all_to_all_loads_links_as_its_ways_do(fabric: Fabric) -> None:
    pairs = np.array(list(product(range(fabric.num_hosts), repeat=2)), np.int32)
    source, target = pairs[:, 0], pairs[:, 1]
    found = fabric.traits.loads(source, target)
    np.testing.assert_allclose(found, walked(fabric, source, target), atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(GRIDS), st.data())
def test_so_do_any_flows(fabric: Fabric, data: st.DataObject) -> None:
    ends = st.integers(0, fabric.num_hosts - 1)
    flows = np.array(data.draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=12)), np.int32)
    found = fabric.traits.loads(flows[:, 0], flows[:, 1])
    np.testing.assert_allclose(found, walked(fabric, flows[:, 0], flows[:, 1]), atol=1e-9)


@pytest.mark.parametrize("num", [2, 5, 8, 9])
def test_the_middle_link_of_a_line_carries_a_quarter_of_all_pairs(num: int) -> None:
    pairs = np.array(list(product(range(num), repeat=2)), np.int32)
    found = torus((num,), WIRE, wrap=False).traits.loads(pairs[:, 0], pairs[:, 1])
    assert found is not None
    assert found.max() == pytest.approx(num * num // 4)
