"""Failures while flows are under way: who waits, who takes another way and when, and what nobody can go round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.fabric.collectives.algorithms.steps import Phase, phases
from datahall.fabric.flows.asked import changes_of
from datahall.fabric.flows.detours import fabrics_known, reroute_s
from datahall.fabric.flows.failures import links_of
from datahall.fabric.flows.jobs import Job, Net, Routing, Traffic, traffic
from datahall.fabric.flows.simulate import Run, simulate
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.scale_up import with_scale_up
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import Policy

CATALOG = Catalog(user=False)
RATE = 10.0
FABRIC = clos(16, Wire(RATE), radix=8, tiers=2)  # four leaves of four chips, two spines
FIRST_SPINE = FABRIC.num_hosts + 4


def job(source: list[int], target: list[int], size: float, start_s: float = 0.0) -> Job:
    step = Phase(
        name="x", source=np.array(source, np.int32), target=np.array(target, np.int32), num_bytes=size
    )
    return Job(name="x", hosts=np.arange(FABRIC.num_hosts, dtype=np.int32), phases=(step,), start_s=start_s)


def run(
    *jobs: Job,
    failures: list[tuple[Failure, float]],
    policy: Policy = "deterministic",
    fabric: Fabric = FABRIC,
) -> tuple[Traffic, Run]:
    """A run with failures, each with the time that routing takes to learn of it."""
    known = [(failure, links_of(fabric, failure), after_s) for failure, after_s in failures]
    changes = changes_of([(failure, hit) for failure, hit, _ in known], fabric.link_bytes_per_s)
    net = Net(
        fabric=fabric,
        routing=Routing(policy),
        steady=not failures,
        known_later=fabrics_known(known, fabric, policy),
    )
    made = traffic(net, jobs, level="full")
    return made, simulate(made.flows, fabric.link_bytes_per_s, changes=changes)


def spine_of(made: Traffic, flow: int = 0) -> int:
    """The spine on the way of a flow, counted as a switch."""
    nodes = FABRIC.link_target[made.flows.paths.of(flow)]
    return int(nodes[nodes >= FIRST_SPINE][0]) - FABRIC.num_hosts


def test_a_flow_waits_until_routing_knows_and_goes_on_another_way_with_what_is_left() -> None:
    """100 B at 10 B/s; the spine is out after 4 s and routed around 3 s later: 4 + 3 + 6."""
    made, whole = run(job([0], [15], 100.0), failures=[])
    assert whole.makespan_s == 10.0
    spine = spine_of(made)
    _, found = run(job([0], [15], 100.0), failures=[(Failure(switches=(spine,), start_s=4.0), 3.0)])
    assert found.makespan_s == 13.0
    over = FABRIC.link_target == FABRIC.num_hosts + spine
    assert found.link_bytes[over].sum() == pytest.approx(40.0)
    others = (FABRIC.link_target >= FIRST_SPINE) & ~over
    assert found.link_bytes[others].sum() == pytest.approx(60.0)
    assert found.link_bytes[FABRIC.link_source == 0].sum() == pytest.approx(100.0)


def test_a_repair_before_routing_knows_ends_the_wait() -> None:
    made, _ = run(job([0], [15], 100.0), failures=[])
    lame = Failure(switches=(spine_of(made),), start_s=4.0, duration_s=2.0)
    assert run(job([0], [15], 100.0), failures=[(lame, 3.0)])[1].makespan_s == 12.0


def test_who_starts_in_between_waits_and_who_starts_later_does_not() -> None:
    made, _ = run(job([0], [15], 100.0), failures=[])
    out = [(Failure(switches=(spine_of(made),), start_s=4.0), 3.0)]
    assert run(job([0], [15], 100.0, start_s=5.0), failures=out)[1].makespan_s == 7.0 + 10.0
    assert run(job([0], [15], 100.0, start_s=8.0), failures=out)[1].makespan_s == 8.0 + 10.0


def test_after_the_repair_flows_have_their_first_path_again() -> None:
    made, _ = run(job([0], [15], 100.0), failures=[])
    spine = spine_of(made)
    lame = Failure(switches=(spine,), start_s=2.0, duration_s=4.0)
    _, found = run(job([0], [15], 100.0), failures=[(lame, 1.0)])
    assert found.makespan_s == 11.0
    over = FABRIC.link_target == FABRIC.num_hosts + spine
    assert found.link_bytes[over].sum() == pytest.approx(
        20.0 + 50.0
    )  # before it failed, and after the repair


def test_a_part_that_is_slow_is_routed_around_by_nobody_but_sprayed_over_less() -> None:
    made, _ = run(job([0], [15], 100.0), failures=[])
    lame = [(Failure(switches=(spine_of(made),), start_s=4.0, left_fraction=0.5), 1.0)]
    assert run(job([0], [15], 100.0), failures=lame)[1].makespan_s == pytest.approx(4.0 + 60 / 5)
    # sprayed over both spines, half as much goes where half is left: nothing is lost
    whole, slow = (run(job([0], [15], 95.0), failures=out, policy="spray")[1] for out in ([], lame))
    assert slow.makespan_s == pytest.approx(whole.makespan_s)


def test_where_no_way_is_left_a_flow_never_ends() -> None:
    _, found = run(job([0, 4], [15, 8], 100.0), failures=[(Failure(chips=(15,), start_s=4.0), 1.0)])
    assert found.num_stuck == 2  # the flow, and the end of the job
    assert np.isfinite(found.end_s[1])


@given(
    seed=st.integers(0, 200), policy=st.sampled_from(["ecmp", "deterministic", "adaptive", "spray"]),
    spine=st.integers(4, 5), start=st.floats(0.0, 1.5), after=st.sampled_from([0.0, 0.1, 1.0]),
    last=st.one_of(st.none(), st.floats(0.05, 3.0)), ring=st.booleans(),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost_on_a_detour(
    seed: int, policy: Policy, spine: int, start: float, after: float, last: float | None, ring: bool
) -> None:
    """Every byte leaves its sender once and reaches its target once, and a failure never helps."""
    rng = np.random.default_rng(seed)
    target = np.roll(np.arange(16), 4 + seed % 8)
    one = job(list(range(16)), target.tolist(), float(rng.integers(1, 30)))
    if ring:
        one = Job(
            name="x",
            hosts=rng.permutation(16).astype(np.int32),
            phases=phases("all-gather", "ring", 16, 40.0),
        )
    out = [(Failure(switches=(spine,), start_s=start, duration_s=last), after)]
    made, found = run(one, failures=out, policy=policy)
    assert found.num_stuck == 0
    rounds = 1 if made.flows.rounds is None else made.flows.rounds.num_rounds
    sent = np.bincount(made.source + 1, made.flows.num_bytes * rounds, 17)[1:]
    heard = np.bincount(made.target + 1, made.flows.num_bytes * rounds, 17)[1:]
    for chip in range(16):
        assert found.link_bytes[FABRIC.link_source == chip].sum() == pytest.approx(sent[chip])
        assert found.link_bytes[FABRIC.link_target == chip].sum() == pytest.approx(heard[chip])
    assert found.makespan_s >= max(sent.max(), heard.max()) / RATE * (1 - 1e-9)


def test_a_dead_port_of_a_server_is_gone_round_through_another() -> None:
    fabric = with_scale_up(FABRIC, 4, Wire(90.0))
    out = [(Failure(nics=(0,), start_s=4.0), 3.0)]
    made, found = run(job([0], [15], 100.0), failures=out, fabric=fabric)
    assert found.makespan_s == 13.0
    assert made.flows.detours is not None


def test_how_long_routing_takes_is_said_or_known_of_what_fails() -> None:
    assert (
        reroute_s(Failure(switches=(1,), start_s=1.0, reroute_s=2.0), CATALOG.transport("roce"), CATALOG)
        == 2.0
    )
    wired, hashed = (
        reroute_s(Failure(switches=(1,)), CATALOG.transport(one), CATALOG) for one in ("infiniband", "roce")
    )
    assert wired == CATALOG.reroute("infiniband-subnet-manager").reroute_s
    assert hashed == CATALOG.reroute("ethernet-link-down").reroute_s
    assert (
        reroute_s(Failure(nics=(3,)), CATALOG.transport("roce"), CATALOG)
        == CATALOG.reroute("nic-failover").reroute_s
    )


def asked(**more: object) -> Answer:
    found = dh.simulate_fabric(
        on="fat-tree", chips=32, domain=1, catalog=CATALOG, **more,
        job={"collective": "all-reduce", "ranks": "32", "size": "256MB", "algorithm": "ring"},
    )  # fmt: skip
    assert isinstance(found, Answer)
    return found


def test_two_ports_that_are_slow_one_after_the_other_add_up_in_either_detail() -> None:
    """A ring waits for the first, and what was late there is late again at the second."""
    lame = [
        {"nics": str(nic), "left": "50 %", "start": start, "duration": "2ms"}
        for nic, start in ((5, "1ms"), (20, "4ms"))
    ]
    first, both, full = (
        float(asked(failure=some, detail=detail).results["makespan_s"])
        for some, detail in ((lame[:1], "symmetric"), (lame, "symmetric"), (lame, "full"))
    )
    whole = float(asked().results["makespan_s"])
    assert both - whole > 1.2 * (first - whole) > 0
    # in step all wait for each; in full detail the ring is late at the second while it still is from the first
    assert whole < full < both
    assert both - whole == pytest.approx(2 * 2e-3 * 0.5, rel=0.02)  # half of the rate for 2 ms, twice


def test_the_answer_says_when_routing_goes_around_and_where_nobody_can() -> None:
    out = {"nics": "5", "start": "1ms", "reroute": "2ms"}
    stuck = asked(failure=out, transport="roce")
    assert stuck.verdict == "no"
    assert any("no way" in note for note in stuck.notes)
    around = dh.simulate_fabric(
        on="fat-tree", chips=256, catalog=CATALOG, job={"collective": "all-reduce", "size": "64MB"},
        failure={"switches": "8", "start": "100us", "reroute": "300us"},
    )  # fmt: skip
    assert isinstance(around, Answer)
    assert around.verdict == "yes"
    assert any("400 µs" in note for note in around.notes)


def test_an_adaptive_flow_under_way_takes_a_spine_that_is_left() -> None:
    made, _ = run(job([0], [15], 100.0), failures=[], policy="adaptive")
    out = [(Failure(switches=(spine_of(made),), start_s=4.0), 3.0)]
    made, found = run(job([0], [15], 100.0), failures=out, policy="adaptive")
    assert found.makespan_s == 13.0
    assert made.flows.detours is not None
    assert np.diff(made.flows.detours.ways.offsets).max() < np.diff(made.flows.ways.offsets).max()
