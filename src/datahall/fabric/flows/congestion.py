"""What a transport makes of contention: InfiniBand credits, RoCE with PFC and ECN, Ethernet that drops.

Steady rates are max-min fair under all three; they differ in what comes on top.  Credits never drop and back
up behind a blocked flow.  RoCE adds the time its control loop needs to settle, and can pause more than it
should.  A network that drops sends again.  Each effect is a formula here, of a transport as the catalogue has
it, and `Carrier.effect` hands it to the flow simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, sqrt

import msgspec
import numpy as np

from datahall.catalog.entries.network.transport import Repeat, Transport
from datahall.fabric.flows.early import check_loss
from datahall.fabric.flows.simulate import Changes
from datahall.fabric.topology.graph import Floats, Ints, Paths
from datahall.scenario.sections.fabric import Network

# A packet simulation of 1,024 hosts at 200 Gb/s (htsim, 2 MB permutation) had a median of 104.5 µs, against
# 80 µs on the wire and 6 µs one way: 18.5 µs more, or 1.5 round trips.  One run, so take it as ±25 %.
START_UP_ROUND_TRIPS = 1.5
USUAL = Network()
# fair shares alone, where nobody names a transport
IDEAL = Transport(
    name="ideal", title="fair shares alone", flow_control="credits", repeat="selective", routing="ecmp",
    mtu_bytes=4096.0, header_bytes=0.0, host_s=0.0, timeout_s=0.0,
)  # fmt: skip


def start_up_s(num_bytes: Floats, bytes_per_s: float, round_trip_s: Floats) -> Floats:
    """Time lost while congestion control finds its rate [s].

    t = 1.5 · min(RTT, max(0, S/B − RTT)):  nothing for what fits into the first window, 1.5 RTT for what does
    not

    >>> wire, way = 2e6 / 25e9, 6e-6
    >>> round(1e6 * float(wire + way + start_up_s(np.array(2e6), 25e9, np.array(2 * way))), 1)
    104.0
    """
    beyond = np.maximum(0.0, num_bytes / bytes_per_s - round_trip_s)
    return START_UP_ROUND_TRIPS * np.minimum(round_trip_s, beyond)


def headroom_bytes(bytes_per_s: float, delay_s: float, mtu_bytes: float) -> float:
    """Buffer per port and lossless class for what is under way when it pauses [B]: 2·d·B + 2·MTU."""
    return 2.0 * delay_s * bytes_per_s + 2.0 * mtu_bytes


def window_packets(bytes_per_s: float, round_trip_s: float, mtu_bytes: float) -> float:
    """Packets in flight on a full path: W = B · RTT / MTU, at least 1."""
    return max(1.0, bytes_per_s * round_trip_s / mtu_bytes)


def go_back_n_fraction(loss_fraction: float, window: float) -> float:
    """Goodput over bandwidth when a lost packet sends the whole window again: (1 − p) / (1 + p·(W − 1)).

    >>> round(go_back_n_fraction(0.001, 100), 3), round(go_back_n_fraction(0.01, 100), 3)
    (0.909, 0.497)
    """
    return (1.0 - loss_fraction) / (1.0 + loss_fraction * (window - 1.0))


def selective_repeat_fraction(loss_fraction: float) -> float:
    """Goodput over bandwidth when only what was lost is sent again: 1 − p."""
    return 1.0 - loss_fraction


def halving_fraction(loss_fraction: float, window_packets: float, timeout_round_trips: float) -> float:
    """Share of the bandwidth of a sender that halves its window at a loss, or waits where only a timeout tells of it.

        1 / (W · (√(2p/3) + T · min(1, 3·√(3p/8)) · p · (1 + 32·p²))), at most 1 − p

    T is the retransmission timeout in round trips: with few packets under way there are no three duplicates that tell
    of a loss, and the timeout doubles each time it is waited for again.  Padhye, Firoiu, Towsley and Kurose, "Modeling
    TCP throughput", SIGCOMM 1998, with one acknowledgement for each packet (RFC 5348, 3.1).  For T = 0 it is
    √(3/2) / (W·√p) of Mathis et al. 1997.

    >>> round(halving_fraction(1e-4, 200, 0.0), 3), halving_fraction(0.0, 200, 1000.0)
    (0.612, 1.0)
    >>> round(halving_fraction(1e-2, 100, 1000.0), 5)
    0.0052
    """
    p = loss_fraction
    rounds = sqrt(2.0 * p / 3.0)  # a packet, where duplicates tell of each loss
    waits = timeout_round_trips * min(1.0, 3.0 * sqrt(3.0 * p / 8.0)) * p * (1.0 + 32.0 * p**2)
    found = 1.0 / (window_packets * (rounds + waits)) if p else inf
    return min(1.0 - p, found)


def repeated_fraction(
    repeat: Repeat, loss_fraction: float, window: float, timeout_round_trips: float
) -> float:
    """Goodput over bandwidth, by what is sent again after a loss."""
    if repeat == "go-back-n":
        return go_back_n_fraction(loss_fraction, window)
    if repeat == "selective":
        return selective_repeat_fraction(loss_fraction)
    return halving_fraction(loss_fraction, window, timeout_round_trips)


def timeout_s(loss_fraction: float, retransmit_s: float) -> float:
    """Expected wait of a message whose last packet is lost, which only a timeout tells [s]: RTO · p."""
    return retransmit_s * loss_fraction


class Effect(msgspec.Struct, frozen=True):
    """What a transport does to flows: time lost once and per message, goodput over wire rate."""

    start_up_s: Floats
    message_s: float
    efficiency: float


class Carrier(msgspec.Struct, frozen=True, kw_only=True):
    """A transport of the catalogue and what a run sets of it; the defaults are a healthy network."""

    transport: Transport = IDEAL
    virtual_lanes: int = USUAL.lanes  # or lossless classes: with one only, whoever waits blocks all behind it
    loss_fraction: float = 0.0
    selective_repeat: bool = False  # whatever the transport sends again
    watchdog_s: float | None = None  # None: the transport's

    def __post_init__(self) -> None:
        check_loss(self.transport, self.loss_fraction)

    @property
    def head_of_line(self) -> bool:
        """Whether a blocked flow holds back what is behind it."""
        return self.transport.holds_back and self.virtual_lanes == 1

    @property
    def wait_s(self) -> float:
        """What a message waits on average for the timeout that tells of its last packet."""
        return timeout_s(self.loss_fraction, self.transport.timeout_s)

    @property
    def stuck_s(self) -> float:
        """How long others wait for a chip that stopped; not at all where nobody is held back [s]."""
        if self.watchdog_s is not None:
            return self.watchdog_s
        return self.transport.stuck_s if self.transport.holds_back else 0.0

    @property
    def repeat(self) -> Repeat:
        """What is sent again after a loss."""
        return "selective" if self.selective_repeat else self.transport.repeat

    def resent_fraction(self, kept_fraction: float) -> float:
        """Of the bytes on the wire those that were there before, of flows that keep so much of their rate."""
        return 1.0 - kept_fraction if self.repeat == "go-back-n" else self.loss_fraction

    def effect(self, num_bytes: Floats, bytes_per_s: float, latency_s: Floats) -> Effect:
        """What it does to flows of some size on paths of some one-way latency."""
        start = np.zeros(np.broadcast(num_bytes, latency_s).shape)
        if self.transport.settles:
            start = start_up_s(num_bytes, bytes_per_s, 2.0 * latency_s)
        round_trip_s = 2.0 * float(np.mean(latency_s)) if start.size else 0.0
        kept = self._kept_fraction(bytes_per_s, round_trip_s)
        return Effect(start, self.wait_s, self.transport.steady_fraction * kept)

    def _kept_fraction(self, bytes_per_s: float, round_trip_s: float) -> float:
        """What losses leave of the rate."""
        if not self.loss_fraction or not round_trip_s:
            return 1.0 - self.loss_fraction
        window = window_packets(bytes_per_s, round_trip_s, self.transport.mtu_bytes)
        return repeated_fraction(
            self.repeat, self.loss_fraction, window, self.transport.timeout_s / round_trip_s
        )


def paused_links(paths: Paths, link: int, num_links: int) -> Ints:
    """Every link that stops when `link` stops draining for long.

    PFC pauses the port before it, whose flows then pause the ports before them: all links upstream of a
    paused one, on any path through it, until nothing is added.
    """
    stopped = np.zeros(num_links, bool)
    stopped[link] = True
    flow = paths.owners()
    step = np.arange(paths.links.size)
    count = 0
    while count != (count := int(stopped.sum())):
        last = np.full(paths.num_flows, -1, np.int64)
        hit = stopped[paths.links]
        np.maximum.at(last, flow[hit], step[hit])
        stopped[paths.links[step <= last[flow]]] = True
    return np.flatnonzero(stopped).astype(np.int32)


def pause_storm(
    paths: Paths,
    link: int,
    link_bytes_per_s: Floats,
    *,
    at_s: float,
    until_s: float,
    watchdog_s: float,
) -> Changes:
    """A receiver that does not drain from `at_s` to `until_s`: what it pauses is free again when the watchdog
    fires.

    The watchdog drops what waits for the stuck port, so that everything but the port itself goes on.
    """
    links = paused_links(paths, link, link_bytes_per_s.size)
    others = links[links != link]
    relief_s = min(until_s, at_s + watchdog_s)
    at = np.concatenate([np.full(links.size, at_s), np.full(others.size, relief_s), [until_s]])
    which = np.concatenate([links, others, [link]]).astype(np.int32)
    rate = np.concatenate([np.zeros(links.size), link_bytes_per_s[others], [link_bytes_per_s[link]]])
    finite = np.isfinite(at)
    return Changes(at[finite], which[finite], rate[finite])


def paused(changes: Changes, storms: Sequence[Changes], link_bytes_per_s: Floats) -> Changes:
    """Changes with pauses over them: a paused link carries nothing, and then what changes have left of it."""
    events = [(float(at), 0, int(link), float(rate)) for at, link, rate in _rows(changes)]
    for storm in storms:
        events += [(float(at), 1, int(link), 1.0 if rate <= 0 else -1.0) for at, link, rate in _rows(storm)]
    speed, pauses = link_bytes_per_s.copy(), np.zeros(link_bytes_per_s.size, np.int64)
    found = []
    for at, is_pause, link, value in sorted(events, key=lambda event: event[0]):
        if is_pause:
            pauses[link] += int(value)
        else:
            speed[link] = value
        found.append((at, link, 0.0 if pauses[link] > 0 else float(speed[link])))
    at_s, links, rates = zip(*found, strict=True) if found else ((), (), ())
    return Changes(np.array(at_s, float), np.array(links, np.int32), np.array(rates, float))


def _rows(changes: Changes) -> Iterator[tuple[float, int, float]]:
    return zip(changes.at_s.tolist(), changes.link.tolist(), changes.bytes_per_s.tolist(), strict=True)


def buffer_cycle(paths: Paths, num_links: int) -> Ints:
    """Links that wait for each other in a circle, where pauses or credits can lock up for good; empty where
    none do.

    Up-and-down routes in a tree have none; shortest paths around a torus do, and need a second virtual lane.
    """
    inside = np.ones(max(0, paths.links.size - 1), bool)
    inside[paths.offsets[1:-1][paths.offsets[1:-1] <= inside.size] - 1] = False
    pairs = np.unique(
        paths.links[:-1][inside].astype(np.int64) * num_links + paths.links[1:][inside].astype(np.int64)
    )
    before, behind = np.divmod(pairs, num_links)
    while before.size:  # links that wait for nobody, or nobody for them, are in no circle
        keep = np.isin(before, behind) & np.isin(behind, before)
        if keep.all():
            break
        before, behind = before[keep], behind[keep]
    return np.unique(before).astype(np.int32)
