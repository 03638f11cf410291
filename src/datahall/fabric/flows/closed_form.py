"""The time of a job alone, from what each of its phases sends over every place that it must pass.

    T = Σ over phases of rounds · (α + bytes / bandwidth of the busiest place)

A place is a flow's own way, a chip's scale-up links, the ports of a chip (of its domain, where chips forward for each
other), the way out of a leaf, a pod, a group or a half, or the links between two groups.  What leaves a place is
counted from who sends to whom; how a network spreads it over the links of one place is left to the simulation, which
may only be slower.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from datahall.fabric.collectives.algorithms.steps import Phase
from datahall.fabric.flows.failures import ports
from datahall.fabric.flows.jobs import Job, Net, job_routes, latency_s
from datahall.fabric.routing.pooling import carrying
from datahall.fabric.topology.cuts import parts, width
from datahall.fabric.topology.dragonfly import Dragonfly
from datahall.fabric.topology.graph import Fabric, Floats, Ints
from datahall.fabric.topology.hyperx import HyperX


def closed_form_s(net: Net, job: Job) -> float:
    """The job alone on a fabric that spreads its flows evenly [s]."""
    once = sum(_phase_s(net, job, phase) for phase in job.phases)
    return job.repeat * once + (job.repeat - 1) * job.pause_s if job.phases else 0.0


def _phase_s(net: Net, job: Job, phase: Phase) -> float:
    """All rounds of one phase [s]: the slower of what stays inside domains and what crosses the network."""
    fabric, source, target = net.fabric, job.hosts[phase.source], job.hosts[phase.target]
    routes = job_routes(net, job.hosts, (phase,), np.random.default_rng(net.seed))
    waiting = latency_s(fabric, routes) + job.message_s
    share = np.ones(routes.paths.links.size) if routes.share_fraction is None else routes.share_fraction
    speed = carrying(fabric, net.routing.policy).link_bytes_per_s[routes.paths.links]
    alone = np.zeros(source.size)  # what a byte of each flow takes by itself [s]
    np.maximum.at(alone, routes.paths.owners(), share / speed)
    near = np.zeros(source.size, np.bool_)
    if fabric.scale_up_start >= 0:
        near = fabric.domain[source] == fabric.domain[target]
    took = [0.0]
    for some, loads in ((near, _loads_inside), (~near, _loads_across)):
        if some.any():
            busiest = max((float(alone[some].max()), *loads(fabric, source[some], target[some])))
            took.append(float(waiting[some].max()) + phase.num_bytes * busiest / routes.efficiency)
    return phase.num_rounds * max(took)


def _loads_inside(fabric: Fabric, source: Ints, target: Ints) -> Iterator[float]:
    """Seconds that the scale-up links of a chip need for a byte of each flow, where that is most."""
    first = fabric.scale_up_start
    scale_up = fabric.link_bytes_per_s[first : first + fabric.num_hosts]
    yield _busiest(source, target, scale_up, scale_up)


def _loads_across(fabric: Fabric, source: Ints, target: Ints) -> Iterator[float]:
    """Seconds that every place of the network needs for a byte of each flow, where that is most."""
    out, into = ports(fabric)
    if getattr(fabric.shape, "forwarding", False):
        out, into = (np.bincount(fabric.domain, rate).astype(np.float64) for rate in (out, into))
        yield _busiest(fabric.domain[source], fabric.domain[target], out, into)
    else:
        yield _busiest(source, target, out, into)
    for _, part in parts(fabric):
        leaves, enters = width(fabric, part)
        first, last = part[source], part[target]
        apart = first != last
        yield _busiest(first[apart], last[apart], leaves, enters)
        if isinstance(fabric.shape, Dragonfly | HyperX):
            yield _between(fabric, part, first[apart], last[apart])


def _between(fabric: Fabric, part: Ints, source: Ints, target: Ints) -> float:
    """The same for every two parts: the shortest way between two groups is over the links that join them."""
    count = int(part.max()) + 1
    here, there = part[fabric.link_source], part[fabric.link_target]
    joins = (here >= 0) & (there >= 0) & (here != there)
    joined = np.bincount(here[joins] * count + there[joins], fabric.link_bytes_per_s[joins], count * count)
    sent = np.bincount(source * count + target, minlength=count * count)
    met = (sent > 0) & (joined > 0)
    return float((sent[met] / joined[met]).max(initial=0.0))


def _busiest(source: Ints, target: Ints, out: Floats, into: Floats) -> float:
    sent, heard = np.bincount(source, minlength=out.size), np.bincount(target, minlength=into.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        loads = np.concatenate([np.where(sent, sent / out, 0.0), np.where(heard, heard / into, 0.0)])
    return float(loads.max(initial=0.0))
