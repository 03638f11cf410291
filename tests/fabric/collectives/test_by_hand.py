"""Collectives on a machine of round numbers, where every time can be counted on paper.

Four chips a domain, 10 B/s a link, a second a hop; a network of 2 B/s a chip, ten seconds a hop.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.breakdown import Source
from datahall.fabric.collectives.algorithms import table
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.message import message_time
from datahall.fabric.collectives.algorithms.torus import HOP_S, torus_all_to_all_time, torus_times
from datahall.fabric.collectives.constants import (
    Across,
    Ctran,
    Experts,
    Inside,
    Multicast,
    Protocol,
    Wire,
    library,
)
from datahall.fabric.collectives.ctran import doubling_time, ring_time
from datahall.fabric.collectives.engine_all_reduce import CustomConstants, custom_time
from datahall.fabric.collectives.experts import Tokens, low_latency_time, normal_time
from datahall.fabric.collectives.host_staged import staged_link, staged_times
from datahall.fabric.collectives.multicast import multicast_time
from datahall.fabric.collectives.system import System, network_of, system_of
from datahall.validation.collectives.health import has_cliff

PAPER = {"source": Source(kind="estimate", title="paper", date="2025"), "fitted_on": "nothing"}
SIMPLE = Protocol(base_s=5.0, hop_s=1.0, bytes_per_s=10.0, own_steps=0.5)
INSIDE = Inside(
    chip="x", family="hopper", ll=Protocol(base_s=4.0, hop_s=0.5, bytes_per_s=5.0), simple=SIMPLE,
    ll128=Protocol(base_s=4.5, hop_s=0.75, bytes_per_s=8.0), nvls_latency_s=4.0, nvls_bytes_per_s=20.0,
    nvls_large_gain=2.0, **PAPER,
)  # fmt: skip
ACROSS = Across(
    level="measured", base_s=(6.0, 6.5, 7.0), hop_s=(8.0, 9.0, 10.0), tree_hop_s=(11.0, 12.0, 13.0),
    step_s=(1.0, 1.5, 2.0), share=(0.25, 0.375, 0.5), tree_share=(0.125, 0.1875, 0.25), message_s=0.25,
    exchange_base_s=3.0, **PAPER,
)  # fmt: skip
MACHINE = System(
    name="paper", chip="x", family="hopper", num_domain=4, scale_up_bytes_per_s=10.0, nic_bytes_per_s=4.0,
    inside=INSIDE, across=ACROSS,
)  # fmt: skip


def changed(
    system: System = MACHINE, *, inside: object = None, across: object = None, **fields: object
) -> System:
    """The machine with other constants."""
    replace = msgspec.structs.replace
    return replace(
        system,
        inside=replace(system.inside, **(inside or {})),
        across=replace(system.across, **(across or {})),
        **fields,
    )


def time(
    system: System,
    collective: Collective,
    size: float,
    ranks: int,
    algorithm: str = "ring",
    protocol: str = "Simple",
) -> float:
    return float(table.times(system, collective, np.array([size]), ranks)[algorithm, protocol][0])


@pytest.mark.parametrize(
    ("collective", "protocol", "expected"),
    [
        (
            "all-gather",
            "Simple",
            5 + 3 * 1 + 3.5 * 20 / 10,
        ),  # three steps of 20 B, and half a one for its own
        ("reduce-scatter", "Simple", 5 + 3 * 1 + 3.5 * 20 / 10),
        ("all-reduce", "Simple", 5 + 6 * 1 + 6.5 * 20 / 10),
        ("broadcast", "Simple", 5 + 3 * 1 + 80 / 10),
        ("reduce", "Simple", 5 + 3 * 1 + 80 / 10),
        ("all-gather", "LL", 4 + 3 * 0.5 + 3 * 20 / 5),
        ("all-gather", "LL128", 4.5 + 3 * 0.75 + 3 * 20 / 8),
    ],
)
def test_a_ring_in_a_domain(collective: Collective, protocol: str, expected: float) -> None:
    assert time(MACHINE, collective, 80.0, 4, protocol=protocol) == pytest.approx(expected)


def test_a_ring_through_two_domains() -> None:
    """7 steps: 6 inside, of 2 s because a proxy drives them, and one over the network; 8 B/s leave a node."""
    assert time(MACHINE, "all-gather", 160.0, 8) == pytest.approx(7 + 6 * 2 + 10 + 7.5 * 20 / 8)
    assert time(MACHINE, "all-reduce", 160.0, 8) == pytest.approx(7 + 12 * 2 + 2 * 10 + 14.5 * 20 / 8)
    assert time(MACHINE, "all-gather", 160.0, 8, protocol="LL") == pytest.approx(6 + 6 + 8 + 7 * 20 / 4)
    wide = changed(nic_bytes_per_s=400.0)
    assert time(wide, "all-gather", 160.0, 8) == pytest.approx(7 + 6 * 2 + 10 + 7.5 * 20 / 10)


def test_a_ring_of_lone_chips_passes_the_network_at_every_step() -> None:
    lone = changed(num_domain=1)
    assert time(lone, "all-gather", 80.0, 4) == pytest.approx(7 + 3 * 10 + 3.5 * 20 / 2)


def test_a_ring_slows_with_every_doubling_of_domains_past_four() -> None:
    tapered = changed(across={"taper": 0.5}, num_domain=1)
    for domains, slower in [(2, 1.0), (4, 1.0), (8, 1.5), (16, 2.0)]:
        steps = domains - 1
        expected = 7 + steps * 10 + (steps + 0.5) * 2 * slower / 2
        assert time(tapered, "all-gather", 2.0 * domains, domains) == pytest.approx(expected)


def test_a_mesh_of_few_chips_has_few_links() -> None:
    """Of six links to others, three chips besides oneself use three; seven use all six."""
    mesh = changed(inside={"num_mesh_links": 6}, num_domain=8)
    assert time(mesh, "all-gather", 80.0, 4) == pytest.approx(5 + 3 + 3.5 * 20 / 5)
    assert time(mesh, "all-gather", 80.0, 8) == pytest.approx(5 + 7 + 7.5 * 10 / 10)
    assert time(mesh, "all-gather", 80.0, 2) == pytest.approx(5 + 1 + 1.5 * 40 / (10 / 6))


@pytest.mark.parametrize(
    ("size", "grown"), [(8.0, 0.0), (8192.0, 0.0), (16384.0, 0.5), (32768.0, 1.0), (1e6, 1.0)]
)
def test_a_hop_grows_from_8_to_32_kilobytes(size: float, grown: float) -> None:
    fast = Protocol(base_s=0.0, hop_s=1.0, bytes_per_s=1e30, ramp=0.5)
    assert time(changed(inside={"simple": fast}), "all-gather", size, 4) == pytest.approx(
        3 * (1 + 0.5 * grown)
    )
    far = changed(across={"ramp": 0.5, "tree_share": (1e30,) * 3}, inside={"ll": fast})
    inside, across = 6 * (1 + 0.5 * grown), 2 * 11.0 * (1 + 0.5 * grown)
    bytes_s = 2 * size / (24 * 41.4e9)  # what trees of NCCL pass on Hopper between two nodes
    found = time(far, "all-reduce", size, 8, "tree", "LL")
    assert found == pytest.approx(6 + inside + across + bytes_s)


def test_a_tree_goes_up_and_down() -> None:
    """Along the chain of a domain and back, 92 % of the links; between two domains once, between more twice."""
    assert time(MACHINE, "all-reduce", 92.0, 4, "tree") == pytest.approx(5 + 6 * 1 + 2 * 92 / 9.2)
    assert time(MACHINE, "all-reduce", 92.0, 8, "tree") == pytest.approx(7 + 6 + 2 * 13 + 92 / 4)
    assert time(MACHINE, "all-reduce", 92.0, 16, "tree") == pytest.approx(7 + 6 + 4 * 13 + 2 * 92 / 4)
    assert time(MACHINE, "all-reduce", 46.0, 8, "tree", "LL") == pytest.approx(6 + 6 * 0.5 + 22 + 46 / 2)
    lone = changed(num_domain=1)
    assert time(lone, "all-reduce", 92.0, 4, "tree") == pytest.approx(7 + 4 * 13 + 2 * 92 / 1)
    hidden = changed(across={"tree_overlap": 2.0})
    assert time(hidden, "all-reduce", 92.0, 8, "tree") == pytest.approx(7 + np.hypot(6 + 26, 23))
    assert time(hidden, "all-reduce", 46.0, 8, "tree", "LL") == pytest.approx(6 + 6 * 0.5 + 22 + 46 / 2)


def test_the_switch_adds_in_chunks_that_suit_it() -> None:
    """(√4 + √9)² = 25 s: five quarters of 144 B at 20 B/s take 9 s; past 4 GiB the rate doubles."""
    assert time(MACHINE, "all-reduce", 144.0, 4, "NVLS") == pytest.approx(5 + 25)
    size = 2.0**32
    below, above = (time(MACHINE, "all-reduce", size * more, 4, "NVLS") for more in (1.0, 1.0001))
    assert above == pytest.approx(below / 2, rel=1e-3)


def test_trees_join_the_switches_of_domains() -> None:
    """Switch and network work at once, the slower counts; one copy between two domains, two between more."""
    slow_net, slow_switch = changed(nic_bytes_per_s=1e-3), changed(nic_bytes_per_s=1e9)
    network_s = 9.0 / (1e-3 * 4 * 0.25)
    assert time(slow_net, "all-reduce", 9.0, 8, "NVLS tree") == pytest.approx(
        5 + 2 * 13 + (2 + network_s**0.5) ** 2, rel=1e-6
    )
    assert time(slow_net, "all-reduce", 9.0, 16, "NVLS tree") == pytest.approx(
        5 + 4 * 13 + (2 + (2 * network_s) ** 0.5) ** 2, rel=1e-6
    )
    assert time(slow_switch, "all-reduce", 144.0, 8, "NVLS tree") == pytest.approx(5 + 26 + 25)
    both = changed(nic_bytes_per_s=16.0)  # 9 s each
    assert time(both, "all-reduce", 144.0, 8, "NVLS tree") == pytest.approx(5 + 26 + (2 + 3 * 2**0.125) ** 2)


def test_aggregated_trees_run_between_lone_chips() -> None:
    lone = changed(num_domain=1, across={"hop_s": (8.0, 9.0, 14.0)})
    steps = 2 * 14 / 3.5 + 4 * 2.8e-6
    assert time(lone, "all-gather", 80.0, 4, "PAT") == pytest.approx(5 + steps + 0.75 * 80 / (0.75 * 2))


def test_an_exchange_takes_the_slower_of_both_networks() -> None:
    assert time(MACHINE, "all-to-all", 80.0, 4, "direct") == pytest.approx(5 + 3 + 3.5 * 20 / 10)
    assert time(MACHINE, "send-recv", 80.0, 4, "direct") == pytest.approx(5 + 1 + 1.5 * 80 / 10)
    # of eight parts four leave over 2 B/s; three messages inside, four over the network
    assert time(MACHINE, "all-to-all", 80.0, 8, "direct") == pytest.approx(8 + 3 + 4 * 0.25 + 4 * 10 / 2)
    wide = changed(nic_bytes_per_s=4e3)
    assert time(wide, "all-to-all", 80.0, 8, "direct") == pytest.approx(8 + 3 + 1 + 3.5 * 10 / 10)
    assert time(MACHINE, "send-recv", 80.0, 8, "direct") == pytest.approx(8 + 1 + 80 / 2)
    lone = changed(num_domain=1)
    assert time(lone, "all-to-all", 80.0, 4, "direct") == pytest.approx(8 + 3 * 0.25 + 3 * 20 / 2)
    own = changed(inside={"exchange": Protocol(base_s=1.0, hop_s=2.0, bytes_per_s=20.0)})
    assert time(own, "all-to-all", 80.0, 4, "direct") == pytest.approx(1 + 6 + 3 * 20 / 20)


def test_a_barrier_is_a_sum_of_one_number_whatever_it_is_asked_for() -> None:
    found = table.times(MACHINE, "barrier", np.array([1.0, 1e9]), 4)
    assert found["ring", "LL"].tolist() == pytest.approx([4 + 6 * 0.5 + 6 * 1 / 5] * 2)
    assert found["tree", "LL"].tolist() == pytest.approx([4 + 6 * 0.5 + 2 * 4 / (0.92 * 5)] * 2)
    number = table.times(MACHINE, "all-reduce", np.array([4.0, 4.0]), 4)
    assert {pair: one.tolist() for pair, one in found.items()} == {
        pair: one.tolist() for pair, one in number.items()
    }


def test_the_harness_is_added_to_every_call() -> None:
    slow = changed(harness_s=100.0)
    for collective in ("all-reduce", "all-gather", "all-to-all", "send-recv"):
        for ranks in (4, 8):
            plain = table.times(MACHINE, collective, np.array([80.0]), ranks)
            found = table.times(slow, collective, np.array([80.0]), ranks)
            assert {pair: one[0] + 100 for pair, one in plain.items()} == pytest.approx(
                {pair: one[0] for pair, one in found.items()}
            )


def algorithms(system: System, collective: Collective, ranks: int) -> set[str]:
    return {algorithm for algorithm, _ in table.times(system, collective, np.ones(1), ranks)}


def test_what_can_run_where() -> None:
    lone, old = changed(num_domain=1), changed(version=(2, 3))
    plain = changed(inside={"nvls_bytes_per_s": 0.0})
    assert algorithms(MACHINE, "all-reduce", 4) == {"ring", "tree", "NVLS"}
    assert algorithms(MACHINE, "all-reduce", 8) == {"ring", "tree", "NVLS tree"}
    assert algorithms(lone, "all-reduce", 4) == algorithms(plain, "all-reduce", 4) == {"ring", "tree"}
    assert algorithms(changed(nvls=False), "all-reduce", 4) == {"ring", "tree"}
    assert algorithms(old, "all-reduce", 4) == {"ring"}
    assert algorithms(changed(version=(2, 17)), "all-reduce", 8) == {"ring", "tree"}
    assert algorithms(lone, "all-gather", 4) == {"ring", "PAT"}
    assert algorithms(changed(num_domain=1, version=(2, 22)), "all-gather", 4) == {"ring"}
    assert algorithms(MACHINE, "all-gather", 4) == algorithms(lone, "broadcast", 4) == {"ring"}
    assert algorithms(changed(num_domain=2), "all-gather", 4) == {"ring"}  # PAT: one rank a domain


def test_ll128_needs_the_chip_the_network_and_the_user() -> None:
    for ranks, system, there in [
        (4, MACHINE, True), (8, MACHINE, True), (4, changed(ll128=False), False),
        (4, changed(inside={"ll128": None}), False), (8, changed(across={"ll128": False}), False),
        (4, changed(across={"ll128": False}), True),
    ]:  # fmt: skip
        assert (("ring", "LL128") in table.times(system, "all-gather", np.ones(1), ranks)) is there


def test_the_tuner_sees_the_machine_as_it_is() -> None:
    seen = changed(across={"plugin_latency_s": 3e-6}, num_channels=5).setting(10)
    assert (seen.num_ranks, seen.num_nodes, seen.num_channels) == (10, 3, 5)
    assert seen.node_network_bytes_per_s == 16.0
    assert seen.network_latency_s == 3e-6
    assert not seen.nvlink
    assert changed(scale_up_bytes_per_s=71e9).setting(4).nvlink
    assert not changed(scale_up_bytes_per_s=70e9).setting(4).nvlink
    assert not changed(inside={"nvls_bytes_per_s": 0.0}).setting(4).nvls
    assert not changed(nvls=False).setting(4).nvls
    assert MACHINE.setting(4).nvls
    assert MACHINE.shape(3) == (3, 1)
    assert MACHINE.shape(2) == (2, 1)


def test_an_answer_rests_on_the_weaker_of_chip_and_network() -> None:
    known = changed(inside_level="measured", across={"level": "family-calibrated"})
    assert (known.level(4), known.level(5)) == ("measured", "family-calibrated")
    vague = changed(inside_level="datasheet only", across={"level": "measured"})
    assert (vague.level(4), vague.level(5)) == ("datasheet only", "datasheet only")


def test_at_datasheet_level_a_network_adds_the_latency_that_it_states() -> None:
    plain, efa = network_of("no such network"), network_of("efa", "datasheet")
    assert efa.plugin_latency_s > 0
    assert plain.plugin_latency_s == 0
    more = pytest.approx([efa.plugin_latency_s] * 3)
    assert np.subtract(efa.hop_s, plain.hop_s).tolist() == more
    assert np.subtract(efa.tree_hop_s, plain.tree_hop_s).tolist() == more
    assert network_of("efa") != efa


CTRAN = Ctran(
    base_s=1.0, doubling_base_s=2.0, reduce_hop_s=3.0, gather_hop_s=4.0, ramp_s=6.0, nic_bytes_per_s=10.0,
    overlap=1.0, reduce_overlap=2.0, first_nic_bytes=100.0, reduce_first_nic_bytes=30.0, **PAPER,
)  # fmt: skip


def test_a_ring_over_two_nics() -> None:
    """Steps of 60 B: dealt out 30 B a NIC, otherwise all on the first up to 100 B (30 B while reducing)."""
    size = np.array([240.0])
    assert ring_time(CTRAN, "all-gather", size, 4, interleaved=True)[0] == pytest.approx(1 + 3 * (4 + 3))
    assert ring_time(CTRAN, "all-gather", size, 4, interleaved=False)[0] == pytest.approx(1 + 3 * (4 + 6))
    assert ring_time(CTRAN, "all-gather", 5 * size, 4, interleaved=False)[0] == pytest.approx(
        1 + 3 * (4 + 15)
    )
    summed = np.hypot(3, 3)
    assert ring_time(CTRAN, "all-reduce", size, 4, interleaved=False)[0] == pytest.approx(1 + 6 * summed)
    assert ring_time(CTRAN, "reduce-scatter", size, 4, interleaved=False)[0] == pytest.approx(1 + 3 * summed)


def test_doubling_sends_twice_as_much_at_each_step() -> None:
    found = doubling_time(CTRAN, "all-gather", np.array([480.0]), 8, interleaved=True)[0]
    assert found == pytest.approx(2 + 3 * 4 + (60 + 120 + 240) / 2 / 10)
    # of six ranks the last step moves the two parts that are missing
    found = doubling_time(CTRAN, "all-gather", np.array([360.0]), 6, interleaved=True)[0]
    assert found == pytest.approx(2 + 3 * 4 + (60 + 120 + 120) / 2 / 10)


@pytest.mark.parametrize(
    ("chunk", "grown"), [(1.0, 0.0), (4096.0, 0.0), (8192.0, 1 / 3), (32768.0, 1.0), (1e9, 1.0)]
)
def test_a_hop_over_a_nic_grows_from_4_to_32_kilobytes(chunk: float, grown: float) -> None:
    wide = msgspec.structs.replace(CTRAN, nic_bytes_per_s=1e30)
    found = ring_time(wide, "all-gather", np.array([2 * chunk]), 2, interleaved=True)[0]
    assert found == pytest.approx(1 + 4 + 6 * grown)


def test_a_message_takes_the_faster_of_two_protocols() -> None:
    wire = Wire(latency_s=5.0, small_latency_s=1.0, small_bytes_per_s=2.0, nic_share=0.5, num_nics=4, **PAPER)
    found = message_time(wire, np.array([0.0, 2.0, 200.0]), 10.0)
    assert found.tolist() == pytest.approx([1.0, 2.0, 5 + 200 / 20])


def test_tokens_go_to_their_experts() -> None:
    kernel = Experts(base_s=1.0, nic_share=0.5, inside_share=0.25, message_s=0.125, **PAPER)
    tokens = Tokens(num_tokens=4, hidden=10, top_k=2, bytes_per_value=2)
    links = {"num_inside": 4, "scale_up_bytes_per_s": 16.0, "nic_bytes_per_s": 8.0}
    assert tokens.token_bytes == 20
    assert Tokens(num_tokens=1, hidden=256, top_k=1, bytes_per_value=1).token_bytes == 256 + 2 * 4
    # 160 B: all inside at 4 B/s; or half away at 4 B/s with four messages of an eighth of a second
    near = low_latency_time(kernel, tokens, num_ranks=4, **links)
    assert (near.time_s, near.payload_bytes) == (1 + 160 / 4, 160)
    away = low_latency_time(kernel, tokens, num_ranks=8, **links)
    assert away.time_s == pytest.approx(1 + 80 / 4 + 4 * 0.125)
    slow = low_latency_time(kernel, tokens, num_ranks=8, **links | {"scale_up_bytes_per_s": 1.0})
    assert slow.time_s == pytest.approx(1 + 80 / 0.25)


def test_tokens_go_once_to_each_node_and_fan_out_there() -> None:
    kernel = Experts(base_s=1.0, nic_share=0.5, inside_share=0.25, **PAPER)
    tokens = Tokens(num_tokens=4, hidden=10, top_k=2, bytes_per_value=2)
    links = {"num_inside": 4, "scale_up_bytes_per_s": 16.0, "nic_bytes_per_s": 8.0}
    # two experts drawn from 4 ranks hit 7/4 of them; from 2 nodes, 3/2; from 8 ranks, 15/8
    inside = normal_time(kernel, tokens, num_ranks=4, **links)
    assert (inside.time_s, inside.payload_bytes) == pytest.approx((1 + 80 * 7 / 4 / 4, 140))
    wire = normal_time(kernel, tokens, num_ranks=8, **links | {"nic_bytes_per_s": 0.5})
    assert (wire.time_s, wire.payload_bytes) == pytest.approx((1 + 120 / 2 / 0.25, 120))
    fanned = normal_time(kernel, tokens, num_ranks=8, **links | {"nic_bytes_per_s": 1e9})
    assert fanned.time_s == pytest.approx(1 + 80 * 15 / 8 / 4)
    limited = msgspec.structs.replace(kernel, logical_bytes_per_s=0.5)
    assert normal_time(limited, tokens, num_ranks=8, **links).time_s == pytest.approx(1 + 120 / 0.5)


@pytest.mark.parametrize(("volume", "num_bytes"), [("all", 640.0), ("once", 80.0), ("share", 10.0)])
def test_multicast_moves_all_arrays_one_or_a_share(volume: str, num_bytes: float) -> None:
    kernel = Multicast(base_s=3.0, bytes_per_s=10.0, volume=volume, overlap=1.0, doubling_s=2.0, **PAPER)
    assert multicast_time(kernel, np.array([80.0]), 8)[0] == pytest.approx(3 + 2 + num_bytes / 10)
    assert multicast_time(kernel, np.zeros(1), 4)[0] == pytest.approx(3)


def test_an_engine_takes_the_fastest_of_three_ways() -> None:
    one = CustomConstants(
        chip="x", engine="vllm", **PAPER, most_ranks=8, base_s=1.0, hop_s=0.5, one_shot_bytes_per_s=10.0,
        two_shot_s=5.0, two_shot_bytes_per_s=20.0, library_s=50.0, bus_bytes_per_s=(40.0, 80.0, 160.0),
        band=(0.9, 1.1),
    )  # fmt: skip
    small, middle, large = custom_time(np.array([4.0, 400.0, 4e6]), 4, one)
    assert small == pytest.approx(1 + 2 * 0.5 + 3 * 4 / 10)
    assert middle == pytest.approx(5 + 1 + 1.5 * 400 / 20)
    assert large == pytest.approx(50 + 1 + 1.5 * 4e6 / 80)
    # between 2, 4 and 8 ranks the bus grows by the same factor for each doubling
    for ranks, bus in [(2, 40.0), (8, 160.0), (3, 40.0 * 3 / 2), (6, 40.0 * 6 / 2)]:
        sent = 2 * (ranks - 1) / ranks * 4e6
        assert custom_time(np.array([4e6]), ranks, one)[0] == pytest.approx(
            50 + (ranks - 2) * 0.5 + sent / bus
        )


def test_through_host_memory_a_slice_crosses_twice() -> None:
    """Launch 5 µs; each of the steps a flag of 1 µs, the first slice of half a mebibyte, and its part."""
    part, link = 2.0**20, 1e9
    for collective, steps in [("all-reduce", 6), ("all-gather", 3), ("reduce-scatter", 3)]:
        found = staged_times(collective, np.array([4 * part]), 4, link)[0]
        assert found == pytest.approx(5e-6 + steps * (1e-6 + 2**19 / link + part / link))
    unknown = system_of("mi300x", num_domain=2)
    assert staged_link(unknown).bytes_per_s == pytest.approx(0.3 * unknown.scale_up_bytes_per_s)
    assert staged_link(unknown).level == "datasheet only"


def test_half_of_the_best_is_no_cliff_and_less_is() -> None:
    assert not has_cliff([1, 2, 3], [10.0, 10.0, 5.0])
    assert has_cliff([1, 2, 3], [10.0, 10.0, 4.9])
    assert has_cliff([3, 2, 1], [4.9, 10.0, 1.0])
    assert not has_cliff([1, 2], [4.0, 10.0])


def test_a_torus_by_its_links() -> None:
    """A chip of six 10 B/s links, 4 x 4 x 4: two hops per axis, are nothing beside the bytes."""
    chip = {"sides": (4, 4, 4), "stride": 1, "chip_bytes_per_s": 60.0, "network_bytes_per_s": 5.0}

    def took(collective: Collective, size: float, ranks: int) -> float:
        return float(torus_times(collective, size, num_ranks=ranks, **chip))

    assert took("send-recv", 100.0, 64) == pytest.approx(HOP_S + 10)
    assert took("all-gather", 600.0, 64) == pytest.approx(600 / 60)
    assert took("all-reduce", 600.0, 64) == pytest.approx(2 * 600 / 60)
    assert took("all-to-all", 80.0, 64) == pytest.approx(6 * HOP_S + 80 * 4 / (8 * 10))
    # three slices of 64: each chip sums its 1/64 over the network, two thirds of it twice
    assert took("all-reduce", 640.0, 192) == pytest.approx(2 * 640 / 60 + 2 * 2 / 3 * 10 / 5)
    # half of the pieces are for the other slice, and a message to it goes whole
    assert took("all-to-all", 640.0, 128) == pytest.approx(640 / 2 / 5)
    assert took("send-recv", 640.0, 128) == pytest.approx(640 / 5)
    # part of an axis is a line: no ring, and the bisection is half as wide
    assert took("all-to-all", 80.0, 2) == pytest.approx(1e-6 + 80 * 2 / (4 * 10))
    assert torus_all_to_all_time(80.0, (4,), hop_s=1.0, bytes_per_s=10.0, wrapped=False) == pytest.approx(
        2 + 8
    )


@pytest.mark.parametrize(
    ("algorithm", "nic", "expected"),
    [
        # eight ranks in two domains, LL: 0.25 of a slow NIC (a tree: 0.125), and at most 2 B/s (1 B/s) of a fast one
        ("ring", 4.0, 6 + 6 * 1 + 1 * 8 + 7 * 10 / (4 * 1.0)),
        ("ring", 8.0, 6 + 6 * 1 + 1 * 8 + 7 * 10 / (4 * 2.0)),
        ("ring", 800.0, 6 + 6 * 1 + 1 * 8 + 7 * 10 / (4 * 2.0)),
        ("tree", 4.0, 6 + (2 * 3 * 0.5 + 2 * 11) + 80 / (4 * 0.5)),
        ("tree", 8.0, 6 + (2 * 3 * 0.5 + 2 * 11) + 80 / (4 * 1.0)),
        ("tree", 800.0, 6 + (2 * 3 * 0.5 + 2 * 11) + 80 / (4 * 1.0)),
    ],
)
def test_ll_has_a_share_of_slow_nics_and_a_rate_of_fast_ones(
    algorithm: str, nic: float, expected: float
) -> None:
    quick = msgspec.structs.replace(INSIDE.ll, bytes_per_s=1e9)
    system = changed(inside={"ll": quick}, across={"ll_bytes_per_s": (2.0, 1.0)}, nic_bytes_per_s=nic)
    collective: Collective = "all-gather" if algorithm == "ring" else "all-reduce"
    assert time(system, collective, 80, 8, algorithm, "LL") == pytest.approx(expected)


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("protocol", range(3))
def test_a_faster_nic_gives_a_protocol_no_less(protocol: int, tree: bool) -> None:
    rates = np.geomspace(1e8, 1e12, 200)
    for name, across in library().across.items():
        reached = np.array([rate * across.nic_share(protocol, rate, 1.0, tree=tree) for rate in rates])
        share = (across.tree_share if tree else across.share)[protocol]
        assert np.all(np.diff(reached) >= -1e-9 * reached[1:]), name
        assert np.all(reached <= rates * share * (1 + 1e-12)), name
