"""Transports on one network: limits of a message, of load, of an incast, of a stuck receiver and of a host."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.catalog.entries.network.transport import Transport
from datahall.errors import ScenarioError
from datahall.fabric.design.asked import design_of
from datahall.fabric.design.design import Design
from datahall.fabric.routing.paths import route
from datahall.fabric.transport import draws
from datahall.fabric.transport.compare import compare, ladder
from datahall.fabric.transport.draws import Draws
from datahall.fabric.transport.host import cores, memory_bytes_per_s
from datahall.fabric.transport.incast import bystander_fraction, most_senders
from datahall.fabric.transport.load import under_load
from datahall.fabric.transport.message import kept_fraction, one_way
from datahall.fabric.transport.path import Path, pairs, usual_path
from datahall.fabric.transport.storm import held_fraction
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.transports import Transports

NAMES = ("infiniband", "roce", "spectrum-x", "tcp")


def made(shelf: Catalog, topology: str, chips: int, **more: object) -> Design:
    return design_of(FabricDesign(topology=topology, chips=chips, **more), shelf)


def drawn(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def draws_of(made: Design, seed: int = 0) -> Draws:
    return Draws(made.fabric, usual_path(made, drawn()), seed)


def test_what_transports_have_in_common_is_found_once(
    shelf: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four transports hold back and route in two ways, one drops: each network is solved as often as it differs."""
    asked: dict[str, int] = {"under_load": 0, "held_fraction": 0, "bystander_fraction": 0}

    def counting(name: str) -> None:
        whole = getattr(draws, name)

        def counted(*args: object, **more: object) -> object:
            asked[name] += 1
            return whole(*args, **more)

        monkeypatch.setattr(draws, name, counted)

    for name in asked:
        counting(name)
    found = compare(made(shelf, "fat-tree", 64), shelf.transports(), Transports(), shelf, 0)
    assert len(found.behaviours) == len(NAMES)
    assert asked == {"under_load": len(found.rungs), "held_fraction": 3, "bystander_fraction": 2}


def test_the_best_leaves_the_slowest_chip_most(shelf: Catalog) -> None:
    found = compare(made(shelf, "fat-tree", 1024), shelf.transports(), Transports(), shelf, 0)
    left = [one.slowest.value for one in found.ranked]
    assert left == sorted(left, reverse=True)
    assert found.ranked[0] is found.behaviours[found.best]


@given(
    name=st.sampled_from(NAMES),
    size=st.floats(1.0, 1e10),
    port=st.floats(1e9, 1e11),
    latency=st.floats(1e-7, 1e-4),
)
def test_no_message_is_faster_than_its_port_and_its_path(
    shelf: Catalog, name: str, size: float, port: float, latency: float
) -> None:
    transport, path = shelf.transport(name), Path(latency, port, 4.0, "")
    took = one_way(transport, path, size).value
    assert took > latency + transport.host_s + size / port
    assert one_way(transport, path, size * 1.01).value >= took
    assert one_way(transport, Path(latency, 1.01 * port, 4.0, ""), size).value <= took


def test_a_rate_that_must_be_found_costs_nothing_before_the_first_window_ends(shelf: Catalog) -> None:
    """Continuous where the window ends, and a round trip and a half more well beyond it."""
    roce, path = shelf.transport("roce"), Path(2e-6, 50e9, 4.0, "")
    edge = path.round_trip_s * path.port_bytes_per_s
    below, above = (one_way(roce, path, edge * ratio).value for ratio in (1 - 1e-9, 1 + 1e-9))
    assert above == pytest.approx(below, rel=1e-6)
    plain = path.latency_s + roce.host_s + 1e6 / (path.port_bytes_per_s * kept_fraction(roce))
    assert one_way(roce, path, 1e6).value - plain == pytest.approx(1.5 * path.round_trip_s)


