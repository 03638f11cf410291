"""Small things that must hold of fabrics and collectives: steps counted, domains alone, what is nearest and usual."""

from __future__ import annotations

import msgspec
import pytest
from tests.fabric.collectives.test_by_hand import MACHINE, changed

from datahall.catalog import Catalog
from datahall.errors import ScenarioError, spelled
from datahall.fabric.collectives.algorithms.table import num_steps
from datahall.fabric.collectives.system import system_of
from datahall.fabric.design.lay import LAYING
from datahall.fabric.design.parts import usual_nic_bytes_per_s, usual_port, usual_server
from datahall.fabric.design.topologies import BY_NAME, TABLE, topology_of_parts
from datahall.fabric.flows.crosscheck import level_named
from datahall.fabric.flows.early import check_levels
from datahall.fabric.topology.counts import counts
from datahall.fabric.topology.cuts import Cut
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Wire
from datahall.fabric.topology.scale_up import scale_up_domain, with_scale_up
from datahall.scenario.words import OTHER_NAMES, PLAIN_TOPOLOGIES, TAPERED, TOPOLOGIES

CATALOG = Catalog(user=False)
WIRE, FAST = Wire(50e9, 1e-6), Wire(450e9, 3e-7)


@pytest.mark.parametrize(
    ("collective", "algorithm", "ranks", "steps"),
    [
        ("all-reduce", "ring", 8, 14),
        ("all-gather", "ring", 8, 7),
        ("all-reduce", "tree", 4, 6),  # up a chain of three, and down
        ("all-reduce", "tree", 16, 2 * (3 + 2)),  # and two levels of four domains
        ("all-reduce", "NVLS tree", 16, 2 * (1 + 2)),
        ("all-reduce", "NVLS tree", 4, 2),
        ("all-gather", "PAT", 16, 4),
        ("all-reduce", "NVLS", 4, 2),
        ("all-to-all", "direct", 16, 15),
        ("send-recv", "direct", 16, 1),
    ],
)
def test_steps_that_follow_one_another_are_counted(
    collective: str, algorithm: str, ranks: int, steps: int
) -> None:
    """Domains of four chips."""
    assert num_steps(MACHINE, collective, algorithm, ranks) == steps


def test_a_lone_domain_is_two_links_across_and_several_are_the_network_across() -> None:
    assert counts(scale_up_domain(8, FAST)).diameter == 2
    assert counts(scale_up_domain(1, FAST)).diameter == 0
    assert counts(with_scale_up(fat_tree(8, WIRE), 8, FAST)).diameter == 2
    plain = fat_tree(16, WIRE)
    assert counts(with_scale_up(plain, 8, FAST)).diameter == counts(plain).diameter > 2


@pytest.mark.parametrize(
    ("radix", "near"), [(7, "radix=6 or radix=8"), (3, "radix=2 or radix=4"), (1, "radix=2"), (0, "radix=2")]
)
def test_an_odd_switch_names_the_nearest_even_ones(radix: int, near: str) -> None:
    with pytest.raises(ScenarioError, match="even number of ports") as caught:
        fat_tree(2, WIRE, radix=radix)
    assert caught.value.field == "radix"
    assert spelled(caught.value.hint) == f"nearest: {near}"


def test_a_chip_has_the_network_that_it_or_its_server_says_and_none_where_neither_does() -> None:
    chip = CATALOG.chip("h100-sxm")
    home = usual_server(CATALOG, chip)
    own = msgspec.structs.replace(chip, nic_bytes_per_s=7e9)
    silent = msgspec.structs.replace(chip, nic_bytes_per_s=0.0)
    alone = msgspec.structs.replace(home, num_nics=0, nic_link="")
    assert usual_nic_bytes_per_s(own, home) == 7e9
    assert usual_nic_bytes_per_s(silent, home) == home.network_bytes_per_s_per_chip > 0
    assert usual_nic_bytes_per_s(silent, alone) == 0.0
    assert usual_port(CATALOG, own, home).name == home.nic_link
    # without a server's port: the slowest InfiniBand port that carries it, or the fastest there is
    ports = {one.name: one.bytes_per_s for one in CATALOG.links() if one.name.startswith("infiniband")}
    for wanted in (1e9, 25e9, 26e9, 50e9, 1e15):
        port = usual_port(CATALOG, msgspec.structs.replace(chip, nic_bytes_per_s=wanted), alone)
        enough = [rate for rate in ports.values() if rate >= wanted]
        assert ports[port.name] == (min(enough) if enough else max(ports.values()))


