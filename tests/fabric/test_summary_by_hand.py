"""What is said of a run, counted by hand: two jobs under one switch of 1 GB/s ports, a microsecond a link."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.answers.ask import form_of
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.errors import DatahallError
from datahall.fabric.flows.outcome import Outcome, flow_scenario, simulate_flows
from datahall.fabric.flows.summary import (
    Sent,
    fullest,
    job_rows,
    last_flow,
    least,
    link_name,
    link_rows,
    load,
    makespan_s,
    mean,
    num_locked,
    rate_curves,
    step_rows,
)
from datahall.scenario.read import read_document

CATALOG = Catalog(user=False)
SWITCH = """
version = 1
[fabric]
topology = "clos"
chips = 8
radix = 16
bandwidth = "1 GB/s"
latency = "1 us"
"""
PAIR = '[[job]]\nname = "pair"\ncollective = "send-recv"\nranks = "0-1"\nsize = "4 MB"\n'
LATER = '[[job]]\nname = "later"\ncollective = "all-gather"\nranks = "2-4"\nsize = "6 MB"\nstart = "10 ms"\n'
FLIGHT_S = 2e-6  # two links


def ran(text: str, *, level: str = "full", fabric: str = SWITCH) -> Outcome:
    document = parse(fabric + text, "test.toml")
    scenario = read_document(form_of("simulate fabric"), document, CATALOG)
    return simulate_flows(flow_scenario(scenario), level)  # type: ignore[arg-type]


BOTH = ran(PAIR + LATER)


def test_a_job_takes_its_bytes_over_its_ports() -> None:
    """Two chips send 4 MB to each other; three pass on a third of 6 MB twice."""
    pair, later = job_rows(BOTH, Sent(BOTH))
    assert (pair.name, later.name) == ("pair", "later")
    assert pair.time_s == pytest.approx(4e-3 + FLIGHT_S)
    assert later.time_s == pytest.approx(2 * (2e-3 + FLIGHT_S))
    assert (pair.start_s, later.start_s) == (0.0, 0.01)
    assert (pair.num_flows, later.num_flows) == (2, 6)
    assert pair.bus_bytes_per_s == pytest.approx(4e6 / pair.time_s)
    assert later.bus_bytes_per_s == pytest.approx(6e6 * 2 / 3 / later.time_s)
    assert (pair.mean_fraction, later.slowest_fraction) == pytest.approx((1.0, 1.0))
    assert makespan_s(BOTH) == pytest.approx(0.01 + later.time_s)


def test_steps_stand_in_their_order_with_their_flows() -> None:
    rows, num = step_rows(BOTH, 10)
    assert num == len(rows) == 2
    assert [(row.job, row.num_flows) for row in rows] == [("pair", 2), ("later", 6)]
    assert (rows[0].start_s, rows[0].end_s) == pytest.approx((0.0, 4e-3 + FLIGHT_S))
    assert (rows[1].start_s, rows[1].end_s) == pytest.approx((0.01, 0.01 + 2 * (2e-3 + FLIGHT_S)))
    assert step_rows(BOTH, 1) == (rows[:1], 2)
    halves = ran(
        '[[job]]\nname = "d"\ncollective = "all-gather"\nalgorithm = "doubling"\nranks = "0-3"\nsize = "4 MB"\n'
    )
    steps, _ = step_rows(halves, 10)
    assert [row.step for row in steps] == ["double 1", "double 2"]
    assert [row.num_flows for row in steps] == [4, 4]
    assert steps[1].start_s == pytest.approx(steps[0].end_s)


def test_links_are_busy_for_their_part_of_the_time() -> None:
    """Chips 0 and 1 send and get 4 MB in the 14 ms, 2 to 4 send and get 4 MB too."""
    rows, used = link_rows(BOTH, 100)
    assert used == len(rows) == 10
    whole = makespan_s(BOTH)
    assert whole is not None
    for row in rows:
        assert row.num_bytes == pytest.approx(4e6)
        assert row.load_fraction == pytest.approx(4e-3 / whole)
        assert row.peak_fraction == pytest.approx(1.0)
        assert row.bytes_per_s == 1e9
    assert len(link_rows(BOTH, 3)[0]) == 3
    assert fullest(BOTH) == rows[0]
    assert load(BOTH).max() == pytest.approx(4e-3 / whole)
    names = {row.name for row in rows}
    assert {"chip 0 → tier 1 switch 0", "tier 1 switch 0 → chip 4"} <= names
    assert not any("chip 5" in name for name in names)


def test_names_of_links_count_within_their_tier() -> None:
    fabric = ran(PAIR, fabric=SWITCH.replace("radix = 16", "radix = 4")).scenario.wired
    names = [link_name(fabric, link) for link in range(fabric.num_links)]
    assert len(set(names)) > 8
    assert any(name.endswith("tier 2 switch 0") for name in names)
    assert any("tier 1 switch 3" in name for name in names)


def test_the_last_flow_opens_to_its_start_its_latency_and_its_bytes() -> None:
    found = last_flow(BOTH)
    assert found is not None
    assert found.job == "later"
    assert found.ends
    assert found.ready_s == pytest.approx(0.01 + 2e-3 + FLIGHT_S)
    assert found.time_s == pytest.approx(2e-3 + FLIGHT_S)
    assert found.delay_s == pytest.approx(FLIGHT_S)
    assert found.mean_bytes_per_s == pytest.approx(1e9)
    assert found.figure.value == pytest.approx(makespan_s(BOTH))
    assert false_nodes(found.figure) == []


def test_what_each_job_moves_adds_up_to_its_bytes() -> None:
    for curve, moved in zip(rate_curves(BOTH, Sent(BOTH)), (8e6, 12e6), strict=True):
        times = np.append(curve.time_s, BOTH.run.makespan_s)
        assert float((np.diff(times) * curve.bytes_per_s).sum()) == pytest.approx(moved)
        assert times[0] == 0.0
    pair, later = rate_curves(BOTH, Sent(BOTH))
    assert max(pair.bytes_per_s) == pytest.approx(2e9, rel=1e-3)  # two ports
    assert max(later.bytes_per_s) == pytest.approx(3e9, rel=1e-3)
    assert later.bytes_per_s[0] == 0.0
    assert pair.bytes_per_s[-1] == 0.0


def test_flows_that_meet_on_a_port_have_a_part_of_it_each() -> None:
    """Four to one: each may have a quarter of the receiver's port, and gets it."""
    incast = '[[background]]\nname = "in"\npattern = "incast"\nhosts = "0-4"\nsize = "1 MB"\n'
    outcome = ran(incast)
    sent = Sent(outcome)
    assert sent.num_flows == 4
    assert sent.mean_bytes_per_s == pytest.approx(0.25e9)
    assert sent.slowest_bytes_per_s == pytest.approx(0.25e9)
    (row,) = job_rows(outcome, sent)
    assert row.bus_bytes_per_s is None
    assert row.time_s == pytest.approx(4e-3 + FLIGHT_S)
    assert rows_named(outcome) == ["background"]


