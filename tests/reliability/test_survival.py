"""One failure of each kind that a design can have, and how often enough cubes of a pod are up."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from tests.fabric.designs import design

from datahall.catalog import Catalog
from datahall.fabric.flows.failures import BlastRadius, blast_radius
from datahall.fabric.topology.grids.tpu_pod import crosses_cubes
from datahall.reliability.survival import cubes_up, survivals
from datahall.scenario.sections.failure import Failure

CATALOG = Catalog(user=False)


def parts(topology: str, chips: int, **said: object) -> dict[str, str]:
    """The parts that may fail, in order, and how traffic finds its way around each."""
    made = design(topology, chips, catalog=CATALOG, **said)
    return {one.part: one.reroute for one in survivals(made, CATALOG)}


def same(one: BlastRadius, other: BlastRadius) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__)


def test_every_tier_of_switches_a_nic_and_a_server_may_fail() -> None:
    found = parts("fat-tree", 16384)
    switches = ["leaf switch", "second-tier switch", "core switch"]
    assert list(found) == ["NIC", *switches, "server or rack of 8"]
    assert found["NIC"] == "nic-failover"
    assert {found[name] for name in list(found)[1:]} == {"infiniband-subnet-manager"}
    small = parts("clos", 256, tiers=2, domain=1)
    assert list(small) == ["NIC", *switches[:2]]


def test_one_domain_has_neither_network_nor_another_server() -> None:
    found = parts("hgx", 8)
    assert "NIC" not in found
    assert not any("server" in name for name in found)


def test_links_of_ethernet_are_noticed_by_ethernet() -> None:
    found = parts("clos", 256, tiers=2, chip="gaudi3")
    assert found["leaf switch"] == "ethernet-link-down"


def test_a_pod_loses_a_cable_between_cubes_or_a_whole_cube() -> None:
    made = design("tpu-pod", 512, catalog=CATALOG, chip="tpu-v4")
    cable, cube = survivals(made, CATALOG)
    assert cable.reroute == cube.reroute == "optical-circuit"
    assert cable.reroute_s == CATALOG.reroute("optical-circuit").reroute_s > 0
    assert same(cube.blast, blast_radius(made.fabric, Failure(cubes=(0,))))
    optical = crosses_cubes(made.fabric, made.fabric.shape.sides).nonzero()[0]
    assert same(cable.blast, blast_radius(made.fabric, Failure(links=(int(optical[0]),))))
    assert survivals(design("torus", 64, catalog=CATALOG, chip="tpu-v5p"), CATALOG) == ()


def test_the_blast_is_that_of_the_part_that_is_named() -> None:
    made = design("fat-tree", 1024, catalog=CATALOG)
    found = {one.part: one.blast for one in survivals(made, CATALOG)}
    assert same(found["NIC"], blast_radius(made.fabric, Failure(nics=(0,))))
    assert same(found["leaf switch"], blast_radius(made.fabric, Failure(switches=(0,))))
    assert same(found["server or rack of 8"], blast_radius(made.fabric, Failure(domains=(0,))))
    first_core = sum(made.counts.switches_by_tier[:-1])
    core = [blast for part, blast in found.items() if "switch" in part][-1]
    assert same(core, blast_radius(made.fabric, Failure(switches=(first_core,))))


def test_few_cubes_less_are_up_far_more_often() -> None:
    """A cube works when its 16 hosts do, each 99.9 % of the time; 60 of 64 is enough for a little less."""
    found = cubes_up(design("tpu-pod", 4096, catalog=CATALOG, chip="tpu-v4"))
    assert found is not None
    assert (found.num_cubes, found.num_fewer) == (64, 60)
    up = 0.999**16
    assert found.all_fraction == pytest.approx(up**64)
    tail = sum(comb(64, n) * up**n * (1 - up) ** (64 - n) for n in range(60, 65))
    assert found.fewer_fraction == pytest.approx(tail)


def test_only_pods_of_several_cubes_have_cubes_to_spare() -> None:
    assert cubes_up(design("tpu-pod", 64, catalog=CATALOG, chip="tpu-v4")) is None
    assert cubes_up(design("torus", 512, catalog=CATALOG, chip="tpu-v4")) is None
    two = cubes_up(design("tpu-pod", 128, catalog=CATALOG, chip="tpu-v4"))
    assert two is not None
    assert (two.num_cubes, two.num_fewer) == (2, 1)
