"""What groups of chips meet on a machine, and what a chip has of its host: counted by hand, on leaves of 63 chips."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.across import lain_across
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.groups import group_times
from datahall.cluster.host import host_of
from datahall.scenario.sections.fabric import FabricDesign

CATALOG = Catalog(user=False)


def on(topology: str, chips: int) -> Cluster:
    return cluster_from(FabricDesign(topology=topology, chips=chips), CATALOG)


TREE = on("tree", 256)


@pytest.mark.parametrize(
    ("block", "is_cut"),
    [(8, False), (16, True), (21, False), (24, True), (62, True), (63, False), (64, False)],
)
def test_blocks_that_do_not_divide_a_leaf_lie_across_two(block: int, is_cut: bool) -> None:
    """In a row of leaves of 63 three blocks of 21 end where a leaf does; no leaf holds 64, and a domain holds 8."""
    (leaf,) = TREE.system.cuts
    assert leaf.num_below == 63
    assert (lain_across(TREE, block) is leaf) == is_cut


def test_groups_that_leave_their_leaves_are_told_from_those_that_leave_their_domains() -> None:
    """Two ranks 8 apart share a leaf; 64 apart they do not, and all 63 of a leaf pass a way as wide as one port."""
    near, far = group_times(
        TREE.system, "all-gather", np.full(2, 1e9), np.full(2, 2.0), np.array([8.0, 64.0])
    )
    assert far > 5 * near


def test_a_chip_has_an_eighth_of_its_server() -> None:
    """A DGX H100: 2 TB of memory and eight drives of 3.84 TB."""
    host = host_of(CATALOG.chip("h100-sxm"), CATALOG.servers())
    assert (host.memory_bytes, host.nvme_bytes) == (0.25e12, 3.84e12)


@pytest.mark.parametrize(("chips", "there"), [(8, ()), (64, ()), (1024, (4.0,))])
def test_a_ratio_is_of_a_tier_below_another(chips: int, there: tuple[float, ...]) -> None:
    """64 chips hang on one switch each way, 1,024 on leaves and spines."""
    assert on("fat-tree", chips).ratios_there((4.0, 2.0)) == there
