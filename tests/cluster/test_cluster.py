"""One machine from what somebody asks: as sold where no topology is named, bounded by the design where one is."""

from __future__ import annotations

from math import isnan

import msgspec
import numpy as np
import pytest

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from, cluster_of
from datahall.cluster.collective import time_collective
from datahall.cluster.groups import group_times, machine_times
from datahall.cluster.host import Host
from datahall.errors import InfeasibleError, ScenarioError
from datahall.fabric.collectives.algorithms.table import spoken, times
from datahall.fabric.collectives.choice import collective_times
from datahall.fabric.collectives.crossing import Sends, crossing_s, leaving_bytes_per_s
from datahall.fabric.collectives.system import system_of
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import Collective
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times

CATALOG = Catalog(user=False)


def test_without_a_topology_it_is_the_chip_as_it_is_sold() -> None:
    made = cluster_from(FabricDesign(chip="h200-sxm", chips=256), CATALOG)
    assert made.design is None
    assert made.system.cuts == ()
    assert made.system == system_of("h200-sxm", nic_bytes_per_s=50e9)
    assert made.system == cluster_of(CATALOG.chip("h200-sxm"), 256).system
    assert made.host.memory_bytes > 0
    wide = cluster_from(FabricDesign(chips=64, domain=16, nic_bytes_per_s=100e9), CATALOG)
    assert (wide.chip.name, wide.num_domain, wide.system.nic_bytes_per_s) == ("h100-sxm", 16, 100e9)


def test_a_chip_and_a_number_stand_where_the_design_names_none() -> None:
    made = cluster_from(FabricDesign(), CATALOG, chip="b200", num_chips=16)
    assert (made.chip.name, made.num_chips) == ("b200-sxm", 16)
    said = cluster_from(FabricDesign(chip="h100-sxm", chips=8), CATALOG, chip="b200", num_chips=16)
    assert (said.chip.name, said.num_chips) == ("h100-sxm", 8)
    on = cluster_from(FabricDesign(topology="fat-tree"), CATALOG, chip="b200", num_chips=16)
    assert (on.chip.name, on.num_chips) == ("b200-sxm", 16)
    with pytest.raises(ScenarioError, match="how many chips") as caught:
        cluster_from(FabricDesign(), CATALOG)
    assert caught.value.field == "chips"


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "all-to-all", "send-recv", "broadcast"])
@pytest.mark.parametrize("on", ["fat-tree", "clos", "rail-optimised", "rail-only"])
def test_full_bisection_is_as_fast_as_no_topology(kind: Collective, on: str) -> None:
    sizes = np.geomspace(1e3, 1e10, 8)
    free = cluster_from(FabricDesign(chips=512), CATALOG).system
    wired = cluster_from(FabricDesign(topology=on, chips=512), CATALOG).system
    assert machine_times(wired, kind, sizes, 512) == pytest.approx(machine_times(free, kind, sizes, 512))


def test_groups_take_what_the_library_takes() -> None:
    """As before the cuts: a group of ranks that are apart sees a smaller domain and nothing else."""
    system = system_of("h100-sxm", nic_bytes_per_s=50e9)
    size, ranks, stride = np.array([1e8, 1e9]), np.array([16.0, 64.0]), np.array([1.0, 4.0])
    found = group_times(system, "all-reduce", size, ranks, stride)
    first, _ = collective_times(system, "all-reduce", 1e8, 16)
    second, _ = collective_times(system.apart(4), "all-reduce", 1e9, 64)
    assert found.tolist() == [first[0], second[0]]
    assert system.apart(4).num_domain == 2
    assert group_times(system, "all-reduce", size, np.ones(2), stride).tolist() == [0.0, 0.0]


def test_a_tree_slows_what_leaves_a_leaf_and_nothing_inside_one() -> None:
    plain = cluster_from(FabricDesign(chips=1024), CATALOG).system
    tree = cluster_from(FabricDesign(topology="tree", chips=1024), CATALOG).system
    size = np.array([1e9])
    inside = [group_times(one, "all-reduce", size, np.array([8.0]), np.array([1.0])) for one in (plain, tree)]
    assert inside[0] == inside[1]
    data = [group_times(one, "all-reduce", size, np.array([128.0]), np.array([8.0])) for one in (plain, tree)]
    assert data[1] > 5 * data[0]


def test_domain_and_nic_hold_on_a_topology_too() -> None:
    usual = cluster_from(FabricDesign(topology="fat-tree", chips=256), CATALOG)
    other = cluster_from(
        FabricDesign(topology="fat-tree", chips=256, domain=16, nic_bytes_per_s=25e9), CATALOG
    )
    assert (usual.num_domain, other.num_domain) == (8, 16)
    assert other.system.nic_bytes_per_s == pytest.approx(25e9)
    slow, fast = (time_collective(one, "all-to-all", 1e9).choice.time_s for one in (other, usual))
    assert slow > 1.5 * fast


