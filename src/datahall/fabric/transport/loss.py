"""What a lost packet costs, by what a transport sends again: all since, only that, or that at half the rate."""

from __future__ import annotations

from datahall.catalog.entries.network.transport import Transport
from datahall.fabric.flows.congestion import repeated_fraction, window_packets
from datahall.fabric.transport.path import Path


def round_trip_s(transport: Transport, path: Path) -> float:
    """Time from a packet to its answer, hosts included [s]."""
    return path.round_trip_s + transport.host_s


def window(transport: Transport, path: Path) -> float:
    """Packets under way on a full path: B · RTT / MTU."""
    return window_packets(path.port_bytes_per_s, round_trip_s(transport, path), transport.mtu_bytes)


def kept_at_loss(transport: Transport, path: Path, loss_fraction: float) -> float:
    """Share of the payload rate that is left where each packet is lost with a probability."""
    timeout_round_trips = transport.timeout_s / round_trip_s(transport, path)
    return repeated_fraction(transport.repeat, loss_fraction, window(transport, path), timeout_round_trips)


def one_loss_s(transport: Transport, path: Path) -> float:
    """What one lost packet in the middle of a long message adds to it [s].

    Go-back-N sends a window again, W packets; selective repeat one packet.  A sender that halves its window W gets back
    one packet a round trip: W/2 rounds in which W/4 packets are missing on average, W²/8 together.
    """
    packets = window(transport, path)
    packet_s = (transport.mtu_bytes + transport.header_bytes) / path.port_bytes_per_s
    if transport.repeat == "go-back-n":
        return packets * packet_s
    if transport.repeat == "selective":
        return packet_s
    return (1.0 + packets**2 / 8.0) * packet_s
