"""Inputs of a collective, and of the network under a layout, that change nothing of it are known to."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.cluster.collective import refuse_on_torus, time_collective
from datahall.cluster.idle import idle_inputs, idle_inputs_of_groups
from datahall.cluster.joined import Joined
from datahall.cluster.wiring import Wiring
from datahall.errors import ScenarioError
from datahall.fabric.collectives.system import DEFAULT_VERSION
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure

CATALOG = Catalog(user=False)
OLD, NEW = (2, 10), (DEFAULT_VERSION[0], DEFAULT_VERSION[1] + 5)


def idle(
    design: FabricDesign,
    kind: str = "all-reduce",
    *,
    size: float = 1e9,
    failures: tuple[Failure, ...] = (),
    version: tuple[int, int] = DEFAULT_VERSION,
    only: tuple[str, ...] = (),
) -> dict[str, str]:
    cluster = cluster_from(design, CATALOG, failures=failures, version=version)
    found = time_collective(cluster, kind, size, only=only)  # type: ignore[arg-type]
    return idle_inputs(cluster, found, Wiring(design, failures), CATALOG, only=only)


def test_inside_one_domain_nothing_of_the_network_acts() -> None:
    found = idle(FabricDesign(chips=8, nic_bytes_per_s=25e9, topology="fat-tree"))
    assert {"nic", "on"} <= set(found)
    assert "one scale-up domain" in found["nic"]
    across = idle(FabricDesign(chips=16, nic_bytes_per_s=25e9, topology="fat-tree"))
    assert "nic" not in across


@pytest.mark.parametrize("on", ["rail-optimised", "fat-tree", "hgx"])
def test_a_fabric_like_the_machine_as_sold_does_nothing_and_a_narrower_one_does(on: str) -> None:
    same = "the machine has the same without it"
    assert idle(FabricDesign(topology=on, chips=64))["on"] == same
    assert "on" not in idle(FabricDesign(topology="tree", chips=512), "all-to-all")
    assert "on" in idle(FabricDesign(topology="nvl72", chip="gb200", chips=144))
    assert "on" not in idle(FabricDesign(topology="nvl72", chips=144))  # it brings its chip
    assert "on" not in idle(FabricDesign(topology="nvl72", chips=64))


def test_what_a_machine_has_anyway_is_not_what_something_else_hides() -> None:
    usual = idle(FabricDesign(chips=64, nic_bytes_per_s=50e9))
    assert usual["nic"] == "the machine has the same without it"
    assert "nic" not in idle(FabricDesign(chips=64, nic_bytes_per_s=25e9))
    assert "domain" not in idle(FabricDesign(chips=64, domain=4))
    assert idle(FabricDesign(chips=64, domain=8))["domain"] == "the machine has the same without it"
    # a ring leaves a leaf once; pieces for everybody leave it all the time
    steep = FabricDesign(topology="clos", tiers=2, chips=256, oversubscription=(2.0,))
    assert idle(steep, "all-gather")["oversubscription"] == "something else binds"
    assert "oversubscription" not in idle(steep, "all-to-all")


def test_a_failure_acts_where_it_narrows_what_is_crossed() -> None:
    tree = FabricDesign(topology="fat-tree", chips=1024)
    half = Failure(nics=(0,), left_fraction=0.5)
    assert "failure" not in idle(tree, failures=(half,))
    one = FabricDesign(topology="fat-tree", chips=8)
    assert "failure" in idle(one, failures=(half,))


def test_a_version_acts_where_its_algorithms_are_others() -> None:
    usual = idle(FabricDesign(chips=64))
    assert "is taken without it" in usual["version"]
    newer = idle(FabricDesign(chips=64), version=NEW)
    assert "newest" in newer["version"]
    assert "version" not in idle(FabricDesign(chips=64), version=OLD)  # has no sums in the switch
    assert "same algorithms" in idle(FabricDesign(chips=64), "all-to-all", version=OLD)["version"]


def test_a_barrier_has_no_size_and_a_torus_no_version() -> None:
    assert "size" in idle(FabricDesign(chips=64), "barrier")
    assert "size" not in idle(FabricDesign(chips=64))
    ring = FabricDesign(topology="torus", sides=(4, 4), chip="tpu-v6e")
    assert "version" not in idle(ring)
    cluster = cluster_from(ring, CATALOG)
    with pytest.raises(ScenarioError, match="does not run on a torus") as caught:
        refuse_on_torus(cluster, ("algorithm",))
    assert caught.value.field == "algorithm"
    refuse_on_torus(cluster, ())
    refuse_on_torus(cluster_from(FabricDesign(chips=64), CATALOG), ("algorithm",))


def test_an_algorithm_that_was_named_is_compared_with_itself() -> None:
    """A ring passes the NICs, so that a slower one is felt, whatever else could have run."""
    assert "nic" not in idle(FabricDesign(chips=64, nic_bytes_per_s=25e9), only=("ring",))


def joined(
    span: int, *, ports: bool = False, design: FabricDesign | None = None, searched: bool = False
) -> set[str]:
    asked = design or FabricDesign(chips=64)
    cluster = cluster_from(asked, CATALOG, chip="h100-sxm")
    group = Joined(cluster.chip, cluster.system, span, ports)
    return set(idle_inputs_of_groups(Wiring(asked), [group], CATALOG, searched=searched))


def idle_under(wiring: Wiring, *groups: Joined) -> set[str]:
    return set(idle_inputs_of_groups(wiring, groups, CATALOG))


EVERYTHING = {"on", "domain", "nic", "oversubscription", "failure"}


def test_chips_that_exchange_nothing_feel_nothing_of_what_joins_them() -> None:
    assert joined(1) == EVERYTHING
    assert joined(1, ports=True) != EVERYTHING
    nobody = Joined(CATALOG.chip("h100-sxm"), None, 1)
    assert idle_under(Wiring(), nobody) == {"domain", "nic"}
    assert idle_under(Wiring(), nobody._replace(ports=True)) == {"domain"}


def test_a_group_inside_a_domain_feels_no_network_unless_its_ports_are_used() -> None:
    assert joined(8) == EVERYTHING
    assert joined(8, ports=True) == {"on", "domain", "oversubscription"}
    assert "nic" not in joined(9)
    assert "domain" not in joined(9)


def test_a_smaller_domain_is_felt_by_who_would_have_searched_in_it() -> None:
    small = FabricDesign(chips=64, domain=4)
    assert "domain" in joined(4, design=small)
    assert "domain" not in joined(4, design=small, searched=True)
    assert "domain" in joined(4, searched=True)
    assert "domain" not in joined(8, design=small)


def test_cuts_are_felt_by_who_crosses_them() -> None:
    tapered = FabricDesign(topology="clos", tiers=2, chips=256, oversubscription=(3.0,))
    assert "oversubscription" in joined(8, design=tapered)
    assert "oversubscription" not in joined(256, design=tapered)
    assert "failure" in joined(256, design=tapered)
    ring = FabricDesign(topology="torus", sides=(4, 4, 4), chip="tpu-v5p")
    assert joined(8, design=ring) == set()


def test_a_failure_is_felt_by_who_crosses_what_it_narrowed() -> None:
    design = FabricDesign(topology="fat-tree", chips=64)
    cluster = cluster_from(design, CATALOG, failures=(Failure(nics=(0,), left_fraction=0.5),))
    feels = Joined(cluster.chip, cluster.system, 64)
    assert "failure" not in idle_under(Wiring(design), feels)
    assert "failure" in idle_under(Wiring(design), feels._replace(span=8))
    assert "oversubscription" in idle_under(Wiring(design), feels)  # ports are no tier


def test_a_topology_that_brings_its_own_chip_is_felt() -> None:
    rack = FabricDesign(topology="nvl72", chips=72)
    cluster = cluster_from(rack, CATALOG)
    brought = Joined(cluster.chip, cluster.system, 8)
    assert "on" not in idle_under(Wiring(rack), brought)
    assert "on" in idle_under(Wiring(rack, chip_said=True), brought)
    named = msgspec.structs.replace(rack, topology="hgx", chips=64)
    usual = cluster_from(named, CATALOG)
    assert "on" in idle_under(Wiring(named), Joined(usual.chip, usual.system, 8))


def test_what_one_of_several_groups_crosses_does_something_and_the_reason_is_that_of_all() -> None:
    cluster = cluster_from(FabricDesign(topology="fat-tree", chips=64), CATALOG, chip="h100-sxm")
    alone, inside, across = (Joined(cluster.chip, cluster.system, span) for span in (1, 8, 64))

    def reasons(*groups: Joined) -> dict[str, str]:
        return idle_inputs_of_groups(Wiring(), groups, CATALOG)

    assert set(reasons(inside, across)) == set(reasons(across)) < set(reasons(inside)) == EVERYTHING
    assert {*reasons(alone).values()} == {"no chip exchanges anything with another"}
    assert {*reasons(alone, inside).values()} == {"no group of chips leaves its scale-up domain"}
    assert reasons(inside, across)["oversubscription"].startswith("no group of chips crosses a place")