def test_every_table_of_topologies_has_the_same_ones() -> None:
    assert set(LAYING) == set(BY_NAME)
    assert {one.name for one in TABLE if one.parts} == set(TOPOLOGIES)
    assert {one.name for one in TABLE if not one.parts} == set(PLAIN_TOPOLOGIES)
    assert {one.name for one in TABLE if {"oversubscription", "tiers"} & set(one.own)} == set()
    assert {one.name for one in TABLE if one.tapered} == set(TAPERED)
    assert set(OTHER_NAMES.values()) <= set(TOPOLOGIES)


def test_topologies_that_are_made_of_parts_are_known_and_the_others_refused() -> None:
    for one in TABLE:
        if one.parts:
            assert topology_of_parts(one.name) is BY_NAME[one.name]
    for name in ("scale-up", "nonsense"):
        with pytest.raises(ScenarioError, match="not made of parts") as caught:
            topology_of_parts(name)
        assert caught.value.field == "on"


def test_levels_are_compared_the_coarser_first() -> None:
    assert (
        check_levels("full", "closed-form") == check_levels("closed-form", "full") == ("closed-form", "full")
    )
    assert check_levels("symmetric", "closed-form") == ("closed-form", "symmetric")
    assert check_levels("full", "symmetric") == ("symmetric", "full")
    with pytest.raises(ScenarioError, match="is the detail") as caught:
        check_levels("full", "full")
    assert caught.value.field == "check_with"
    assert (level_named("full"), level_named("closed-form")) == ("full", "symmetric")


def test_faster_links_are_faster_everywhere_and_wait_as_long() -> None:
    cut = Cut(
        name="x", num_below=4, num_full=4, bytes_per_s=2.0, link_bytes_per_s=1.0, widest_bytes_per_s=3.0
    )
    machine = changed(cuts=(cut,))
    twice = machine.with_network(2.0)
    (wider,) = twice.cuts
    assert twice.nic_bytes_per_s == 2 * machine.nic_bytes_per_s
    assert (wider.bytes_per_s, wider.link_bytes_per_s, wider.widest_bytes_per_s) == (4.0, 2.0, 6.0)
    half = machine.with_scale_up(0.5)
    assert half.scale_up_bytes_per_s == machine.scale_up_bytes_per_s / 2
    for name in ("ll", "ll128", "simple"):
        before, after = getattr(machine.inside, name), getattr(half.inside, name)
        assert (after.bytes_per_s, after.hop_s, after.base_s) == (
            before.bytes_per_s / 2, before.hop_s, before.base_s,
        )  # fmt: skip
    assert half.inside.nvls_bytes_per_s == machine.inside.nvls_bytes_per_s / 2


def test_ranks_apart_have_a_part_of_the_domain_each() -> None:
    machine = system_of("h100-sxm", num_domain=8)
    assert [machine.apart(stride).num_domain for stride in (0, 1, 2, 3, 8, 9)] == [8, 8, 4, 2, 1, 1]
    cut = Cut(name="x", num_below=6, num_full=12, bytes_per_s=6.0, link_bytes_per_s=1.0)
    far = cut.apart(4)  # one of six has its sixth of the way out, and of the widest part three
    assert (far.num_below, far.num_full, far.bytes_per_s, far.stride) == (1, 3, 1.0, 4)
    assert (far.apart(2).stride, cut.apart(0).stride) == (8, 1)