def test_one_core_bounds_a_message_over_tcp(shelf: Catalog) -> None:
    tcp = shelf.transport("tcp")
    slow, fast = Path(1e-6, 5e9, 4.0, ""), Path(1e-6, 100e9, 4.0, "")
    assert one_way(tcp, fast, 1e9).value == pytest.approx(1e9 / 5.25e9, rel=1e-3)
    assert one_way(tcp, slow, 1e9).value == pytest.approx(1e9 / (5e9 * kept_fraction(tcp)), rel=1e-3)


def test_hosts_of_tcp_work_and_those_of_rdma_do_not(shelf: Catalog) -> None:
    """400 Gb/s at 99 % payload over 42 Gb/s a core; a write, and a read and a write for the copy."""
    path = Path(2e-6, 50e9, 4.0, "")
    tcp = shelf.transport("tcp")
    assert cores(tcp, path) == pytest.approx(50 / 5.25 * 8948 / 9038)
    assert memory_bytes_per_s(tcp, path) == pytest.approx(3 * 50e9 * 8948 / 9038)
    for name in NAMES[:3]:
        assert cores(shelf.transport(name), path) == memory_bytes_per_s(shelf.transport(name), path) == 0


def test_a_usual_path_is_the_median_and_not_the_longest(shelf: Catalog) -> None:
    """Some rails meet only two tiers up: half of the pairs are no further than the median, and some are."""
    fabric = made(shelf, "rail-optimised", 512)
    source, target = pairs(fabric.fabric, drawn())
    paths = route(fabric.fabric, source, target)
    far_s = np.bincount(paths.owners(), fabric.fabric.link_latency_s[paths.links], source.size)
    usual_s = usual_path(fabric, drawn()).latency_s
    assert far_s.min() < usual_s < far_s.max()
    assert (far_s < usual_s * (1 - 1e-9)).mean() <= 0.5
    assert (far_s > usual_s * (1 + 1e-9)).mean() <= 0.5


def test_hashing_leaves_two_fifths_of_a_fat_tree_of_three_tiers(shelf: Catalog) -> None:
    """The mean and the slowest of a random permutation of 8,192 hosts, as a solver of its own found them."""
    fabric = made(shelf, "fat-tree", 8192, tiers=3)
    kept = under_load(fabric.fabric, "ecmp", fabric.injection_bytes_per_s, drawn(), 1)
    assert kept.mean_fraction == pytest.approx(0.408, abs=0.03)
    assert kept.slowest_fraction == pytest.approx(0.143, abs=0.05)


def test_another_path_for_each_packet_has_all_of_a_fat_tree(shelf: Catalog) -> None:
    fabric = made(shelf, "fat-tree", 1024)
    kept = under_load(fabric.fabric, "spray", fabric.injection_bytes_per_s, drawn(), 1)
    assert kept.slowest_fraction == pytest.approx(1.0)


def test_more_queue_pairs_collide_less(shelf: Catalog) -> None:
    fabric = made(shelf, "fat-tree", 1024)
    rungs = ladder(fabric, draws_of(fabric, seed=3))
    hashed = [rung.kept for rung in rungs if rung.routing == "ecmp"]
    assert [one.mean_fraction for one in hashed] == sorted(one.mean_fraction for one in hashed)
    assert all(one.slowest_fraction <= one.mean_fraction <= 1.0 for one in hashed)


def test_a_tapered_tree_leaves_no_more_than_its_narrow_place(shelf: Catalog) -> None:
    wide, narrow = (made(shelf, "fat-tree", 1024, oversubscription=(ratio,)) for ratio in (1.0, 4.0))
    for routing in ("ecmp", "spray"):
        all_of, some = (
            under_load(one.fabric, routing, one.injection_bytes_per_s, drawn(), 1) for one in (wide, narrow)
        )
        assert some.mean_fraction < all_of.mean_fraction
    assert some.mean_fraction < 0.4  # a quarter of what leaves a leaf, and what stays in it


