"""However groups of ranks lie across leaves, pods and groups: no collective beats the bytes over what it crosses."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.fabric.test_cuts import FABRICS

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.cluster.collective import time_collective
from datahall.cluster.groups import group_times, machine_times
from datahall.fabric.collectives.crossing import Sends, least_s, leaving_bytes_per_s, straddling_share
from datahall.fabric.collectives.system import system_of
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.cuts import Cut, cuts
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.words import Collective

CATALOG = Catalog(user=False)
KINDS: tuple[Collective, ...] = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
SIZE = 1e9


def leaves_of(fabric: Fabric) -> np.ndarray:
    """The switch that each endpoint hangs on, from the wires alone."""
    part = np.empty(fabric.num_hosts, np.int64)
    access = (fabric.link_source < fabric.num_hosts) & (fabric.link_target >= fabric.num_hosts)
    part[fabric.link_source[access]] = fabric.link_target[access]
    return part


def needed(kind: Collective, ranks: int, inside: int) -> tuple[float, float]:
    """Bytes out of and into a part that holds so many ranks, over the array: what is missing on the other side."""
    outside = ranks - inside
    if not inside or not outside:
        return 0.0, 0.0
    return {
        "all-reduce": (1.0, 1.0),  # the others' result hangs on these ranks, and theirs on the others
        "all-gather": (inside / ranks, outside / ranks),
        "reduce-scatter": (outside / ranks, inside / ranks),
        "all-to-all": (inside * outside / ranks, inside * outside / ranks),
    }[kind]


def counted_s(fabric: Fabric, kind: Collective, ranks: int, stride: int) -> float:
    """Every group laid out, every leaf looked at: the bytes that have to leave or enter over its cables."""
    part = leaves_of(fabric)
    block, slowest = ranks * stride, 0.0
    for leaf in np.unique(part):
        out = into = 0.0
        for start in range(0, fabric.num_hosts - block + 1, block):
            for first in range(start, start + stride):
                inside = int((part[first : start + block : stride] == leaf).sum())
                more = needed(kind, ranks, inside)
                out, into = out + more[0], into + more[1]
        hosts = np.flatnonzero(part == leaf)
        mine = np.isin(fabric.link_source, [*hosts, leaf]), np.isin(fabric.link_target, [*hosts, leaf])
        widths = [float(fabric.link_bytes_per_s[here & ~there].sum()) for here, there in (mine, mine[::-1])]
        slowest = max(slowest, out / widths[0], into / widths[1])
    return SIZE * slowest


SWITCHED = sorted(set(FABRICS) - {"torus", "mesh", "full mesh"})


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(SWITCHED), kind=st.sampled_from(KINDS), ranks=st.integers(2, 24),
    stride=st.integers(1, 12),
)  # fmt: skip
def test_no_group_beats_the_bytes_out_of_its_leaves(
    name: str, kind: Collective, ranks: int, stride: int
) -> None:
    fabric = FABRICS[name]()
    assume(ranks * stride <= fabric.num_hosts)
    fast = system_of("h100-sxm", num_domain=1, nic_bytes_per_s=50e12)  # so that the fabric alone binds
    machine = msgspec.structs.replace(fast, cuts=cuts(fabric))
    time = float(machine_times(machine, kind, np.array([SIZE]), ranks, stride)[0])
    assert time >= counted_s(fabric, kind, ranks, stride) * (1 - 1e-9)


def test_a_group_that_fits_a_leaf_but_lies_across_two_leaves_it() -> None:
    """Leaves of six, groups of four: the second group has two ranks in each of the first two leaves."""
    fabric = clos(24, Wire(50e9), radix=8, tiers=2, oversubscription=(3.0,))
    (leaf,) = cuts(fabric)
    assert (leaf.num_below, leaf.sizes) == (6, ((6, 4),))
    assert straddling_share(Sends("all-reduce"), 3, leaf) == 0.0
    assert straddling_share(Sends("all-reduce"), 4, leaf) == 1.0
    assert straddling_share(Sends("all-gather"), 4, leaf) == 0.5
    assert straddling_share(Sends("all-to-all"), 4, leaf) == 1.0
    assert straddling_share(Sends("barrier"), 4, leaf) == 0.0
    two = leaf.apart(2)  # pairs of groups of four, eight chips a block: the first leaf holds three of each
    assert straddling_share(Sends("all-reduce"), 4, two) == 4.0  # the second leaf has ends of both blocks
    assert straddling_share(Sends("broadcast"), 4, two) == 2.0  # one comes in, the other goes out
    assert two.widest_bytes_per_s == leaf.bytes_per_s
    assert leaf.within(12).sizes == ((6, 2),)
    assert leaf.within(15).sizes == ((6, 2), (3, 1))
    assert leaf.within(100).sizes == leaf.sizes


def test_experts_that_lie_across_leaves_get_what_the_way_out_leaves_them() -> None:
    leaf = Cut(
        name="leaf",
        num_below=6,
        num_full=6,
        bytes_per_s=3e9,
        link_bytes_per_s=1e9,
        sizes=((6, 4),),
        widest_bytes_per_s=3e9,
    )
    machine = msgspec.structs.replace(system_of("h100-sxm", num_domain=1, nic_bytes_per_s=50e9), cuts=(leaf,))
    # of four ranks two send two thirds of what they have over the 3 GB/s of their leaf
    assert leaving_bytes_per_s(machine, 4) == pytest.approx(3e9 / (2 * 2 / 3))
    assert leaving_bytes_per_s(machine, 3) == 50e9


@pytest.mark.parametrize(
    "design",
    [
        FabricDesign(topology="torus", sides=(4, 4, 8), chip="tpu-v5p"),
        FabricDesign(topology="torus", sides=(8, 8), chip="tpu-v6e"),
        FabricDesign(topology="mesh", sides=(4, 4, 8), chip="tpu-v5p"),
        FabricDesign(topology="tpu-pod", chips=512, chip="tpu-v4"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_no_group_on_a_torus_beats_the_bytes_over_a_chips_links(
    design: FabricDesign, kind: Collective
) -> None:
    made = cluster_from(design, CATALOG)
    assert made.design is not None
    fabric = made.design.fabric
    links = np.bincount(fabric.link_source, fabric.link_bytes_per_s).max()
    for ranks, stride in ((2, 1), (4, 1), (8, 1), (4, 8), (16, 2), (64, 1), (made.num_chips, 1)):
        if ranks * stride > made.num_chips:
            continue
        time = group_times(
            made.system, kind, np.array([SIZE]), np.array([float(ranks)]), np.array([float(stride)])
        )
        into = (ranks - 1) / ranks
        assert time[0] >= SIZE * (2 * into if kind == "all-reduce" else into) / links * (1 - 1e-9)


def test_a_job_on_part_of_a_fabric_crosses_no_boundary_that_it_does_not_reach() -> None:
    part = cluster_from(FabricDesign(topology="meta-24k-roce", chips=2048), CATALOG)
    pod = next(cut for cut in part.system.cuts if cut.name == "pod")
    assert sum(size * count for size, count in pod.sizes) == 2048
    assert straddling_share(Sends("all-reduce"), 256, pod.apart(8)) == 0.0


def test_a_network_twice_as_fast_halves_what_groups_across_parts_wait() -> None:
    """Groups that begin in one leaf and end in the next are bound by the widest way out, which grows with the rest."""
    fabric = clos(24, Wire(50e9), radix=8, tiers=2, oversubscription=(3.0,))
    system = system_of("h100-sxm", num_domain=1, nic_bytes_per_s=50e9, catalog=CATALOG)
    narrow = msgspec.structs.replace(system, cuts=cuts(fabric))
    sizes = np.array([SIZE])
    straddling = [
        ranks for ranks in range(2, 7) if straddling_share(Sends("all-reduce"), ranks, narrow.cuts[0])
    ]
    assert straddling
    for ranks in straddling:
        fast = least_s(narrow.with_network(2.0), "all-reduce", sizes, ranks)
        assert fast == pytest.approx(least_s(narrow, "all-reduce", sizes, ranks) / 2.0)


def test_a_group_across_two_whole_parts_is_not_said_to_lack_what_another_part_lost() -> None:
    """Half of one leaf's ways out is gone; the group lies across two others, which have all of theirs."""
    leaf = Cut(
        name="leaf", num_below=12, num_full=24, bytes_per_s=100e9, link_bytes_per_s=50e9, left_fraction=0.5,
        sizes=((12, 4),), widest_bytes_per_s=200e9,
    )  # fmt: skip
    plain = cluster_from(FabricDesign(chips=16), CATALOG)
    cluster = msgspec.structs.replace(plain, system=msgspec.structs.replace(plain.system, cuts=(leaf,)))
    way = time_collective(cluster, "all-to-all", 1e12).figure.at("out of a leaf", "way out of a leaf")
    assert way.value == 200e9
    assert way.at("links out of it").value == 4
    assert {part.name for part in way.parts} == {"links out of it", "network of a chip, one way"}
