"""What is simulated on a fabric: jobs, background, failures and stalls from their sections, all problems at once."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.errors import DocumentError, InfeasibleError, ScenarioError
from datahall.fabric.flows.crosscheck import crosscheck
from datahall.fabric.flows.outcome import FlowScenario, flow_scenario, simulate_flows
from datahall.fabric.flows.summary import Sent, job_rows, last_flow, link_rows, trace_of
from datahall.scenario.read import read_document

CATALOG = Catalog(user=False)
FABRIC = """
version = 1
name = "test"
seed = 3
[fabric]
topology = "fat-tree"
chips = 64
bandwidth = "400 Gb/s"
latency = "500 ns"
"""
JOB = """
[[job]]
name = "train"
collective = "all-reduce"
ranks = "0-31"
size = "64 MB"
"""


def read(text: str) -> FlowScenario:
    return flow_scenario(read_document(form_of("simulate fabric"), parse(text, "test.toml"), CATALOG))


def problems(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        read(text)
    return "\n".join(caught.value.lines())


def test_a_ring_alone_takes_what_the_formula_says() -> None:
    outcome = simulate_flows(read(FABRIC + JOB))
    # 62 rounds of 2 MB at 50 GB/s; the longest path has 6 links
    assert outcome.run.makespan_s == pytest.approx(62 * (2e6 / 50e9 + 3e-6), rel=1e-9)
    checked = crosscheck(outcome.scenario, "closed-form", "full", outcome)
    assert checked.worst_fraction < 1e-9


def test_two_jobs_on_the_same_ports_slow_each_other() -> None:
    alone = simulate_flows(read(FABRIC + JOB)).run.makespan_s
    both = simulate_flows(read(FABRIC + JOB + JOB.replace("train", "other"))).run.makespan_s
    assert both > 1.5 * alone


def test_background_slows_the_job_and_is_the_same_for_the_same_seed() -> None:
    noisy = (
        FABRIC + JOB + '[[background]]\npattern = "random"\nsize = "8 MB"\nload = "40 %"\nuntil = "3 ms"\n'
    )
    one, other = (simulate_flows(read(noisy)) for _ in range(2))
    assert one.run.end_s.tobytes() == other.run.end_s.tobytes()
    assert one.run.makespan_s > simulate_flows(read(FABRIC + JOB)).run.makespan_s
    reseeded = simulate_flows(read(noisy.replace("seed = 3", "seed = 4")))
    assert reseeded.run.end_s.tobytes() != one.run.end_s.tobytes()


@pytest.mark.parametrize("level", ["symmetric", "full"])
def test_a_failure_slows_the_job_until_the_repair(level: str) -> None:
    whole = simulate_flows(read(FABRIC + JOB), level)  # type: ignore[arg-type]
    half = '[[failure]]\nstart = "0.5 ms"\nduration = "0.5 ms"\nleft = "50 %"\nnics = 5\n'
    slowed = simulate_flows(read(FABRIC + JOB + half), level)  # type: ignore[arg-type]
    late = slowed.run.makespan_s - whole.run.makespan_s
    assert 0.1e-3 < late < 0.5e-3
    out = simulate_flows(read(FABRIC + JOB + '[[failure]]\nstart = "0.5 ms"\nchips = 5\n'), level)  # type: ignore[arg-type]
    assert out.run.num_stuck > 0


def test_what_is_out_from_the_beginning_is_routed_around() -> None:
    spine = "[[failure]]\nswitches = 40\n"  # of the second tier
    whole, less = simulate_flows(read(FABRIC + JOB)), simulate_flows(read(FABRIC + JOB + spine))
    assert less.run.num_stuck == 0
    dead = less.scenario.net.fabric.link_bytes_per_s == 0
    assert dead.any()
    assert not less.run.link_bytes[dead].any()
    assert less.run.makespan_s >= whole.run.makespan_s


def test_a_chip_that_is_gone_cannot_take_part() -> None:
    with pytest.raises((ScenarioError, InfeasibleError), match="5"):
        simulate_flows(read(FABRIC + JOB + "[[failure]]\nchips = 5\n"))


def test_a_stalled_receiver_pauses_others_until_the_watchdog() -> None:
    roce = '[network]\ntransport = "roce"\n'
    stall = '[[stall]]\nchip = 7\nstart = "0.1 ms"\nduration = "4.9 ms"\n'
    incast = '[[background]]\npattern = "incast"\nhosts = "32-40"\ntarget = 7\nsize = "1 MB"\n'
    calm, storm = (
        simulate_flows(read(FABRIC + network + JOB + incast + extra))
        for network, extra in ((roce, ""), (roce + 'watchdog = "1 ms"\n', stall))
    )
    assert storm.run.makespan_s > calm.run.makespan_s + 1e-3


@pytest.mark.parametrize("routing", ["deterministic", "ecmp", "spray"])
@pytest.mark.parametrize("transport", ["infiniband", "roce", "lossy"])
def test_every_routing_and_transport_runs(routing: str, transport: str) -> None:
    more = ("paths = 2\n" if routing == "ecmp" else "") + ("lanes = 1\n" if transport != "lossy" else "")
    text = f'[network]\nrouting = "{routing}"\ntransport = "{transport}"\n{more}'
    outcome = simulate_flows(read(FABRIC + text + JOB))
    sent = Sent(outcome)
    assert outcome.run.num_stuck == 0
    assert 0 < sent.slowest_fraction <= sent.mean_fraction <= 1


def test_a_fabric_from_the_catalogue_can_be_simulated() -> None:
    text = 'version = 1\n[fabric]\ntopology = "rail-optimised"\nchips = 64\nchip = "h100-sxm"\n'
    job = '[[job]]\ncollective = "all-reduce"\nalgorithm = "two-level"\nranks = 64\nsize = "1 GB"\n'
    outcome = simulate_flows(read(text + job))
    assert [phase.num_rounds for phase in outcome.scenario.jobs[0].phases] == [7, 14, 7]  # domains of eight
    assert outcome.run.num_stuck == 0


def test_without_ranks_all_chips_take_part() -> None:
    scenario = read(FABRIC + '[[job]]\nsize = "1 MB"\n')
    assert scenario.jobs[0].hosts.tolist() == list(range(64))


def test_every_problem_of_reading_is_found_at_once_with_its_line() -> None:
    found = problems(
        'version = 2\ncolour = 1\n[fabric]\ntopology = "fat-tree"\nchips = 64\nbandwidth = "0 Gb/s"\n'
        '[[job]]\ncollective = "all-redcue"\nranks = "0-99"\nsize = "-1 MB"\nrepaet = 2\n'
        '[[job]]\ncollective = "all-reduce"\nalgorithm = "rng"\nranks = [1, 1]\nsize = 5\n'
    )
    for piece in (
        'test.toml:2: unknown key "colour"',
        "test.toml:1: version is 2; this release reads version = 1",
        "test.toml:6: bandwidth: 0 Gb/s is too small; it must be at least 1 kB/s",
        "test.toml:8",
        "did you mean all-reduce?",
        "test.toml:10: size: -1 MB is too small; it must be above 0",
        'test.toml:11: unknown key "repaet"; did you mean repeat?',
        "test.toml:15",
        "test.toml:16: size: 5 has no unit",
    ):
        assert piece in found


def test_every_problem_of_meaning_is_found_at_once_with_its_line() -> None:
    found = problems(
        FABRIC + '[[job]]\nranks = "0-99"\nsize = "1 MB"\n'
        '[[job]]\nalgorithm = "rng"\nranks = 8\nsize = "1 MB"\n'
        '[[job]]\ncollective = "barrier"\n'
        '[[failure]]\nstart = "1 ms"\n[[failure]]\nstart = "2 ms"\nswitches = 999\n'
        '[[background]]\npattern = "incast"\ntarget = 70\nsize = "1 MB"\n[[stall]]\nchip = 64\nstart = "1 s"\n'
    )
    for piece in (
        "test.toml:11: ranks: endpoint 64 is not there; the fabric has 0 to 63",
        "test.toml:14",
        "did you mean ring?",
        "test.toml:18",
        "a failure names what is out; one of chips, nics, links, switches, domains, cubes",
        "there is no switch 999",
        "target: endpoint 70 is not there",
        "chip 64 is not there",
    ):
        assert piece in found


def test_nothing_to_send_is_a_problem() -> None:
    assert "nothing is sent" in problems(FABRIC)


def test_a_fabric_that_cannot_be_is_a_problem_at_its_line() -> None:
    assert "test.toml:6" in problems(FABRIC.replace("fat-tree", "fat-tre") + JOB)
    assert "made of parts of the catalogue" in problems(FABRIC.replace("fat-tree", "nvl72") + JOB)


def test_the_rows_of_a_run_add_up() -> None:
    outcome = simulate_flows(read(FABRIC + JOB))
    sent = Sent(outcome)
    job = job_rows(outcome, sent)[0]
    assert job.bus_bytes_per_s == pytest.approx(2 * 31 / 32 * 64e6 / (job.time_s or 0))
    assert job.mean_fraction == pytest.approx(1.0)
    rows, num_used = link_rows(outcome, 10)
    assert len(rows) == 10 < num_used
    assert [row.load_fraction for row in rows] == sorted((row.load_fraction for row in rows), reverse=True)
    last = last_flow(outcome)
    assert last is not None
    assert last.ready_s + last.delay_s + last.num_bytes / last.mean_bytes_per_s == pytest.approx(last.end_s)


def test_the_trace_holds_every_flow() -> None:
    data = trace_of(simulate_flows(read(FABRIC + JOB)))
    assert data.count(b"train") == 32
    assert b"chip 31" in data


def test_too_many_flows_are_refused_before_they_fill_the_memory() -> None:
    many = FABRIC + JOB.replace("size", "repeat = 9000000\nsize")
    with pytest.raises(ScenarioError, match="as many as fit"):
        simulate_flows(read(many))


def test_sizes_are_those_of_the_wire() -> None:
    clean, lossy = (
        simulate_flows(read(FABRIC + f'[network]\ntransport = "{kind}"\n' + extra + JOB))
        for kind, extra in (("infiniband", ""), ("lossy", "loss = 0.01\nselective_repeat = true\n"))
    )
    ratio = lossy.run.link_bytes.sum() / clean.run.link_bytes.sum()
    assert ratio == pytest.approx(1 / 0.99)
    assert np.isfinite(lossy.run.makespan_s)


def test_a_failure_at_the_start_is_over_when_it_is_repaired() -> None:
    half = '[[failure]]\nleft = "50 %"\nnics = 5\n'
    brief, lasting = (
        simulate_flows(read(FABRIC + JOB + half + extra)) for extra in ('duration = "0.3 ms"\n', "")
    )
    assert brief.run.makespan_s < lasting.run.makespan_s
    assert brief.scenario.net.fabric.whole
    assert brief.scenario.changes.at_s.size


def test_a_repair_brings_back_no_part_that_is_out_for_good() -> None:
    dead = "[[failure]]\nswitches = 40\n"
    brief = '[[failure]]\nswitches = 40\nstart = "0.1 ms"\nduration = "0.1 ms"\n'
    for failures in (dead + brief, brief + dead):
        found = simulate_flows(read(FABRIC + JOB + failures))
        assert found.scenario.changes.bytes_per_s.max() == 0.0
        assert found.run.makespan_s == simulate_flows(read(FABRIC + JOB + dead)).run.makespan_s
