"""Scale-up domains of thousands of chips: pairs inside them are counted without walking each."""

from __future__ import annotations

import pytest

from datahall.catalog import load
from datahall.fabric.design.asked import design_of
from datahall.fabric.topology import counts
from datahall.scenario.sections.fabric import FabricDesign


@pytest.mark.parametrize("topology", ["dragonfly", "hyperx", "fat-tree", "tree"])
@pytest.mark.parametrize(("chips", "domain"), [(128, 8), (96, 4), (208, 16)])
def test_pairs_of_a_domain_are_counted_alike_chip_by_chip_and_leaf_by_leaf(
    topology: str, chips: int, domain: int
) -> None:
    fabric = design_of(FabricDesign(topology=topology, chips=chips, domain=domain), load()).fabric
    _, walked = counts._inside_domains(fabric)
    assert counts._between_leaves(fabric, fabric.num_hosts // fabric.num_domains) == walked


def test_all_of_one_domain_are_two_links_apart() -> None:
    """As the 8,960 chips of a TPU v5p's are: nothing is walked."""
    fabric = design_of(FabricDesign(topology="dragonfly", chips=64, domain=64), load()).fabric
    assert fabric.num_domains == 1
    assert counts.mean_hops(fabric) == 2.0
