"""A slow cable between two leaves that are joined directly: what is left of the way from one to the other."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.collective import time_collective
from datahall.fabric.collectives.figure import LEFT
from datahall.fabric.topology.cuts import Cut
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure

CATALOG = Catalog(user=False)
CHIPS, ON_A_LEAF, SIZE = 448, 16, 1e10
# 16 chips a switch, and one cable between any two switches; and seven a switch in a grid of eight by eight
ON = {name: FabricDesign(topology=name, chips=CHIPS) for name in ("dragonfly", "hyperx")}
each_design = pytest.mark.parametrize("name", ON)


@cache
def slowed(name: str, left: float) -> Cluster:
    """With the cable between the switches of the first two leaves at a share of its bandwidth."""
    fabric = cluster_from(ON[name], CATALOG).design.fabric  # type: ignore[union-attr]
    first = fabric.num_hosts
    (cable,) = np.flatnonzero((fabric.link_source == first) & (fabric.link_target == first + 1)).tolist()
    failures = (Failure(links=(cable,), left_fraction=left),) if left < 1 else ()
    return cluster_from(ON[name], CATALOG, failures=failures)


def leaf_of(cluster: Cluster) -> Cut:
    return next(cut for cut in cluster.system.cuts if cut.name == "leaf")


def under(figure: Breakdown, name: str) -> dict[str, float]:
    """The factors of the first node of a name."""
    node = next(part for _, part in figure.walk() if part.name == name)
    return {part.name: part.value for part in node.parts}


@each_design
@pytest.mark.parametrize("left", [0.25, 0.5, 1.0])
def test_what_is_left_between_two_leaves_is_what_is_left_of_their_cable(name: str, left: float) -> None:
    whole, after = leaf_of(slowed(name, 1.0)), leaf_of(slowed(name, left))
    assert after.pair_left_fraction == pytest.approx(left)
    assert after.pair_bytes_per_s == pytest.approx(left * whole.pair_bytes_per_s)


@pytest.mark.parametrize("left", [0.25, 0.5])
def test_pieces_wait_for_the_slow_cable_and_the_chain_says_what_is_left_of_it(left: float) -> None:
    """Each of 16 chips on a leaf has a piece for each of 16 on the other; one cable of a port's rate joins the two."""
    cluster = slowed("dragonfly", left)
    found = time_collective(cluster, "all-to-all", SIZE)
    port = cluster.system.nic_bytes_per_s
    assert found.choice.time_s == pytest.approx(ON_A_LEAF**2 / CHIPS * SIZE / (left * port))
    way = under(found.figure, "links from a leaf to the next")
    assert way.pop("links from one to the next") == pytest.approx(1)
    assert way.pop(LEFT) == pytest.approx(left)
    assert list(way.values()) == pytest.approx([port])


@each_design
def test_a_slow_cable_changes_no_number_of_cables(name: str) -> None:
    """All-reduce passes from leaf to leaf in both: the way is as many cables as before, and a share of them."""
    before, after = (
        under(time_collective(slowed(name, left), "all-reduce", SIZE).figure, "links from a leaf to the next")
        for left in (1.0, 0.25)
    )
    assert after.pop(LEFT) == pytest.approx(0.25)
    assert after == pytest.approx(before)
