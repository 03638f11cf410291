"""What an outage takes and whom it touches."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fabric.topologies import FAST, SMALL, WIRE

from datahall.errors import ScenarioError
from datahall.fabric import route
from datahall.fabric.flows.failures import Outage, blast_radius, failed, links_of, shares
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.rail import rail_optimised
from datahall.fabric.topology.scale_up import with_scale_up
from datahall.fabric.topology.torus import torus


def test_a_leaf_takes_its_chips_and_stops_their_jobs() -> None:
    fabric = fat_tree(16, WIRE)
    blast = blast_radius(fabric, Outage(switches=(0,)), np.arange(16) // 4)
    assert blast.cut_off.tolist() == [0, 1]
    assert blast.stopped_jobs == (0,)
    assert blast.jobs == (0,)  # the other leaf of the pod keeps all its way out


def test_an_aggregation_switch_halves_its_pod_and_stops_nobody() -> None:
    fabric = fat_tree(16, WIRE)
    blast = blast_radius(fabric, Outage(switches=(8,)), np.arange(16) // 8)
    assert (blast.cut_off.size, blast.slowed.tolist()) == (0, [0, 1, 2, 3])
    assert blast.worst_left_fraction == pytest.approx(0.5)
    assert (blast.jobs, blast.stopped_jobs) == ((0,), ())
    assert blast.bisection_left_fraction == pytest.approx(7 / 8)


def test_a_core_switch_slows_everybody_a_little() -> None:
    fabric = fat_tree(16, WIRE)
    blast = blast_radius(fabric, Outage(switches=(16,)))
    assert blast.slowed.size == 16
    assert blast.worst_left_fraction == pytest.approx(3 / 4)


def test_a_server_shares_the_ports_it_has_left() -> None:
    fabric = with_scale_up(fat_tree(128, WIRE), 8, FAST)
    blast = blast_radius(fabric, Outage(nics=(3,)))
    assert blast.cut_off.size == 0
    assert blast.slowed.tolist() == list(range(8))
    assert blast.worst_left_fraction == pytest.approx(7 / 8)


def test_rails_turn_a_dead_leaf_into_an_eighth_less() -> None:
    fabric = rail_optimised(1024, WIRE, FAST, radix=64)
    blast = blast_radius(fabric, Outage(switches=(0,)))
    assert blast.cut_off.size == 0
    assert blast.slowed.size == 256
    assert blast.worst_left_fraction == pytest.approx(7 / 8)


def test_a_cube_takes_its_64_chips() -> None:
    fabric = torus((8, 8, 8), WIRE)
    blast = blast_radius(fabric, Outage(cubes=(0,)))
    assert blast.cut_off.size == 64
    neighbours = failed(fabric, Outage(cubes=(0,)))
    assert route(neighbours, 4 * 64, 511).hops[0] >= 1


def test_a_cable_goes_both_ways_and_a_slow_part_stays() -> None:
    fabric = fat_tree(32, WIRE, radix=8)
    cable = int(fabric.num_links - 1)
    hit = np.flatnonzero(links_of(fabric, Outage(links=(cable,))))
    assert hit.size == 2
    assert fabric.link_source[hit[0]] == fabric.link_target[hit[1]]
    slow = failed(fabric, Outage(links=(cable,), left_fraction=0.25))
    assert slow.whole
    assert slow.link_bytes_per_s[hit].tolist() == [WIRE.bytes_per_s / 4] * 2


@pytest.mark.parametrize("name", SMALL)
def test_more_failures_never_leave_more(name: str) -> None:
    fabric = SMALL[name]
    some = failed(fabric, Outage(links=tuple(range(0, fabric.num_links, 7))))
    more = failed(some, Outage(links=tuple(range(0, fabric.num_links, 5))))
    assert (shares(some) <= shares(fabric) * (1 + 1e-12)).all()
    assert (shares(more) <= shares(some) * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("outage", "message"),
    [
        (Outage(switches=(20,)), "no switch 20"),
        (Outage(chips=(-1,)), "no chip -1"),
        (Outage(links=(10**6,)), "no link 1000000"),
        (Outage(cubes=(0,)), "no cubes"),
        (Outage(left_fraction=2.0), "2 of its bandwidth"),
    ],
)
def test_parts_that_are_not_there_are_an_error(outage: Outage, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        failed(fat_tree(16, WIRE), outage)


def test_jobs_are_given_for_every_endpoint() -> None:
    with pytest.raises(ScenarioError, match="3 endpoints of 16"):
        blast_radius(fat_tree(16, WIRE), Outage(), [0, 0, 1])
