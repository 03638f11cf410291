"""What a failure takes and whom it touches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.topologies import FAST, SMALL, WIRE, fabrics

from datahall.errors import ScenarioError
from datahall.fabric.flows.asked import changes_of
from datahall.fabric.flows.failures import blast_radius, compared, failed, links_of, shares
from datahall.fabric.routing.paths import route
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.grids.hyperx import hyperx
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.rail import rail_only, rail_optimised
from datahall.fabric.topology.scale_up import with_scale_up
from datahall.scenario.sections.failure import Failure


def test_a_leaf_takes_its_chips() -> None:
    fabric = fat_tree(16, WIRE)
    blast = blast_radius(fabric, Failure(switches=(0,)))
    assert blast.cut_off.tolist() == [0, 1]


def test_an_aggregation_switch_halves_its_pod_and_stops_nobody() -> None:
    fabric = fat_tree(16, WIRE)
    blast = blast_radius(fabric, Failure(switches=(8,)))
    assert (blast.cut_off.size, blast.slowed.tolist()) == (0, [0, 1, 2, 3])
    assert blast.worst_left_fraction == pytest.approx(0.5)
    assert blast.bisection_left_fraction == pytest.approx(7 / 8)


def test_a_core_switch_slows_everybody_a_little() -> None:
    fabric = fat_tree(16, WIRE)
    blast = blast_radius(fabric, Failure(switches=(16,)))
    assert blast.slowed.size == 16
    assert blast.worst_left_fraction == pytest.approx(3 / 4)


def test_of_two_leaves_one_may_lose_a_cable_of_four() -> None:
    """As in a larger fabric: all that it sends to the other goes over the three that are left."""
    fabric = clos(8, WIRE, radix=8, tiers=2)
    assert (fabric.shape.children, fabric.shape.uplinks) == ((4, 2), (1, 4))
    blast = blast_radius(fabric, Failure(links=(fabric.shape.first_link(2),)))
    assert (blast.cut_off.size, blast.slowed.tolist()) == (0, [0, 1, 2, 3])
    assert blast.worst_left_fraction == pytest.approx(3 / 4)


def test_a_server_shares_the_ports_it_has_left() -> None:
    fabric = with_scale_up(fat_tree(128, WIRE), 8, FAST)
    blast = blast_radius(fabric, Failure(nics=(3,)))
    assert blast.cut_off.size == 0
    assert blast.slowed.tolist() == list(range(8))
    assert blast.worst_left_fraction == pytest.approx(7 / 8)


def test_rails_turn_a_dead_leaf_into_an_eighth_less() -> None:
    fabric = rail_optimised(1024, WIRE, FAST, radix=64)
    blast = blast_radius(fabric, Failure(switches=(0,)))
    assert blast.cut_off.size == 0
    assert blast.slowed.size == 256
    assert blast.worst_left_fraction == pytest.approx(7 / 8)


def test_a_cube_takes_its_64_chips() -> None:
    fabric = torus((8, 8, 8), WIRE)
    blast = blast_radius(fabric, Failure(cubes=(0,)))
    assert blast.cut_off.size == 64
    neighbours = failed(fabric, Failure(cubes=(0,)))
    assert route(neighbours, 4 * 64, 511).hops[0] >= 1


def test_a_cable_goes_both_ways_and_a_slow_part_stays() -> None:
    fabric = fat_tree(32, WIRE, radix=8)
    cable = int(fabric.num_links - 1)
    hit = np.flatnonzero(links_of(fabric, Failure(links=(cable,))))
    assert hit.size == 2
    assert fabric.link_source[hit[0]] == fabric.link_target[hit[1]]
    slow = failed(fabric, Failure(links=(cable,), left_fraction=0.25))
    assert slow.whole
    assert slow.link_bytes_per_s[hit].tolist() == [WIRE.bytes_per_s / 4] * 2


@pytest.mark.parametrize("name", SMALL)
def test_more_failures_never_leave_more(name: str) -> None:
    fabric = SMALL[name]
    some = failed(fabric, Failure(links=tuple(range(0, fabric.num_links, 7))))
    more = failed(some, Failure(links=tuple(range(0, fabric.num_links, 5))))
    assert (shares(some) <= shares(fabric) * (1 + 1e-12)).all()
    assert (shares(more) <= shares(some) * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (Failure(switches=(20,)), "no switch 20"),
        (Failure(chips=(-1,)), "no chip -1"),
        (Failure(links=(10**6,)), "no link 1000000"),
        (Failure(cubes=(0,)), "no cubes"),
        (Failure(left_fraction=0.5), "names what is out"),
        (Failure(replicas=(0,)), "names what is out"),
    ],
)
def test_parts_that_are_not_there_are_an_error(failure: Failure, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        failed(fat_tree(16, WIRE), failure)


def test_an_endpoint_gets_the_narrowest_of_the_levels_above_it() -> None:
    """Leaves of six chips with two cables up: a third of a port each; a dead cable halves its leaf."""
    fabric = clos(36, Wire(12.0), radix=8, tiers=2, oversubscription=(3,))
    assert (shares(fabric) == 4.0).all()
    trunk = int(np.flatnonzero(fabric.node_tier[fabric.link_target] == 2)[0])
    broken = failed(fabric, Failure(links=(trunk,)))
    leaf = fabric.link_source[trunk]
    below = fabric.link_source[: fabric.num_hosts][fabric.link_target[: fabric.num_hosts] == leaf]
    assert shares(broken)[below].tolist() == [2.0] * 6
    assert np.delete(shares(broken), below).tolist() == [4.0] * 30
    slow = failed(fabric, Failure(nics=(0,), left_fraction=0.25))
    assert shares(slow)[0] == 3.0
    found = blast_radius(fabric, Failure(links=(trunk,)))
    assert (found.cut_off.size, sorted(found.slowed.tolist())) == (0, sorted(below.tolist()))
    assert found.worst_left_fraction == pytest.approx(0.5)
    assert found.bisection_left_fraction == pytest.approx(11 / 12)
    tall = clos(72, Wire(12.0), radix=8, tiers=3, oversubscription=(1, 3))
    assert shares(tall)[0] == pytest.approx(12.0 * tall.shape.num_cables(3) / 72, rel=0.4)


def test_what_is_out_takes_its_links_both_ways_and_no_others() -> None:
    fabric = with_scale_up(fat_tree(16, WIRE), 4, FAST)

    def hit(**parts: tuple[int, ...]) -> set[tuple[int, int]]:
        links = np.flatnonzero(links_of(fabric, Failure(**parts)))
        return {(int(fabric.link_source[link]), int(fabric.link_target[link])) for link in links}

    def touching(*nodes: int, most: int = 10**9) -> set[tuple[int, int]]:
        ends = list(zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True))
        return {(a, b) for a, b in ends[:most] if a in nodes or b in nodes}

    assert hit(switches=(3,)) == touching(19)
    assert hit(chips=(5,)) == touching(5)
    assert hit(nics=(5,)) == touching(5, most=fabric.scale_up_start)
    assert hit(domains=(1,)) == touching(4, 5, 6, 7)
    assert hit(links=(0,)) == {(0, 16), (16, 0)}
    bundled = fat_tree(32, WIRE, radix=8)
    for cable in range(bundled.num_links):
        pair = np.flatnonzero(links_of(bundled, Failure(links=(cable,))))
        assert pair.size == 2
        back = int(pair[pair != cable][0])
        assert links_of(bundled, Failure(links=(back,))).nonzero()[0].tolist() == pair.tolist()
    cubes = torus((8, 4, 4), WIRE)
    gone = np.flatnonzero(
        np.bincount(cubes.link_source[links_of(cubes, Failure(cubes=(1,)))], minlength=128) == 6
    )
    assert gone.tolist() == list(range(64, 128))
    for bad in (Failure(cubes=(2,)), Failure(domains=(9,)), Failure(nics=(128,))):
        with pytest.raises(ScenarioError):
            failed(cubes, bad)
    with pytest.raises(ScenarioError, match="no cubes"):
        failed(torus((8, 6, 4), WIRE), Failure(cubes=(0,)))
    with pytest.raises(ScenarioError, match="no cubes"):
        failed(hyperx((4, 4, 4), WIRE, terminals=1), Failure(cubes=(0,)))  # a grid of switches, not of chips
    with pytest.raises(ScenarioError) as caught:
        failed(cubes, Failure(switches=(0,)))
    assert "no switch at all" in caught.value.hint


def test_idle_endpoints_are_no_job_and_the_dead_are_cut_off() -> None:
    fabric = with_scale_up(fat_tree(16, WIRE), 4, FAST)
    found = blast_radius(fabric, Failure(chips=(0,)))
    assert found.cut_off.tolist() == [0]
    assert found.slowed.tolist() == [1, 2, 3]
    assert found.share_left[:5] == pytest.approx([0.0, 0.75, 0.75, 0.75, 1.0])
    assert blast_radius(fabric, Failure(chips=tuple(range(16)))).worst_left_fraction == 0.0
    ring = torus((4, 4), WIRE)
    axis = blast_radius(ring, Failure(links=(0,)))
    assert 0.5 < axis.bisection_left_fraction <= 15 / 16
    assert sorted(axis.slowed.tolist()) == sorted([int(ring.link_source[0]), int(ring.link_target[0])])
    rails = rail_only(32, WIRE, FAST, radix=8, rails=4)
    assert blast_radius(rails, Failure(switches=(0,))).worst_left_fraction == pytest.approx(3 / 4)


@settings(deadline=None, max_examples=40)
@given(fabric=fabrics(), data=st.data())
def test_a_dead_switch_leaves_nobody_more_and_a_dead_chip_nothing(
    fabric: Fabric, data: st.DataObject
) -> None:
    chip = data.draw(st.integers(0, fabric.num_hosts - 1))
    found = blast_radius(fabric, Failure(chips=(chip,)))
    assert chip in found.cut_off or fabric.num_hosts == 1
    assert ((found.share_left >= 0) & (found.share_left <= 1 + 1e-9)).all()
    assert set(found.cut_off.tolist()).isdisjoint(found.slowed.tolist())
    assert 0 <= found.bisection_left_fraction <= 1
    assert (compared(fabric, fabric).share_left >= 1 - 1e-12).all() or fabric.num_hosts == 1


@settings(deadline=None, max_examples=60)
@given(
    spans=st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(1, 9), st.sampled_from([0.0, 0.5]))),
    at=st.integers(0, 25),
)
def test_a_link_is_as_wide_as_the_failures_that_hold_it_leave(
    spans: list[tuple[int, int | None, float]], at: int
) -> None:
    """Whatever order failures begin and end in: at no time does the repair of one undo another."""
    hit = np.array([True, False])
    failures = [
        (Failure(chips=(0,), start_s=float(start), duration_s=length, left_fraction=left), hit)
        for start, length, left in spans
    ]
    changes = changes_of(failures, np.array([8.0, 8.0]))
    wide = 8.0
    for time, link, rate in zip(changes.at_s, changes.link, changes.bytes_per_s, strict=True):
        assert link == 0
        wide = float(rate) if time <= at else wide
    held = [left for start, length, left in spans if start <= at < start + (length or np.inf)]
    assert wide == 8.0 * float(np.prod(held))
