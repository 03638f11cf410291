"""The time of a group as a chain is the time of it as a column, on whatever machine the group stands."""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from operator import mul

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from datahall.breakdown import false_nodes, given
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from, cluster_of
from datahall.cluster.collective import group_figure
from datahall.cluster.groups import group_times
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.words import Collective

CATALOG = Catalog(user=False)
KINDS: tuple[Collective, ...] = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send-recv")
DESIGNS = {
    "as sold": FabricDesign(chip="h100-sxm", chips=512),
    "one chip a domain": FabricDesign(chip="h100-sxm", chips=64, domain=1),
    "tree": FabricDesign(topology="tree", chips=256),
    "rails": FabricDesign(topology="rail-optimised", chips=256),
    "torus of 8": FabricDesign(topology="torus", sides=(2, 2, 2), chip="tpu-v5p"),
    "torus of 24": FabricDesign(topology="torus", sides=(4, 6), chip="tpu-v6e"),
    "torus of 36": FabricDesign(topology="torus", sides=(3, 3, 4), chip="tpu-v5p"),
    "torus of 256": FabricDesign(topology="torus", sides=(16, 16), chip="tpu-v6e"),
    "mesh of 32": FabricDesign(topology="mesh", sides=(2, 4, 4), chip="tpu-v5p"),
    "pod": FabricDesign(topology="tpu-pod", chips=128, chip="tpu-v4"),
}
SLICES = {"slices of 32": (4, 8), "slices of 64": (4, 4, 4), "slices of 256": (16, 16)}


@cache
def machine(name: str) -> Cluster:
    if name in SLICES:
        chip = CATALOG.chip("tpu-v5e" if len(SLICES[name]) == 2 else "tpu-v5p")
        return cluster_of(chip, 1024, torus=SLICES[name], nic_bytes_per_s=25e9, catalog=CATALOG)
    return cluster_from(DESIGNS[name], CATALOG)


def column_s(cluster: Cluster, kind: Collective, size_bytes: float, ranks: int, stride: int) -> float:
    one = np.array([size_bytes]), np.array([float(ranks)]), np.array([float(stride)])
    return float(group_times(cluster.system, kind, *one)[0])


def lies_along_axes(sides: tuple[int, ...], ranks: int, stride: int) -> bool:
    """Whether the chips between two ranks, and those of the group, are whole rows, planes and so on."""
    return all(
        block % whole == 0 or whole % block == 0
        for block in (stride, ranks * stride)
        for whole in accumulate(sides, mul)
    )


@settings(max_examples=400, deadline=None)
@drawn(
    name=st.sampled_from([*DESIGNS, *SLICES]), kind=st.sampled_from(KINDS),
    size_bytes=st.sampled_from([1e3, 1e6, 3e8, 1e10]),
    ranks=st.sampled_from([2, 3, 4, 6, 8, 9, 12, 16, 32, 64]), stride=st.sampled_from([1, 2, 3, 4, 6, 8, 16]),
)  # fmt: skip
def test_a_chain_and_a_column_say_one_time(
    name: str, kind: Collective, size_bytes: float, ranks: int, stride: int
) -> None:
    cluster = machine(name)
    assume(cluster.num_chips % (ranks * stride) == 0)
    assume(not cluster.system.torus or lies_along_axes(cluster.system.torus, ranks, stride))
    figure = group_figure(cluster, kind, given("array", size_bytes, "bytes"), ranks, stride)
    assert figure.value == pytest.approx(column_s(cluster, kind, size_bytes, ranks, stride), rel=1e-9)
    assert false_nodes(figure) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*DESIGNS, *SLICES])
def test_all_chips_of_a_machine_are_a_group(name: str, kind: Collective) -> None:
    cluster = machine(name)
    figure = group_figure(cluster, kind, given("array", 1e9, "bytes"), cluster.num_chips)
    assert figure.value == pytest.approx(column_s(cluster, kind, 1e9, cluster.num_chips, 1), rel=1e-9)


def test_columns_of_many_groups_are_the_groups_one_by_one() -> None:
    """Of one rank, of strides beyond every domain and cut, of sizes that repeat."""
    cluster = machine("tree")
    sizes = np.array([1e9, 1e6, 1e9, 5e7, 1e9, 1e6])
    ranks = np.array([8.0, 1.0, 2.0, 16.0, 8.0, 4.0])
    strides = np.array([1.0, 1.0, 128.0, 16.0, 8.0, 64.0])
    found = group_times(cluster.system, "all-reduce", sizes, ranks, strides)
    each = [
        column_s(cluster, "all-reduce", size, int(count), int(stride))
        for size, count, stride in zip(sizes, ranks, strides, strict=True)
    ]
    assert found.tolist() == each
    assert found[1] == 0.0
    assert (np.delete(found, 1) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SLICES)
def test_a_group_with_one_rank_a_slice_is_on_the_network_alone(name: str, kind: Collective) -> None:
    cluster = machine(name)
    slice_of = int(np.prod(SLICES[name]))
    figure = group_figure(cluster, kind, given("array", 1e9, "bytes"), 1024 // slice_of, slice_of)
    assert figure.value == pytest.approx(column_s(cluster, kind, 1e9, 1024 // slice_of, slice_of))
    assert false_nodes(figure) == []
