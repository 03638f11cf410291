"""What somebody asks of a fabric: of parts, as it was built, or of links that are all alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.fabric.designs import asked, design

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.design.asked import (
    design_for,
    design_of,
    fabric_of,
    fitting,
    possible,
)
from datahall.fabric.design.bill import Bill, bill, estimates, most_for_the_money
from datahall.fabric.design.chips import is_built, num_chips
from datahall.fabric.design.early import check_collective, check_used
from datahall.fabric.design.idle import idle_inputs, idle_inputs_of_domain
from datahall.scenario.read import read_names
from datahall.scenario.sections.fabric import FabricDesign

CATALOG = Catalog(user=False)
BUILT = "meta-24k-roce"


def refused(wanted: FabricDesign, words: str) -> str:
    with pytest.raises(ScenarioError, match=words) as caught:
        fabric_of(wanted, CATALOG)
    return caught.value.field or ""


def test_the_number_of_chips_is_said_or_the_product_of_the_sides() -> None:
    made = design_of(FabricDesign(topology="torus", sides=(4, 4, 2), chip="tpu-v5p"), CATALOG)
    assert made.counts.num_hosts == 32
    assert (
        design_for(FabricDesign(topology="fat-tree"), CATALOG, num_chips=64, least_domains=1).counts.num_hosts
        == 64
    )
    assert (
        design_for(FabricDesign(topology="fat-tree"), CATALOG, num_chips=3, least_domains=1).counts.num_hosts
        == 8
    )  # one server
    said = design_for(
        FabricDesign(topology="fat-tree", chips=32), CATALOG, num_chips=64, chip="b200-sxm", least_domains=1
    )
    assert (said.counts.num_hosts, said.parts.chip.name) == (32, "b200-sxm")
    assert refused(FabricDesign(topology="fat-tree"), "how many chips") == "chips"


def test_a_fabric_that_was_built_is_as_it_was_built() -> None:
    assert is_built(BUILT, CATALOG)
    assert not is_built("fat-tree", CATALOG)
    made = design_of(FabricDesign(topology=BUILT), CATALOG)
    whole = made.counts.num_hosts
    assert design_of(FabricDesign(topology=BUILT, chips=whole), CATALOG).counts.num_hosts == whole
    again = design_for(
        FabricDesign(topology=BUILT), CATALOG, chip=made.parts.chip.name, num_chips=0, least_domains=1
    )
    assert again.counts == made.counts
    assert refused(FabricDesign(topology=BUILT, chips=whole + 1), "has 24,576 chips") == "chips"
    assert refused(FabricDesign(topology=BUILT, chip="tpu-v4"), "was built of") == "chip"
    assert refused(FabricDesign(topology=BUILT, radix=64), "has its own") == "radix"


@pytest.mark.parametrize("name", ["fat-tree", "torus", "scale-up"])
def test_a_topology_keeps_its_name_whatever_was_built_under_it(name: str) -> None:
    """A catalogue of one's own may call a fabric so: the word still means the topology."""
    shelf: Any = SimpleNamespace(
        known_fabrics=lambda: (SimpleNamespace(name=name), SimpleNamespace(name="ours"))
    )
    assert is_built("ours", shelf)
    assert not is_built(name, shelf)
    assert not is_built("theirs", shelf)


def test_chips_are_as_many_as_somebody_says_or_as_are_usual() -> None:
    tree = FabricDesign(topology="fat-tree")
    assert num_chips(tree, CATALOG, 64) == 64
    assert num_chips(msgspec.structs.replace(tree, chips=32), CATALOG, 64) == 32
    assert num_chips(FabricDesign(topology="torus", sides=(4, 4, 2)), CATALOG) == 32
    assert num_chips(FabricDesign(topology=BUILT), CATALOG) == CATALOG.known_fabric(BUILT).num_chips
    for asking, words in ((tree, "shall fat-tree join"), (FabricDesign(), "how many chips are there")):
        with pytest.raises(ScenarioError, match=words) as caught:
            num_chips(asking, CATALOG)
        assert caught.value.field == "chips"


@pytest.mark.parametrize(
    "more", [{"chips": 8, "size": "1 MB"}, {"experts": 64, "tokens": 4096, "topk": 2, "hidden": 512}]
)
def test_a_collective_is_among_chips_that_are_said_or_as_many_as_there_are_experts(
    more: dict[str, Any],
) -> None:
    def check(**said: Any) -> None:
        check_collective(
            read_names(form_of("show collective"), {"collective": "all-to-all", **said}, CATALOG)
        )

    check(on="fat-tree", **more)
    with pytest.raises(ScenarioError, match="how many chips"):
        check(on="fat-tree", size="1 MB")


def test_an_input_without_use_is_refused_alone_and_said_beside_others() -> None:
    wanted = FabricDesign(chips=64, sides=(8, 8), chip="tpu-v5p")
    ring, tree, clos = (idle_inputs(wanted, name, CATALOG) for name in ("torus", "fat-tree", "clos"))
    assert (ring, tree) == ({}, {"sides": "a fat-tree has no sides to choose"})
    check_used([tree, ring])
    with pytest.raises(ScenarioError, match="no sides to choose") as caught:
        check_used([tree, clos])
    assert caught.value.field == "sides"
    sized = FabricDesign(chips=64)
    assert idle_inputs(sized, "fat-tree", CATALOG, beside=True) == {}
    assert idle_inputs(sized, BUILT, CATALOG, beside=True) == {"chips": f"{BUILT} was built, and has its own"}
    assert idle_inputs(sized, BUILT, CATALOG) == {}


