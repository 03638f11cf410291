"""`show collective` where a narrow place binds, against the same algorithm simulated flow by flow on the same wires."""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from, cluster_of
from datahall.cluster.collective import CollectiveTime, time_collective
from datahall.fabric.collectives.crossing import least_s
from datahall.fabric.collectives.textbook import textbook_times
from datahall.fabric.design.asked import fabric_of
from datahall.fabric.flows.asked import job_of
from datahall.fabric.flows.jobs import Net, Routing, traffic
from datahall.fabric.flows.symmetry import simulate_folded
from datahall.fabric.routing.pooling import pooled
from datahall.fabric.topology.graph import Fabric
from datahall.scenario.sections.fabric import FabricDesign, FabricJob
from datahall.scenario.words import Collective

CATALOG = Catalog(user=False)
WITHIN = 0.10
SIZE = 1e10
RUNS: list[tuple[Collective, str]] = [
    ("all-reduce", "ring"), ("all-gather", "ring"), ("reduce-scatter", "ring"), ("all-to-all", "direct"),
]  # fmt: skip
PART_FILLED = [("h100-sxm", 9), ("h100-sxm", 11), ("h100-sxm", 12), ("h100-sxm", 20), ("h100-sxm", 33),
               ("gb200", 76), ("gb200", 80)]  # fmt: skip
NARROW = {
    "tree": FabricDesign(topology="tree", chips=144),
    "clos 4:1": FabricDesign(topology="clos", chips=144, radix=16, oversubscription=(4.0,)),
    "clos 8:1": FabricDesign(topology="clos", chips=144, radix=16, oversubscription=(7.0,)),
    "dragonfly": FabricDesign(topology="dragonfly", chips=144),
    "hyperx": FabricDesign(topology="hyperx", chips=144),
}


@cache
def built(chip: str) -> Fabric:
    """A fabric of whole domains that is as wide as its ports."""
    size = CATALOG.chip(chip).num_scale_up_domain
    return fabric_of(FabricDesign(topology="fat-tree", chip=chip, chips=5 * size), CATALOG)


def simulated_s(fabric: Fabric, kind: Collective, algorithm: str, ranks: int) -> float:
    asked = FabricJob(collective=kind, algorithm=algorithm, size_bytes=SIZE, ranks=tuple(range(ranks)))
    net = Net(fabric=fabric, routing=Routing("spray"))
    flows = traffic(net, (job_of(asked, 0, fabric)[0],)).flows
    return simulate_folded(flows, pooled(net.pool, fabric.link_bytes_per_s)).makespan_s


def shown(cluster: Cluster, kind: Collective, algorithm: str) -> CollectiveTime:
    return time_collective(cluster, kind, SIZE, only=() if algorithm == "direct" else (algorithm,))


@pytest.mark.parametrize(("kind", "algorithm"), RUNS)
@pytest.mark.parametrize(("chip", "count"), PART_FILLED)
def test_the_few_ports_of_the_last_domain_carry_what_the_algorithm_sends(
    chip: str, count: int, kind: Collective, algorithm: str
) -> None:
    cluster = cluster_of(CATALOG.chip(chip), count, catalog=CATALOG)
    found = shown(cluster, kind, algorithm)
    took = simulated_s(built(chip), kind, algorithm, count)
    assert took == pytest.approx(found.choice.time_s, rel=WITHIN)


@pytest.mark.parametrize(("kind", "algorithm"), RUNS)
@pytest.mark.parametrize("name", NARROW)
def test_a_narrow_place_carries_what_the_algorithm_sends(name: str, kind: Collective, algorithm: str) -> None:
    found = shown(cluster_from(NARROW[name], CATALOG), kind, algorithm)
    took = simulated_s(fabric_of(NARROW[name], CATALOG), kind, algorithm, 144)
    assert took == pytest.approx(found.choice.time_s, rel=WITHIN)


@pytest.mark.parametrize(
    ("kind", "name", "algorithm"),
    [
        ("all-reduce", "halving-doubling", "halving-doubling"),
        ("all-reduce", "two-level", "two-level"),
        ("all-to-all", "hierarchical", "pairwise"),
    ],
)
@pytest.mark.parametrize("chips", [128, 144])
def test_textbooks_are_bounded_by_what_they_send(
    kind: Collective, name: str, algorithm: str, chips: int
) -> None:
    """Over one link out of a leaf, 63 chips below it, nothing else takes as long."""
    asked = msgspec.structs.replace(NARROW["tree"], chips=chips)
    system = cluster_from(asked, CATALOG).system
    (found,) = [one.time_s for one in textbook_times(system, kind, SIZE, chips) if one.name == name]
    took = simulated_s(fabric_of(asked, CATALOG), kind, algorithm, chips)
    assert took == pytest.approx(found, rel=WITHIN)


@pytest.mark.parametrize(
    "kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"]
)
@pytest.mark.parametrize("name", ["tree", "clos 4:1", "dragonfly"])
def test_no_textbook_sends_less_over_a_narrow_place_than_any_has_to(name: str, kind: Collective) -> None:
    system = cluster_from(NARROW[name], CATALOG).system
    least = least_s(system, kind, np.array([SIZE]), 144)[0]
    for found in textbook_times(system, kind, SIZE, 144):
        if found.name != "InfiniBand SHARP":  # whose switches add on the way
            assert found.time_s >= least * (1 - 1e-9), found
