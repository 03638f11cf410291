"""With a cable out, flows that choose their way when they start do so in every round, by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.fabric.collectives.algorithms.steps import Phase
from datahall.fabric.flows.failures import failed
from datahall.fabric.flows.jobs import Job, Net, Routing
from datahall.fabric.flows.outcome import FlowScenario, simulate_flows
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.scenario.sections.failure import Failure

RATE = 10.0


def link(fabric: Fabric, leaf: int, spine: int) -> int:
    first = fabric.num_hosts
    spines = first + int((fabric.node_tier == 1).sum())
    ends = (fabric.link_source == first + leaf) & (fabric.link_target == spines + spine)
    (found,) = np.flatnonzero(ends).tolist()
    return found


def sends(source: int, target: int, num_bytes: float, num_rounds: int, start_s: float) -> Job:
    one, other = np.array([0], np.int32), np.array([1], np.int32)
    phase = Phase(name="send", source=one, target=other, num_bytes=num_bytes, num_rounds=num_rounds)
    hosts = np.array([source, target], np.int32)
    return Job(name=f"from {source}", hosts=hosts, phases=(phase,), start_s=start_s)


@pytest.mark.parametrize("level", ["symmetric", "full"])
def test_a_round_takes_the_way_that_has_become_free(level: str) -> None:
    """Two ways out of the first leaf, of 10 and 6 B/s; a cable of the last leaf, which nobody uses, is out.

    One chip sends 10 B over the fast way from 0 to 1 s.  The other starts at 0.1 s and sends 12 B four times: first at
    6 B/s, which is more than half of 10, until 2.1 s; then the fast way is free, and three rounds take 1.2 s each.
    """
    whole = clos(8, Wire(RATE), radix=4, tiers=2)
    speed = whole.link_bytes_per_s.copy()
    speed[link(whole, 0, 1)] = 0.6 * RATE
    fabric = failed(
        msgspec.structs.replace(whole, link_bytes_per_s=speed), Failure(links=(link(whole, 3, 0),))
    )
    jobs = (sends(0, 2, 10.0, 1, 0.0), sends(1, 4, 12.0, 4, 0.1))
    net = Net(fabric=fabric, routing=Routing("adaptive"))
    found = simulate_flows(FlowScenario(net=net, wired=fabric, jobs=jobs, asks=()), level)
    assert found.run.makespan_s == pytest.approx(0.1 + 12 / 6 + 3 * 12 / 10)