def test_failures_narrow_ports_and_cuts() -> None:
    asked = FabricDesign(topology="rail-optimised", chips=512)
    whole = cluster_from(asked, CATALOG)
    nic = cluster_from(asked, CATALOG, failures=(Failure(nics=(3,)),))
    assert nic.system.nic_bytes_per_s == pytest.approx(7 / 8 * whole.system.nic_bytes_per_s)
    assert nic.wires.nic is not None
    assert nic.wires.nic.value == pytest.approx(nic.system.nic_bytes_per_s)
    assert not false_nodes(nic.wires.nic)
    spine = cluster_from(
        asked, CATALOG, failures=(Failure(switches=(20,)), Failure(switches=(21,), left_fraction=0.5))
    )
    assert min(c.bytes_per_s for c in spine.system.cuts) < min(c.bytes_per_s for c in whole.system.cuts)
    assert spine.system.nic_bytes_per_s == whole.system.nic_bytes_per_s


@pytest.mark.parametrize(
    ("asked", "failure", "words"),
    [
        (FabricDesign(topology="fat-tree", chips=256), Failure(switches=(0,)), "cuts off 32 of 256"),
        (FabricDesign(topology="fat-tree", chips=256), Failure(chips=(7,)), "cuts off 1 of 256 chips: 7"),
        (FabricDesign(topology="tree", chips=256), Failure(switches=(5,)), "cuts off 256"),
        (FabricDesign(topology="fat-tree", chips=256), Failure(domains=(1,)), "cuts off 8"),
    ],
)
def test_what_is_cut_off_altogether_is_a_no(asked: FabricDesign, failure: Failure, words: str) -> None:
    with pytest.raises(InfeasibleError, match=words) as caught:
        cluster_from(asked, CATALOG, failures=(failure,))
    assert caught.value.field == "failure"


def test_a_failure_of_a_part_that_is_not_there_names_those_that_are() -> None:
    asked = FabricDesign(topology="fat-tree", chips=64)
    with pytest.raises(ScenarioError, match="no switch 99"):
        cluster_from(asked, CATALOG, failures=(Failure(switches=(99,)),))
    with pytest.raises(ScenarioError, match="names what is out"):
        cluster_from(asked, CATALOG, failures=(Failure(),))
    with pytest.raises(ScenarioError, match="how the chips are wired"):
        cluster_from(FabricDesign(chips=64), CATALOG, failures=(Failure(chips=(1,)),))


def test_a_built_fabric_is_a_machine() -> None:
    meta = cluster_from(FabricDesign(topology="meta-24k-roce"), CATALOG)
    assert (meta.num_chips, meta.chip.name) == (24_576, "h100-sxm")
    assert {cut.name for cut in meta.system.cuts} == {"leaf", "pod"}
    part = cluster_from(FabricDesign(topology="meta-24k-roce", chips=2048), CATALOG)
    assert part.num_chips == 2048
    assert time_collective(part, "all-to-all", 1e9).bound.kind == "NIC"  # it fits into one pod


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send-recv"])
@pytest.mark.parametrize("on", ["torus", "mesh"])
def test_on_a_torus_the_chain_is_the_formula(kind: Collective, on: str) -> None:
    made = cluster_from(FabricDesign(topology=on, sides=(4, 4, 8), chip="tpu-v5p"), CATALOG)
    for size in (1e4, 1e9):
        found = time_collective(made, kind, size)
        assert found.figure.value == pytest.approx(found.choice.time_s, rel=1e-9)
        assert not false_nodes(found.figure)
        assert found.choice.time_s == machine_times(made.system, kind, np.array([size]), 128)[0]


def test_a_collective_is_timed_with_what_stands_beside_it() -> None:
    made = cluster_from(FabricDesign(chip="h100-sxm", chips=64), CATALOG)
    found = time_collective(made, "all-reduce", 1e8)
    choice = found.choice
    (chosen,) = [way for way in found.ways if way.name == spoken((choice.algorithm, choice.protocol))]
    assert (chosen.time_s, chosen.num_steps) == (choice.time_s, found.num_steps)
    assert (chosen.algbw_bytes_per_s, chosen.busbw_bytes_per_s) == (
        choice.algbw_bytes_per_s,
        choice.busbw_bytes_per_s,
    )
    assert {curve.name for curve in found.curves[1:]} == {one.algorithm for one in choice.candidates}
    as_run, *alone = (np.array(curve.time_s) for curve in found.curves)
    assert (as_run >= np.min(alone, axis=0)).all()
    assert choice.latency_fraction + choice.moving_fraction == 1.0
    assert all(way.algbw_bytes_per_s is None for way in time_collective(made, "barrier", 0.0).ways)


