"""Rounds that repeat themselves are skipped: every message has its time all the same, and every link its bytes."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.oracle import message_by_message

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.collectives.algorithms.steps import phases
from datahall.fabric.flows import simulate as simulation
from datahall.fabric.flows.congestion import Carrier
from datahall.fabric.flows.failures import failed
from datahall.fabric.flows.jobs import Burst, Job, Net, Routing, Traffic, traffic
from datahall.fabric.flows.outcome import FlowScenario, simulate_flows
from datahall.fabric.flows.simulate import Changes, Run, simulate
from datahall.fabric.flows.summary import Sent, rate_curves, step_rows, trace_of
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.graph import Fabric, Floats, Wire
from datahall.fabric.topology.grids.torus import torus
from datahall.fabric.topology.rail import rail_optimised
from datahall.fabric.topology.scale_up import with_scale_up
from datahall.scenario.sections.failure import Failure

SHELF = Catalog(user=False)


WIRE, FAST = Wire(50e9, 0.5e-6), Wire(450e9, 0.4e-6)
PAIRS = [("all-reduce", "ring"), ("all-gather", "ring"), ("all-reduce", "two-level"), ("all-reduce", "tree")]


def fabric_of(kind: str, taper: float) -> Fabric:
    if kind == "rails":
        return rail_optimised(32, WIRE, FAST, radix=8, rails=4, oversubscription=(taper,))
    if kind == "torus":
        return torus((4, 8), WIRE)
    flat = clos(32, WIRE, radix=8, oversubscription=(taper,))
    return flat if kind == "clos" else with_scale_up(flat, 4, FAST)


def ring(fabric: Fabric, size: float, pair: tuple[str, str] = PAIRS[0], **more: object) -> Job:
    inside = int(np.bincount(fabric.domain).max()) if fabric.num_domains < fabric.num_hosts else 1
    steps = phases(*pair, fabric.num_hosts, size, inside)
    return Job(name="x", hosts=np.arange(fabric.num_hosts, dtype=np.int32), phases=steps, **more)


def times(run: Run, flow: int) -> list[tuple[float, float]]:
    """When each message of a flow could start and when it ended, in order."""
    mine = np.flatnonzero(run.flow == flow)
    told = [
        (run.ready_s[one] + turn * run.every_s[one], run.end_s[one] + turn * run.every_s[one])
        for one in mine.tolist()
        for turn in range(int(run.times[one]))
    ]
    return sorted(told, key=lambda pair: pair[1])


def same(made: Traffic, capacity: Floats, **more: object) -> Run:
    """Simulate in rounds and message by message, and hold one against the other."""
    run = simulate(made.flows, capacity, **more)
    flows, row = message_by_message(made)
    slow = simulate(flows, capacity, **more)
    assert run.makespan_s == pytest.approx(slow.makespan_s, rel=1e-9)
    np.testing.assert_allclose(run.link_bytes, slow.link_bytes, rtol=1e-9)
    np.testing.assert_allclose(run.link_peak_bytes_per_s, slow.link_peak_bytes_per_s, rtol=1e-6)
    for flow in range(made.flows.num_flows):
        mine = np.flatnonzero(row == flow)
        expected = np.stack([slow.ready_s[mine], slow.end_s[mine]], axis=1)
        found = np.array(times(run, flow))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * slow.makespan_s)
    return run


@given(
    kind=st.sampled_from(["clos", "servers", "rails", "torus"]), taper=st.sampled_from([1.0, 3.0]),
    policy=st.sampled_from(["ecmp", "deterministic", "spray"]), pair=st.sampled_from(PAIRS),
    size=st.sampled_from([1e4, 1e6, 64e6]), seed=st.integers(0, 99), broken=st.booleans(),
    transport=st.sampled_from(["infiniband", "roce"]), lanes=st.sampled_from([1, 2]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_rounds_that_are_skipped_are_those_that_would_have_come(
    kind: str, taper: float, policy: str, pair: tuple[str, str], size: float, seed: int, broken: bool,
    transport: str, lanes: int,
) -> None:  # fmt: skip
    fabric = fabric_of(kind, taper)
    if broken:
        lame = Failure(links=(seed % fabric.num_links,), left_fraction=0.3)
        fabric = failed(
            failed(fabric, lame), Failure(links=((7 * seed + 40) % fabric.num_links,), left_fraction=0.6)
        )
    kind_of = Carrier(transport=SHELF.transport(transport), virtual_lanes=lanes)
    net = Net(fabric=fabric, routing=Routing(policy), carrier=kind_of, seed=seed, steady=False)
    if kind == "torus" and pair[1] == "two-level":
        pair = PAIRS[0]
    made = traffic(net, (ring(fabric, size, pair),), level="full")
    if made.flows.rounds is None:  # a tree has no rounds
        return
    same(made, fabric.link_bytes_per_s, head_of_line=lanes == 1)


def test_most_rounds_of_a_long_ring_are_skipped_and_none_is_lost() -> None:
    fabric = fabric_of("servers", 1.0)
    net = Net(fabric=fabric, routing=Routing("ecmp"), seed=1)
    made = traffic(net, (ring(fabric, 64e6),), level="full")
    run = same(made, fabric.link_bytes_per_s)
    num_rounds = 2 * (fabric.num_hosts - 1)
    assert run.flow.size < made.flows.num_messages / 2  # most are skipped
    sends = made.source >= 0
    told = np.bincount(run.flow, run.num_each)
    assert (told[sends] == num_rounds * made.flows.weight[sends]).all()


def test_two_rings_that_meet_repeat_themselves_together_or_not_at_all() -> None:
    fabric = fabric_of("clos", 3.0)
    half = np.arange(16, dtype=np.int32)
    jobs = tuple(
        Job(
            name=name, hosts=hosts, phases=phases("all-reduce", "ring", 16, size), start_s=start_s, repeat=2,
            pause_s=1e-6,
        )
        for name, hosts, size, start_s in (("a", half, 8e6, 0.0), ("b", half + 16, 5e6, 30e-6))
    )  # fmt: skip
    same(
        traffic(Net(fabric=fabric, routing=Routing("ecmp"), seed=3), jobs, level="full"),
        fabric.link_bytes_per_s,
    )


def test_what_comes_in_between_is_not_skipped() -> None:
    """A link that is slow for a while, and a burst in the middle."""
    fabric = fabric_of("servers", 1.0)
    net = Net(fabric=fabric, routing=Routing("ecmp"), seed=1)
    one = ring(fabric, 64e6)
    alone = simulate(traffic(net, (one,), level="full").flows, fabric.link_bytes_per_s).makespan_s
    link = int(np.flatnonzero(fabric.link_source == 0)[0])
    slow = Changes(
        alone * np.array([0.4, 0.6]),
        np.full(2, link, np.int32),
        fabric.link_bytes_per_s[link] * np.array([0.2, 1.0]),
    )
    run = same(traffic(net, (one,), level="full"), fabric.link_bytes_per_s, changes=slow)
    assert run.makespan_s > alone
    burst = Burst(
        name="b", source=np.arange(16, dtype=np.int32), target=np.arange(16, 32, dtype=np.int32)[::-1].copy(),
        num_bytes=np.full(16, 5e5), start_s=np.full(16, alone / 2),
    )  # fmt: skip
    assert same(traffic(net, (one,), (burst,), level="full"), fabric.link_bytes_per_s).makespan_s > alone


def test_what_is_told_of_a_run_counts_the_rounds_that_were_skipped() -> None:
    """Jobs, steps, rates over time and the trace are those of the run message by message."""
    fabric = fabric_of("servers", 1.0)
    job = ring(fabric, 16e6)
    scenario = FlowScenario(
        net=Net(fabric=fabric, routing=Routing("ecmp"), seed=1), wired=fabric, jobs=(job,), asks=()
    )
    outcome = simulate_flows(scenario, "full")
    flows, row = message_by_message(outcome.traffic)
    whole = msgspec.structs.replace(
        outcome.traffic, flows=flows, source=outcome.traffic.source[row], target=outcome.traffic.target[row],
        phase=outcome.traffic.phase[row],
    )  # fmt: skip
    slow = simulate(flows, fabric.link_bytes_per_s)
    alike = flows.weight.astype(np.int32)
    plain = msgspec.structs.replace(
        outcome, traffic=whole, run=msgspec.structs.replace(slow, num_alike=alike)
    )
    assert outcome.run.flow.size < slow.flow.size / 2
    found, expected = Sent(outcome), Sent(plain)
    assert (
        found.num_flows == expected.num_flows == sum(one.source.size * one.num_rounds for one in job.phases)
    )
    assert found.slowest_fraction <= found.mean_fraction <= 1
    assert found.mean_bytes_per_s == pytest.approx(expected.mean_bytes_per_s)
    assert found.slowest_bytes_per_s == pytest.approx(expected.slowest_bytes_per_s)
    assert step_rows(outcome, 9)[0][0][2:] == pytest.approx(step_rows(plain, 9)[0][0][2:])
    (one,), (other,) = rate_curves(outcome, found), rate_curves(plain, expected)
    np.testing.assert_allclose(one.bytes_per_s, other.bytes_per_s, rtol=1e-6)
    moved = np.array(one.bytes_per_s).mean() * outcome.run.makespan_s
    assert moved == pytest.approx(sum(phase.sent_bytes for phase in job.phases))
    assert trace_of(outcome).count(b"chip") == trace_of(plain).count(b"chip")
    assert len(trace_of(outcome)) == pytest.approx(len(trace_of(plain)), rel=0.02)


def test_where_nothing_repeats_itself_the_messages_are_as_many_as_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fabric = fabric_of("clos", 1.0)
    made = traffic(Net(fabric=fabric, routing=Routing("ecmp")), (ring(fabric, 1e6),), level="full")
    monkeypatch.setattr(simulation, "MOST_MESSAGES", 40)
    with pytest.raises(ScenarioError, match="more than 40 messages") as error:
        simulate(made.flows, fabric.link_bytes_per_s)
    assert "symmetric" in error.value.hint


def test_a_ring_that_stops_half_way_counts_what_never_came() -> None:
    fabric = fabric_of("clos", 1.0)
    made = traffic(Net(fabric=fabric, routing=Routing("ecmp")), (ring(fabric, 64e6),), level="full")
    whole = simulate(made.flows, fabric.link_bytes_per_s)
    link = np.flatnonzero(fabric.link_source == 5)[:1].astype(np.int32)
    cut = Changes(np.array([whole.makespan_s / 2]), link, np.zeros(1))
    run = simulate(made.flows, fabric.link_bytes_per_s, changes=cut)
    assert run.num_flows == whole.num_flows
    assert (
        run.num_stuck
        == simulate(message_by_message(made)[0], fabric.link_bytes_per_s, changes=cut).num_stuck
        > 0
    )
