"""What transports add to fair shares: start-up (case e12), blocking, storms, loss."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.collectives.algorithms.steps import Phase
from datahall.fabric.flows.congestion import (
    Carrier,
    buffer_cycle,
    go_back_n_fraction,
    halving_fraction,
    headroom_bytes,
    pause_storm,
    paused_links,
    selective_repeat_fraction,
    start_up_s,
    window_packets,
)
from datahall.fabric.flows.jobs import Job, Net, Routing, traffic
from datahall.fabric.flows.simulate import Flows, simulate
from datahall.fabric.routing.paths import route
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Paths, Wire
from datahall.fabric.topology.grids.torus import torus

SHELF = Catalog(user=False)


def paths_of(*routes: list[int]) -> Paths:
    links = np.array([link for one in routes for link in one], np.int32)
    return Paths(links, np.cumsum([0, *(len(one) for one in routes)]))


def test_two_megabytes_at_200_gigabits_take_what_packets_took() -> None:
    """htsim, 1,024 hosts: median 104.5 µs, 80 on the wire and 6 one way."""
    fabric = fat_tree(1024, Wire(25e9, 1e-6))  # six links: 6 µs one way
    job = Job(
        name="send",
        hosts=np.array([0, 1000], np.int32),
        phases=(Phase(name="send", source=np.array([0]), target=np.array([1]), num_bytes=2e6),),
    )
    net = Net(
        fabric=fabric, routing=Routing("deterministic"), carrier=Carrier(transport=SHELF.transport("roce"))
    )
    run = simulate(traffic(net, (job,)).flows, fabric.link_bytes_per_s)
    assert run.makespan_s == pytest.approx(104.5e-6, rel=0.05)
    plain = traffic(Net(fabric=fabric, routing=Routing("deterministic")), (job,))
    assert simulate(plain.flows, fabric.link_bytes_per_s).makespan_s == pytest.approx(86e-6, rel=0.001)


def test_start_up_is_nothing_in_the_first_window_and_vanishes_for_long_messages() -> None:
    trip = np.array(12e-6)
    assert start_up_s(np.array(25e9 * 12e-6), 25e9, trip) == 0.0
    assert start_up_s(np.array(64e6), 25e9, trip) / (64e6 / 25e9) < 0.01
    sizes = np.geomspace(1e3, 1e9, 50)
    assert (np.diff(start_up_s(sizes, 25e9, trip)) >= 0).all()


def test_loss_costs_go_back_n_a_window_and_selective_repeat_a_packet() -> None:
    window = window_packets(50e9, 12e-6, 4096.0)
    assert window == pytest.approx(146.5, abs=0.1)
    assert go_back_n_fraction(0.0, window) == selective_repeat_fraction(0.0) == 1.0
    assert go_back_n_fraction(0.01, window) == pytest.approx(0.99 / (1 + 0.01 * (window - 1)))
    assert go_back_n_fraction(0.01, 1.0) == selective_repeat_fraction(0.01)


def test_headroom_is_a_round_trip_and_two_packets() -> None:
    assert headroom_bytes(50e9, 1.5e-6, 4096) == pytest.approx(2 * 1.5e-6 * 50e9 + 8192)


def test_what_each_transport_does_to_flows() -> None:
    size, latency = np.array([2e6]), np.array([6e-6])
    credits = Carrier(transport=SHELF.transport("infiniband")).effect(size, 25e9, latency)
    assert (credits.efficiency, credits.start_up_s[0]) == (1.0, 0.0)
    assert Carrier(transport=SHELF.transport("infiniband"), virtual_lanes=1).head_of_line
    assert Carrier(transport=SHELF.transport("roce"), virtual_lanes=1).head_of_line
    assert not Carrier(transport=SHELF.transport("roce")).head_of_line
    assert not Carrier(transport=SHELF.transport("lossy"), virtual_lanes=1).head_of_line
    roce = Carrier(transport=SHELF.transport("roce")).effect(size, 25e9, latency)
    assert roce.efficiency == SHELF.transport("roce").steady_fraction
    assert roce.start_up_s[0] == pytest.approx(18e-6)
    lossy = Carrier(transport=SHELF.transport("lossy"), loss_fraction=0.001).effect(size, 25e9, latency)
    kinder = Carrier(transport=SHELF.transport("lossy"), loss_fraction=0.001, selective_repeat=True).effect(
        size, 25e9, latency
    )
    assert lossy.efficiency == pytest.approx(halving_fraction(0.001, 25e9 * 12e-6 / 8948, 0.2 / 12e-6))
    assert kinder.efficiency == pytest.approx(0.999)
    assert lossy.message_s == pytest.approx(200e-6)


def test_a_pause_spreads_to_everything_that_queues_behind_it() -> None:
    # link 2 stops; flow 0 comes over 0 and 1, flow 1 shares link 0 and is paused there, and link 4 behind it
    paths = paths_of([0, 1, 2], [4, 0, 3], [5, 6])
    assert paused_links(paths, 2, 7).tolist() == [0, 1, 2, 4]


def test_the_watchdog_ends_the_storm_but_not_the_stall() -> None:
    paths = paths_of([0, 1], [0, 2])
    flows = Flows(paths=paths, num_bytes=np.array([1.0, 1.0]))
    capacity = np.full(3, 1.0)
    storm = pause_storm(paths, 1, capacity, at_s=0.5, until_s=9.0, watchdog_s=2.0)
    victim, stuck = simulate(flows, capacity, changes=storm).end_s[[1, 0]]
    # half a byte each by 0.5 s, nothing until 2.5 s, then the victim has link 0 to itself
    assert victim == pytest.approx(2.5 + 0.75)
    assert stuck == pytest.approx(9.0 + 0.75)
    for_good = pause_storm(paths, 1, capacity, at_s=0.5, until_s=np.inf, watchdog_s=2.0)
    assert simulate(flows, capacity, changes=for_good).num_stuck == 1


def test_only_rings_of_buffers_can_lock_up() -> None:
    ring = torus((8,), Wire(1e9))
    chips = np.arange(8)
    assert buffer_cycle(route(ring, chips, (chips + 3) % 8), ring.num_links).size == 8
    tree = fat_tree(16, Wire(1e9))
    chips = np.arange(16)
    assert buffer_cycle(route(tree, chips, (chips + 5) % 16, chips), tree.num_links).size == 0
    assert buffer_cycle(paths_of(), 3).size == 0


def test_losses_that_make_no_sense_are_said() -> None:
    with pytest.raises(ScenarioError, match="below 1"):
        Carrier(transport=SHELF.transport("lossy"), loss_fraction=1.0)
    with pytest.raises(ScenarioError, match="does not drop"):
        Carrier(transport=SHELF.transport("roce"), loss_fraction=0.1)