@pytest.mark.parametrize(("chip", "cited"), [("tpu-v5p", True), ("mi300x", True), ("h100-sxm", False)])
def test_a_link_of_a_torus_is_cited_where_the_chip_is_sold_with_it(chip: str, cited: bool) -> None:
    """A TPU's own links have a source; what ports are shared out into was worked out."""
    link = cluster_from(FabricDesign(topology="torus", sides=(4, 4), chip=chip), CATALOG).wires.scale_up
    assert link.value > 0
    assert (link.origin, bool(link.sources)) == (("fact", True) if cited else ("derived", False))


def test_on_a_torus_the_same_array_is_timed_with_every_collective() -> None:
    made = cluster_from(FabricDesign(topology="torus", sides=(4, 4, 8), chip="tpu-v5p"), CATALOG)
    for kind, time_s in time_collective(made, "all-gather", 1e9).same_array_s.items():
        assert time_collective(made, kind, 1e9).choice.time_s == time_s


@pytest.mark.parametrize("chip", ["h100-sxm", "b200-sxm", "gb200", "mi300x", "l40s"])
def test_every_answer_is_its_closed_form_or_a_cut(chip: str) -> None:
    count = 144 if chip == "gb200" else 64
    made = cluster_from(FabricDesign(chip=chip, chips=count), CATALOG)
    kinds: tuple[Collective, ...] = (
        "all-reduce",
        "all-gather",
        "all-to-all",
        "send-recv",
        "barrier",
        "reduce",
    )
    for kind in kinds:
        found = time_collective(made, kind, 1e8)
        pair = found.choice.algorithm, found.choice.protocol
        assert found.choice.time_s == times(made.system, kind, np.array([1e8]), count)[pair][0]
        assert found.figure.value == pytest.approx(found.choice.time_s, rel=1e-9)
        assert found.figure.citations()


def test_cards_of_a_server_reach_each_other_over_pcie() -> None:
    for name in ("l40s", "rtx-4090"):  # with a server in the catalogue, and without
        card = CATALOG.chip(name)
        assert card.num_scale_up_domain == 1
        assert cluster_of(card, 8).num_domain == 8
        assert cluster_from(FabricDesign(chip=name, chips=8), CATALOG).num_domain == 8
        assert cluster_of(card, 8, num_domain=2).num_domain == 2
    near, apart = (cluster_of(CATALOG.chip("l40s"), 8, num_domain=size).system for size in (0, 1))
    faster = machine_times(near, "all-reduce", np.array([64e6]), 8)[0]
    assert faster < machine_times(apart, "all-reduce", np.array([64e6]), 8)[0]
    assert faster > 2 * 7 / 8 * 64e6 / CATALOG.chip("l40s").scale_up_bytes_per_s


def test_a_replica_on_a_narrow_fabric_sends_slower() -> None:
    tree = cluster_from(FabricDesign(topology="tree", chips=1024), CATALOG).system
    free, narrow = cluster_of(CATALOG.chip("h100-sxm"), 1024).system, tree
    assert leaving_bytes_per_s(free, 128) == 50e9
    # chips 882 to 944 share one uplink: 14 of them are of one replica and send to its 114 others, 49 of the next to
    # its 79 others; 120 of a replica are outside a chip's own server
    assert leaving_bytes_per_s(narrow, 128) == pytest.approx(50e9 * 120 / (14 * 114 + 49 * 79))
    assert leaving_bytes_per_s(narrow, 8) == 50e9  # inside one server


def test_training_feels_the_fabric_it_stands_on() -> None:
    job = Job(model=CATALOG.model("llama-3.1-70b"), seq=8192, global_batch=512)
    layout = Layout(tp=8, pp=4, dp=32, micro_batch=1, recompute="full")
    step_s = {}
    for on, ratio in (("", 1.0), ("fat-tree", 1.0), ("fat-tree", 4.0), ("tree", 1.0)):
        tapered = {} if ratio == 1 else {"oversubscription": (ratio,)}
        asked = FabricDesign(topology=on, chips=1024, **tapered)
        times = step_times(job, cluster_from(asked, CATALOG), Space.of(layout), framework("megatron-2022"))
        step_s[on, ratio] = float(times.step_s[0])
    assert step_s["", 1.0] == step_s["fat-tree", 1.0] < step_s["fat-tree", 4.0] < step_s["tree", 1.0]


def test_neighbours_by_number_are_neighbours_on_the_torus() -> None:
    made = cluster_from(FabricDesign(topology="torus", sides=(4, 4, 8), chip="tpu-v5p"), CATALOG)
    assert made.system.torus == (8, 4, 4)  # the last axis runs fastest
    mesh = cluster_from(FabricDesign(topology="mesh", sides=(4, 4, 8), chip="tpu-v5p"), CATALOG)
    ring, line = (time_collective(one, "all-gather", 1e9).choice.time_s for one in (made, mesh))
    assert line > 1.5 * ring


