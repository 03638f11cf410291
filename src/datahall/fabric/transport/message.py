"""One message on an idle network: what hosts, cables, headers and a rate that must be found take of its time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datahall.breakdown import Breakdown, assumed, derived, fact, given, minimum, product, quotient, total
from datahall.catalog.entries.network.transport import Transport
from datahall.fabric.flows.congestion import START_UP_ROUND_TRIPS, start_up_s
from datahall.fabric.transport.path import Path

START_UP = "rounds until congestion control has found its rate, from a packet simulation of 1,024 hosts"


def kept_fraction(transport: Transport) -> float:
    """Share of a port that payload has in steady state when nobody else sends: MTU / (MTU + header) · steady.

    >>> from datahall.catalog import load
    >>> round(kept_fraction(load().transport("spectrum-x")), 3)
    0.957
    """
    return kept(transport).value


def one_way(transport: Transport, path: Path, num_bytes: float, num_flows: int = 1) -> Breakdown:
    """Time until the last byte of a message has arrived that is split over so many flows [s].

    t = hosts + path + S / min(B · kept, flows · core) + 1.5 · min(RTT, S/B − RTT) where a rate must be found
    """
    parts = [
        _of(transport, "host_s", "software and adapters of both ends"),
        derived("path", path.latency_s, "s", note=f"cables and switches between two chips {path.note}"),
        quotient(
            "bytes on the wire",
            derived("message", num_bytes, "bytes"),
            payload_rate(transport, [port(path), kept(transport)], num_flows),
            "s",
        ),
    ]
    if transport.settles:
        lost_s = float(start_up_s(np.array(num_bytes), path.port_bytes_per_s, np.array(path.round_trip_s)))
        rounds = assumed(START_UP, START_UP_ROUND_TRIPS, "ratio", "one run of htsim, ±25 %")
        waited = derived("round trip that it waits for", lost_s / START_UP_ROUND_TRIPS, "s")
        parts.append(product("finding the rate", [rounds, waited], "s"))
    return total(f"{transport.title}: one message", parts)


def payload_rate(transport: Transport, through: Sequence[Breakdown], num_flows: int) -> Breakdown:
    """What flows send: what comes through the port, or as fast as a core of the receiver for each takes it."""
    network = product("payload through the port", through, "bytes_per_s")
    if "core_bytes_per_s" not in transport.facts:
        return network
    core = _of(transport, "core_bytes_per_s", "one core of the receiver")
    flows = given("flows", num_flows, "count", "each on a core of the receiver", "paths")
    return minimum("payload rate", [network, product("cores of the flows", [core, flows], "bytes_per_s")])


def _of(transport: Transport, name: str, label: str) -> Breakdown:
    one = transport.facts[name]
    return fact(label, one.value, one.unit, one.source, note=one.note)


def port(path: Path) -> Breakdown:
    """What a chip sends into the network [B/s]."""
    return derived(
        "port of a chip", path.port_bytes_per_s, "bytes_per_s", note="one way, as the fabric has it"
    )


def kept(transport: Transport) -> Breakdown:
    """Share of a port that payload has in steady state, from headers and what finding the rate costs."""
    whole = quotient(
        "payload of a packet",
        _of(transport, "mtu_bytes", "payload"),
        total(
            "packet",
            [_of(transport, "mtu_bytes", "payload"), _of(transport, "header_bytes", "headers and gap")],
        ),
        "fraction",
    )
    if "steady_fraction" not in transport.facts:
        return whole
    return product("kept", [whole, _of(transport, "steady_fraction", "kept in steady state")], "fraction")
