"""What a transport makes of contention: InfiniBand credits, RoCE with PFC and ECN, Ethernet that drops.

Steady rates are max-min fair under all three; they differ in what comes on top.  Credits never drop and back
up behind a blocked flow.  RoCE adds the time its control loop needs to settle, and can pause more than it
should.  A lossy network sends again.  Each effect is a formula here, and `Transport.effect` hands it to the
flow simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from datahall.fabric.flows.early import check_loss
from datahall.fabric.flows.simulate import Changes
from datahall.fabric.topology.graph import Floats, Ints, Paths
from datahall.scenario.sections.fabric import Network
from datahall.scenario.words import TransportKind

# A packet simulation of 1,024 hosts at 200 Gb/s (htsim, 2 MB permutation) had a median of 104.5 µs, against
# 80 µs on the wire and 6 µs one way: 18.5 µs more, or 1.5 round trips.  One run, so take it as ±25 %.
START_UP_ROUND_TRIPS = 1.5
ECN_EFFICIENCY = 0.98  # assumption: what marking and recovering costs in steady state
USUAL = (
    Network()
)  # the watchdog's time: NIC default at Microsoft (Guo et al., "RDMA over commodity Ethernet", 2016)
WATCHDOG_S = USUAL.watchdog_s
MTU_BYTES = 4096.0


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


def headroom_bytes(bytes_per_s: float, delay_s: float, mtu_bytes: float = MTU_BYTES) -> float:
    """Buffer per port and lossless class for what is under way when it pauses [B]: 2·d·B + 2·MTU."""
    return 2.0 * delay_s * bytes_per_s + 2.0 * mtu_bytes


def window_packets(bytes_per_s: float, round_trip_s: float, mtu_bytes: float = MTU_BYTES) -> float:
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


def timeout_s(loss_fraction: float, retransmit_s: float) -> float:
    """Expected wait of a message whose last packet is lost, which only a timeout tells [s]: RTO · p."""
    return retransmit_s * loss_fraction


class Effect(msgspec.Struct, frozen=True):
    """What a transport does to flows: time lost once and per message, goodput over wire rate."""

    start_up_s: Floats
    message_s: float
    efficiency: float


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """A transport and its settings; the defaults are a healthy network."""

    kind: TransportKind = "infiniband"
    virtual_lanes: int = USUAL.lanes  # or lossless classes: with one only, whoever waits blocks all behind it
    loss_fraction: float = 0.0
    selective_repeat: bool = False
    retransmit_s: float = 4e-3
    watchdog_s: float = WATCHDOG_S

    def __post_init__(self) -> None:
        check_loss(self.kind, self.loss_fraction)

    @property
    def head_of_line(self) -> bool:
        """Whether a blocked flow holds back what is behind it."""
        return self.kind != "lossy" and self.virtual_lanes == 1

    @property
    def wait_s(self) -> float:
        """What a message waits on average for the timeout that tells of its last packet."""
        return timeout_s(self.loss_fraction, self.retransmit_s)

    def effect(self, num_bytes: Floats, bytes_per_s: float, latency_s: Floats) -> Effect:
        """What it does to flows of some size on paths of some one-way latency."""
        none = np.zeros(np.broadcast(num_bytes, latency_s).shape)
        if self.kind == "infiniband":
            return Effect(none, 0.0, 1.0)
        if self.kind == "roce":
            return Effect(start_up_s(num_bytes, bytes_per_s, 2.0 * latency_s), 0.0, ECN_EFFICIENCY)
        window = window_packets(bytes_per_s, 2.0 * float(np.mean(latency_s)) if none.size else 0.0)
        repeat = (
            selective_repeat_fraction(self.loss_fraction)
            if self.selective_repeat
            else go_back_n_fraction(self.loss_fraction, window)
        )
        return Effect(none, self.wait_s, repeat)


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
    watchdog_s: float = WATCHDOG_S,
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
