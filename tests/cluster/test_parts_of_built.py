"""Some chips of a fabric that was built: one time everywhere, inside its band, and a slice where a pod has one."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.collective import time_collective
from datahall.cluster.groups import machine_times
from datahall.fabric.collectives.algorithms.torus import group_axes
from datahall.fabric.collectives.torus_figure import ON_A_TORUS
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import COLLECTIVES, Collective

CATALOG = Catalog(user=False)
BUILT = tuple(one.name for one in CATALOG.known_fabrics())
PODS = tuple(one.name for one in CATALOG.known_fabrics() if one.topology == "tpu-pod")
COUNTS = (2, 3, 8, 9, 16, 28, 64, 73, 80, 100, 144, 448, 512, 560, 570, 0)  # 0: all


@cache
def part(name: str, num_chips: int) -> Cluster:
    return cluster_from(FabricDesign(topology=name, chips=num_chips or None), CATALOG)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", BUILT)
def test_one_time_inside_its_band(name: str, count: int) -> None:
    cluster = part(name, count)
    filled = cluster.system.filled(cluster.num_chips)
    kinds = ON_A_TORUS if cluster.system.torus else COLLECTIVES
    for kind in kinds:
        for size in (1e5, 1e9):
            found = time_collective(cluster, kind, size)
            assert found.figure.value == pytest.approx(found.choice.time_s, rel=1e-9)
            assert found.band.low <= found.figure.value * (1 + 1e-9)
            assert found.figure.value <= found.band.high * (1 + 1e-9)
            assert false_nodes(found.figure) == []
            column = machine_times(filled, kind, np.array([size]), cluster.num_chips)[0]
            assert found.choice.time_s == pytest.approx(float(column), rel=1e-12)


@pytest.mark.parametrize("kind", ON_A_TORUS)
def test_part_of_a_pod_is_the_slice_of_as_many_chips(kind: Collective) -> None:
    """The switches of a pod join any cubes to a torus, so that the other cubes make no difference."""
    for count in (8, 32, 64, 512, 1024):
        alone = cluster_from(FabricDesign(topology="tpu-pod", chips=count, chip="tpu-v5p"), CATALOG)
        inside = part("tpu-v5p-pod", count)
        assert time_collective(inside, kind, 1e9).choice.time_s == pytest.approx(
            time_collective(alone, kind, 1e9).choice.time_s
        )


def test_cubes_and_whole_axes_close_and_nothing_else_does() -> None:
    def closes(count: int) -> bool:
        system = part("tpu-v5p-pod", count).system
        assert system.torus_link is not None
        return group_axes(system.torus, count, 1, wrapped=system.torus_link.wrapped).rings

    assert [closes(count) for count in (64, 512, 704 - 64, 28, 560)] == [True] * 5
    assert [closes(count) for count in (8, 32, 63, 65, 100, 511)] == [False] * 6


@pytest.mark.parametrize("name", PODS)
def test_any_number_of_cubes_takes_as_long_for_a_large_array(name: str) -> None:
    """Every chip of a torus of cubes has all its links."""
    times = [time_collective(part(name, count), "all-reduce", 1e9).choice.time_s for count in (64, 512, 0)]
    assert times == pytest.approx([times[0]] * 3, rel=0.02)


def test_a_failure_makes_no_slice_faster() -> None:
    asked = FabricDesign(topology="tpu-v5p-pod", chips=512)
    worse = cluster_from(asked, CATALOG, failures=(Failure(links=(0,)),))
    for kind in ON_A_TORUS:
        slow, fast = (
            time_collective(one, kind, 1e9).choice.time_s for one in (worse, part("tpu-v5p-pod", 512))
        )
        assert slow >= fast