def test_a_background_is_of_two_chips_or_more() -> None:
    two = ran('[[background]]\nhosts = "0-1"\nsize = "1 MB"\n')
    assert Sent(two).num_flows == 2
    with pytest.raises(DatahallError, match="two endpoints"):
        ran('[[background]]\nhosts = "3-3"\nsize = "1 MB"\n')


def rows_named(outcome: Outcome) -> list[str]:
    return [row.step for row in step_rows(outcome, 10)[0]]


def test_two_jobs_that_share_ports_get_half_of_what_these_allow() -> None:
    twice = ran(PAIR + PAIR.replace('"pair"', '"other"'))
    sent = Sent(twice)
    assert sent.mean_fraction == pytest.approx(0.5)
    assert sent.slowest_fraction == pytest.approx(0.5)
    assert [row.mean_fraction for row in job_rows(twice, sent)] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("level", ["full", "symmetric"])
def test_repeats_and_pauses_do_not_change_the_rate_of_one(level: str) -> None:
    """Rounds and repeats come one after the other, so that each may have its whole port."""
    thrice = LATER.replace('start = "10 ms"', 'repeat = 3\npause = "1 ms"')
    outcome = ran(thrice, level=level)
    (row,) = job_rows(outcome, Sent(outcome))
    once = 2 * (2e-3 + FLIGHT_S)
    assert row.time_s == pytest.approx(3 * once + 2e-3)
    assert (row.num_runs, row.run_s) == (3, pytest.approx(once))
    assert row.bus_bytes_per_s == pytest.approx(6e6 * 2 / 3 / once)
    assert row.mean_fraction == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("level", ["full", "symmetric"])
def test_rounds_that_share_their_ports_with_another_job_get_half(level: str) -> None:
    outcome = ran(LATER + LATER.replace('"later"', '"other"'), level=level)
    assert Sent(outcome).mean_fraction == pytest.approx(0.5, rel=5e-3)


def test_only_one_lane_can_lock_up_and_only_in_a_circle() -> None:
    assert num_locked(BOTH) == 0
    one = ran("[network]\nlanes = 1\n" + PAIR)
    assert num_locked(one) == 0  # up and down again: no circle
    ring = SWITCH.replace("clos", "torus").replace("radix = 16", "sides = [8]")
    job = '[[job]]\ncollective = "all-to-all"\nranks = "0-7"\nsize = "8 MB"\n'
    around = f'[network]\nlanes = 1\nrouting = "deterministic"\n{job}'
    assert num_locked(ran(around, fabric=ring)) >= 8
    assert num_locked(ran(around.replace("lanes = 1", "lanes = 2"), fabric=ring)) == 0


def test_of_nothing_the_mean_and_the_least_are_nothing() -> None:
    assert (mean(np.zeros(0), np.zeros(0, int)), least(np.zeros(0))) == (0.0, 0.0)
    assert (mean(np.array([1.0, 3.0]), np.array([1, 3])), least(np.array([3.0, 1.0]))) == (2.5, 1.0)
