"""What a loss costs, against transports that are stepped packet by packet and round by round."""

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.fabric.flows.congestion import halving_fraction
from datahall.fabric.transport.loss import kept_at_loss, one_loss_s, window
from datahall.fabric.transport.path import Path

PATH = Path(2e-6, 50e9, 4.0, "")


def halved_windows(loss_fraction: float, rounds: int = 200_000) -> float:
    """Mean packets a round of a sender without a bound that adds one a round and halves when one of them is lost."""
    draw = np.random.default_rng(1)
    packets, sent = 10.0, 0.0
    for _ in range(rounds):
        sent += packets
        packets = packets / 2 if draw.random() < 1 - (1 - loss_fraction) ** packets else packets + 1
    return sent / rounds


@pytest.mark.parametrize("loss", [1e-4, 1e-3])
def test_the_law_of_the_square_root_is_that_of_windows_that_halve(loss: float) -> None:
    bandwidth = 1e4  # packets a round: far above what the losses leave
    assert halving_fraction(loss, bandwidth, 0.0) * bandwidth == pytest.approx(halved_windows(loss), rel=0.12)


@pytest.mark.parametrize(("loss", "packets_per_s"), [(0.01, 2_634.0), (0.1, 65.0), (0.5, 1.11)])
def test_losses_that_only_a_timeout_tells_of_by_hand(loss: float, packets_per_s: float) -> None:
    """Round trips of 138 µs and timeouts of 200 ms, in packets a second.

    At 1 %: 138 µs · √(0.02/3) = 11.3 µs and 200 ms · 3·√(0.03/8) · 0.01 · 1.0032 = 368.6 µs, 379.9 µs a packet.
    At 10 %: 35.6 µs and 200 ms · 0.5809 · 0.1 · 1.32 = 15.34 ms.  At 50 %: 200 ms · 1 · 0.5 · 9 = 900 ms.
    """
    window, round_trip_s = 80.0, 138e-6
    found = halving_fraction(loss, window, 0.2 / round_trip_s) * window / round_trip_s
    assert found == pytest.approx(packets_per_s, rel=8e-3)


def test_tcp_that_loses_a_tenth_keeps_less_than_a_megabyte_a_second(shelf: Catalog) -> None:
    assert kept_at_loss(shelf.transport("tcp"), PATH, 0.1) * PATH.port_bytes_per_s < 1e6


def test_a_loss_costs_a_halving_sender_what_its_window_lacks_until_it_is_back(shelf: Catalog) -> None:
    tcp = shelf.transport("tcp")
    full = window(tcp, PATH)
    packets, missing = full / 2, 0.0
    while packets < full:
        missing += full - packets
        packets += 1
    packet_s = (tcp.mtu_bytes + tcp.header_bytes) / PATH.port_bytes_per_s
    assert one_loss_s(tcp, PATH) == pytest.approx((1 + missing) * packet_s, rel=0.05)


def test_go_back_n_sends_a_window_again(shelf: Catalog) -> None:
    """50 GB/s over 4 µs and 1 µs of hosts: 250 kB are under way, 61 packets of 4,096 bytes."""
    infiniband = shelf.transport("infiniband")
    assert window(infiniband, PATH) == pytest.approx(61.04, abs=0.01)
    assert one_loss_s(infiniband, PATH) == pytest.approx(61.04 * (4096 + 46) / 50e9, rel=1e-3)


def test_only_the_lost_packet_is_sent_again_by_selective_repeat(shelf: Catalog) -> None:
    assert one_loss_s(shelf.transport("spectrum-x"), PATH) == pytest.approx(4194 / 50e9)


@pytest.mark.parametrize("name", ["infiniband", "roce", "spectrum-x", "tcp"])
def test_more_loss_leaves_less(shelf: Catalog, name: str) -> None:
    left = [kept_at_loss(shelf.transport(name), PATH, loss) for loss in (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.5)]
    assert left[0] == 1.0
    assert left == sorted(left, reverse=True)
    assert left[-1] < left[1]
    assert all(0 < one <= 1 for one in left)
