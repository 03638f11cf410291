"""The time of a job alone, from what each of its phases sends over every place that it must pass.

    T = Σ over phases of rounds · max over α of (α + bytes of flows that wait α or longer / bandwidth of their place)

A byte that is under way for α loads a place α late, while flows with a shorter way are served: what jobs with release
dates take on one machine.  Where all ways are as long it is α + bytes / bandwidth of the busiest place.

A place is a flow's own way, a chip's scale-up links, the ports of a chip (of its domain, where chips forward for one
whose port is out), the way out of a leaf, a pod, a group or a half, or the links between two groups.  Where ways lead
through some links of a place only (grids of chips, dragonflies, HyperX) it is every link, with its share of the
shortest ways of each flow.  What leaves a place is counted from who sends to whom.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from datahall.fabric.collectives.algorithms.steps import Phase
from datahall.fabric.flows.failures import ports
from datahall.fabric.flows.jobs import Job, Net, Routing, latency_s
from datahall.fabric.routing.paths import entry
from datahall.fabric.routing.policies import spread
from datahall.fabric.routing.pooling import pooled
from datahall.fabric.topology.cuts import Pairs, pairs, width
from datahall.fabric.topology.graph import Fabric, Floats, Ints, Longs

DIGITS = 12  # of a latency in seconds that count: ways that differ by less are alike


def closed_form_s(net: Net, job: Job) -> float:
    """The job alone on a fabric that spreads its flows evenly [s]."""
    places = tuple(_places(net.fabric))
    once = sum(_phase_s(net, job, phase, places) for phase in job.phases)
    return job.repeat * once + (job.repeat - 1) * job.pause_s if job.phases else 0.0


class Place(NamedTuple):
    """The parts of a kind: of each node the one it is in, what leaves and enters each, and what joins two [B/s]."""

    part: Ints
    leaves: Floats
    enters: Floats
    joined: Pairs


def _places(fabric: Fabric) -> Iterator[Place]:
    for _, part in fabric.traits.parts_of(fabric):
        yield Place(part, *width(fabric, part), pairs(fabric, part))


def _phase_s(net: Net, job: Job, phase: Phase, places: tuple[Place, ...]) -> float:
    """All rounds of one phase [s]: the slower of what stays inside domains and what crosses the network."""
    fabric, source, target = net.fabric, job.hosts[phase.source], job.hosts[phase.target]
    spraying = net.routing.rule.sprays
    alone = net if spraying else msgspec.structs.replace(net, routing=Routing("deterministic"))
    how = alone.routing
    rng = np.random.default_rng(0)
    routes = spread(fabric, source, target, how.policy, rng, how.num_parts, pool=alone.pool)
    waiting = latency_s(fabric, routes) + job.message_s
    share = np.ones(routes.paths.links.size) if routes.share_fraction is None else routes.share_fraction
    speed = pooled(alone.pool, fabric.link_bytes_per_s)[routes.paths.links]
    own_s = np.zeros(source.size)  # what a byte of each flow takes by itself
    np.maximum.at(own_s, routes.paths.owners(), share / speed)
    enters, near = entry(fabric, source, target)
    last = np.where(near, target, enters)  # of the source's domain
    rides = source != last
    took = [0.0]
    for wait_s in np.unique(np.round(waiting, DIGITS)):
        late = waiting > wait_s - 0.1**DIGITS
        inside = _load_inside(fabric, source[rides & late], last[rides & late])
        far = late & ~near
        for some, loads in (
            (late & near, ()),
            (far, _loads_across(fabric, places, enters[far], target[far])),
        ):
            if some.any():
                busiest = max((float(own_s[some].max()), inside if rides[some].any() else 0.0, *loads))
                took.append(float(wait_s) + phase.num_bytes * busiest / routes.efficiency)
    return phase.num_rounds * max(took)


def _load_inside(fabric: Fabric, source: Ints, target: Ints) -> float:
    """Seconds that the scale-up links of a chip need for a byte of each flow that takes them, where that is most."""
    first = fabric.scale_up_start
    if first < 0:
        return 0.0
    scale_up = fabric.link_bytes_per_s[first : first + fabric.num_hosts]
    return _busiest(source, target, scale_up, scale_up)


def _loads_across(fabric: Fabric, places: tuple[Place, ...], source: Ints, target: Ints) -> Iterator[float]:
    """Seconds that every place of the network needs for a byte of each flow from where it enters, where that is most.

    Where chips have to forward for each other because a port is out, the ports of a domain are one place; a place
    that nothing can leave any more is gone round through another.
    """
    out, into = ports(fabric)
    if not fabric.whole and fabric.scale_up_start >= 0:
        out, into = (np.bincount(fabric.domain, rate).astype(np.float64) for rate in (out, into))
        yield _busiest(fabric.domain[source], fabric.domain[target], out, into)
    else:
        yield _busiest(source, target, out, into)
    loads = fabric.traits.loads(source, target) if fabric.whole else None
    if loads is not None:
        yield float((loads / fabric.link_bytes_per_s[: loads.size]).max(initial=0.0))
    for place in places:
        first, last = place.part[source], place.part[target]
        apart = first != last
        yield _busiest(first[apart], last[apart], place.leaves, place.enters)
        yield _between(place.joined, first[apart] * np.int64(place.leaves.size) + last[apart])


def _between(joined: Pairs, sent: Longs) -> float:
    """The same for every two parts: the shortest way between two groups is over the links that join them."""
    key, count = np.unique(sent, return_counts=True)
    _, here, there = np.intersect1d(key, joined.key, assume_unique=True, return_indices=True)
    met = joined.bytes_per_s[there] > 0
    return float((count[here][met] / joined.bytes_per_s[there][met]).max(initial=0.0))


def _busiest(source: Ints, target: Ints, out: Floats, into: Floats) -> float:
    sent, heard = np.bincount(source, minlength=out.size), np.bincount(target, minlength=into.size)
    loads = [sent[out > 0] / out[out > 0], heard[into > 0] / into[into > 0]]
    return float(np.concatenate(loads).max(initial=0.0))