def test_no_algorithm_of_the_list_beats_the_cut() -> None:
    found = time_collective(
        cluster_from(FabricDesign(topology="tree", chips=1024), CATALOG), "all-reduce", 1e9
    )
    assert found.bound.cut is not None
    floor = crossing_s(Sends("all-reduce"), 1e9, 1024, found.bound.cut)
    assert all(one.time_s >= floor * (1 - 1e-12) for one in found.choice.candidates)


@pytest.mark.parametrize("topology", ["", "fat-tree", "rail-optimised"])
def test_a_version_of_the_library_and_a_level_of_constants_hold_with_and_without_a_topology(
    topology: str,
) -> None:
    asked = FabricDesign(topology=topology, chip="h100-sxm", chips=64)
    usual = cluster_from(asked, CATALOG).system
    older = cluster_from(asked, CATALOG, version=(2, 12)).system
    assert older.version == (2, 12) != usual.version
    assert msgspec.structs.replace(older, version=usual.version) == usual
    bare = cluster_from(asked, CATALOG, level="datasheet").system
    assert bare.level(64) == "datasheet only" != usual.level(64)
    sizes = np.geomspace(1e3, 1e9, 5)
    for other in (older, bare):
        assert machine_times(other, "all-reduce", sizes, 64) != pytest.approx(
            machine_times(usual, "all-reduce", sizes, 64), rel=1e-6
        )


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "all-to-all"])
@pytest.mark.parametrize("on", ["tree", "fat-tree"])
def test_no_run_is_expected_below_what_the_narrowest_place_lets_through(kind: Collective, on: str) -> None:
    made = cluster_from(FabricDesign(topology=on, chips=1024), CATALOG)
    found = time_collective(made, kind, 1e9)
    crossings = [part.value for part in found.figure.parts if part.name.startswith("out of a ")]
    assert found.band.low >= max(crossings)
    low, high = found.ratios
    assert found.band.high == pytest.approx(found.choice.time_s * high)
    assert found.band.low == pytest.approx(max(*crossings, found.choice.time_s * low))


def test_a_chip_reads_drives_at_the_slower_of_its_link_and_its_share_of_them() -> None:
    host = Host(link_bytes_per_s=50e9, memory_bytes=1e12, nvme_bytes=4e12, nvme_bytes_per_s=7e9)
    assert (host.tier_bytes_per_s("host"), host.tier_bytes_per_s("nvme")) == (50e9, 7e9)
    assert (host.tier_bytes("host"), host.tier_bytes("nvme")) == (1e12, 4e12)
    fast = msgspec.structs.replace(host, nvme_bytes_per_s=80e9)
    assert fast.tier_bytes_per_s("nvme") == 50e9
    unknown = Host(link_bytes_per_s=50e9)
    assert unknown.tier_bytes_per_s("host") == 50e9
    assert isnan(unknown.tier_bytes_per_s("nvme"))


def test_what_binds_is_the_wait_for_few_bytes_and_the_wires_for_many() -> None:
    torus = cluster_from(FabricDesign(topology="torus", sides=(4, 4, 8), chip="tpu-v5p"), CATALOG)
    servers = cluster_from(FabricDesign(chips=64), CATALOG)
    server = cluster_from(FabricDesign(chips=8), CATALOG)
    for cluster, wires in ((torus, "links"), (servers, "NIC"), (server, "scale-up")):
        assert time_collective(cluster, "all-gather", 1e3).bound.kind == "latency"
        assert time_collective(cluster, "all-gather", 1e10).bound.kind == wires


@pytest.mark.parametrize("topology", ["torus", "mesh", "tpu-pod"])
def test_one_chip_is_a_torus_that_sends_nothing(topology: str) -> None:
    alone = cluster_from(FabricDesign(topology=topology, chip="tpu-v5p", chips=1), Catalog(user=False))
    assert alone.num_chips == 1
    assert alone.system.torus_link is not None
    assert alone.system.torus_link.bytes_per_s == alone.wires.scale_up.value == 0.0
    with pytest.raises(ScenarioError, match="a collective of 1 moves nothing"):
        time_collective(alone, "all-reduce", 1e6)


@pytest.mark.parametrize(("ratios", "name"), [((1.0, 7.0), "pod"), ((7.0, 1.0), "leaf")])
def test_the_place_that_binds_is_the_narrowest_of_those_crossed(
    ratios: tuple[float, float], name: str
) -> None:
    asked = FabricDesign(topology="clos", tiers=3, chips=2048, oversubscription=ratios)
    found = time_collective(cluster_from(asked, Catalog(user=False)), "all-to-all", 1e9)
    assert found.bound.kind == "cut"
    assert found.bound.cut is not None
    assert found.bound.cut.name == name