def test_one_of_several_leaves_out_what_it_has_no_use_for() -> None:
    wanted = FabricDesign(sides=(4, 4), topologies=("torus", "fat-tree"))
    tree = fitting(wanted, "fat-tree", CATALOG)
    assert (tree.topology, tree.topologies, tree.sides, tree.chips) == ("fat-tree", (), (), 16)
    ring = fitting(wanted, "torus", CATALOG)
    assert (ring.sides, ring.chips) == ((4, 4), 16)
    assert fitting(wanted, BUILT, CATALOG) == FabricDesign(topology=BUILT)
    assert fitting(FabricDesign(), "fat-tree", CATALOG).chips is None


def test_those_that_can_be_built_are_possible() -> None:
    names = ("fat-tree", "tpu-pod", "clos")
    assert possible(FabricDesign(chips=64), names, CATALOG) == list(names)
    assert possible(FabricDesign(chips=72), names, CATALOG) == ["fat-tree", "clos"]  # no pod has 72


def test_a_network_that_is_not_there_has_nothing_to_choose() -> None:
    alone = idle_inputs_of_domain(design("hgx", 8, catalog=CATALOG))
    assert set(alone.values()) == {"all 8 chips are in one scale-up domain"}
    assert {"oversubscription", "radix", "tiers"} <= set(alone)
    assert not {"server", "domain"} & set(alone)
    assert idle_inputs_of_domain(design("hgx", 16, catalog=CATALOG)) == {}
    assert idle_inputs_of_domain(design("torus", 64, catalog=CATALOG, chip="tpu-v5p")) == {}


def test_links_that_are_all_alike_need_a_plain_topology_and_a_number() -> None:
    fabric = fabric_of(asked(CATALOG, topology="fat-tree", chips=16, bandwidth_bytes_per_s=7e9), CATALOG)
    assert set(fabric.link_bytes_per_s.tolist()) == {7e9}
    slow = FabricDesign(topology="fat-tree", chips=16, bandwidth_bytes_per_s=7e9, latency_s=3e-6)
    assert set(fabric_of(slow, CATALOG).link_latency_s.tolist()) == {3e-6}
    assert refused(FabricDesign(topology="fat-tree", bandwidth_bytes_per_s=7e9), "how many") == "chips"
    pod = FabricDesign(topology="tpu-pod", chips=64, bandwidth_bytes_per_s=7e9)
    assert refused(pod, "parts of the catalogue") == "bandwidth"
    ring = FabricDesign(topology="fat-tree", chips=16, bandwidth_bytes_per_s=7e9, sides=(4, 4))
    assert refused(ring, "no sides to choose") == "sides"


def test_the_place_that_binds_an_all_to_all_is_narrower_than_the_ports() -> None:
    """Leaves at 3:1 let out a third of what their chips could send; all but a leaf's own go out."""
    full = design("clos", 512, catalog=CATALOG, tiers=2)
    assert full.narrowest is None
    assert full.all_to_all_bytes_per_s == full.injection_bytes_per_s
    tapered = design("clos", 512, catalog=CATALOG, tiers=2, oversubscription="3:1")
    assert tapered.narrowest is not None
    leaf = tapered.narrowest.cut
    assert leaf.name == "leaf"
    outside = (512 - leaf.num_below) / 512
    assert tapered.all_to_all_bytes_per_s == pytest.approx(
        leaf.bytes_per_s / leaf.num_below / outside, rel=1e-12
    )
    assert tapered.all_to_all_bytes_per_s < tapered.injection_bytes_per_s


def billed(topology: str, chips: int, **said: object) -> tuple[object, Bill]:
    made = design(topology, chips, catalog=CATALOG, **said)
    return made, bill(made, CATALOG)


def test_the_most_for_the_money_is_bandwidth_over_price() -> None:
    found = [
        billed("clos", 512, tiers=2),
        billed("clos", 512, tiers=2, oversubscription="7:1"),
        billed("hgx", 8),
    ]
    designs, bills = zip(*found, strict=True)
    assert bills[2].price.value == 0.0  # a server without a network costs none, and is no bargain
    worth = [made.all_to_all_bytes_per_s / cost.price.value for made, cost in found[:2]]
    assert most_for_the_money(designs, bills) == worth.index(max(worth))
    assert most_for_the_money(designs[::-1], bills[::-1]) == 2 - worth.index(max(worth))


def test_a_chips_part_of_a_bill_is_the_bill_over_its_chips() -> None:
    _, cost = billed("fat-tree", 1024)
    each = [cost.item_per_chip_usd(item) for item in cost.items]
    assert sum(each) == pytest.approx(cost.price_per_chip_usd)
    assert cost.price_per_chip_usd * 1024 == pytest.approx(cost.price.value)
    assert {source.kind for source in estimates(cost)} <= {"estimate"}


def test_a_domain_that_does_not_divide_the_chips_names_those_that_do() -> None:
    with pytest.raises(ScenarioError) as caught:
        design("fat-tree", 48, catalog=CATALOG, domain=10)
    assert caught.value.field == "domain"
    assert "8" in str(caught.value.hint)
    assert "12" in str(caught.value.hint)
    with pytest.raises(ScenarioError) as caught:
        design("fat-tree", 12, catalog=CATALOG)
    assert caught.value.field != "domain"


def test_a_full_mesh_has_as_many_chips_as_each_has_links_for() -> None:
    with pytest.raises(ScenarioError, match="has links to 7 others") as caught:
        design("full-mesh", 9, catalog=CATALOG, chip="mi300x")
    assert caught.value.field == "chips"
    assert design("full-mesh", 8, catalog=CATALOG, chip="mi300x").counts.num_hosts == 8
    with pytest.raises(ScenarioError, match="no pods of cubes"):
        design("tpu-pod", 64, catalog=CATALOG, chip="mi300x")