def test_a_stuck_receiver_stops_only_its_own_senders_where_packets_are_dropped(shelf: Catalog) -> None:
    design = made(shelf, "fat-tree", 1024)
    (dropped,) = compare(design, [shelf.transport("tcp")], Transports(), shelf, 0).behaviours
    assert dropped.storm.held_fraction == pytest.approx(8 / (8 * 1024), rel=0.1)
    assert dropped.storm.stuck_s == 0.0


def test_a_stuck_receiver_stops_nearly_all_where_packets_take_every_path(shelf: Catalog) -> None:
    both = [shelf.transport(name) for name in ("roce", "spectrum-x")]
    found = compare(made(shelf, "fat-tree", 1024), both, Transports(), shelf, 0).behaviours
    hashed, sprayed = (one.storm for one in found)
    assert 0.1 < hashed.held_fraction < sprayed.held_fraction
    assert sprayed.held_fraction > 0.9
    assert hashed.stuck_s == 0.1


def test_behind_one_switch_a_storm_holds_whoever_sends_to_the_stuck_chip(shelf: Catalog) -> None:
    """Eight senders' ports stop, and with them all eight flows of each: 64 of the flows between 32 chips."""
    fabric = made(shelf, "fat-tree", 32).fabric
    assert held_fraction(fabric, None, drawn()) < held_fraction(fabric, "ecmp", drawn()) < 1.0


def test_senders_to_one_chip_slow_bystanders_where_they_are_held_back(shelf: Catalog) -> None:
    both = [shelf.transport(name) for name in ("roce", "tcp")]
    found = compare(made(shelf, "fat-tree", 256), both, Transports(), shelf, 0).behaviours
    held, dropped = (one.incast for one in found)
    assert 0.5 < held.bystander_fraction < 1.0
    assert math.isinf(held.most_senders)
    assert dropped.bystander_fraction == 1.0


def test_senders_of_tcp_time_out_when_fewer_than_four_packets_of_each_fit(shelf: Catalog) -> None:
    """80 MB and 50 GB/s over 16 µs hold 2,257 times four packets of 8,948 bytes."""
    path = Path(2e-6, 50e9, 4.0, "")
    assert most_senders(shelf.transport("tcp"), path, 80e6) == pytest.approx(
        (80e6 + 50e9 * 16e-6) / (4 * 8948)
    )


def test_more_senders_than_chips_are_refused(shelf: Catalog) -> None:
    fabric = made(shelf, "fat-tree", 64)
    for holds_back in (True, False):
        with pytest.raises(ScenarioError, match="56 senders"):
            bystander_fraction(fabric.fabric, 56, drawn(), holds_back=holds_back)


@pytest.mark.parametrize(("topology", "chips"), [("nvl72", 72), ("torus", 64)])
def test_chips_without_a_network_have_no_transport(shelf: Catalog, topology: str, chips: int) -> None:
    with pytest.raises(ScenarioError, match="no network between hosts"):
        compare(made(shelf, topology, chips), shelf.transports(), Transports(), shelf, 0)


@pytest.mark.parametrize("topology", ["fat-tree", "rail-optimised", "tree", "nvl72", "dragonfly", "hyperx"])
def test_shares_are_shares_on_every_network(shelf: Catalog, topology: str) -> None:
    chips = 144 if topology == "nvl72" else 128
    design = made(shelf, topology, chips)
    for one in compare(design, shelf.transports(), Transports(senders=8), shelf, 1).behaviours:
        shares = (
            one.kept_alone_fraction, *one.kept, one.at_loss_fraction, one.incast.bystander_fraction,
            one.storm.held_fraction,
        )  # fmt: skip
        assert all(0.0 < share <= 1.0 for share in shares), one.transport.name
        assert one.kept.slowest_fraction <= one.kept.mean_fraction <= one.kept_alone_fraction
        assert one.slowest.value <= one.path.port_bytes_per_s


def test_every_transport_says_where_its_numbers_are_from(shelf: Catalog) -> None:
    for one in shelf.transports():
        assert isinstance(one, Transport)
        assert {"mtu_bytes", "header_bytes", "host_s", "timeout_s"} <= one.facts.keys()
