"""Scenarios: what they mean, every problem at once with its line, and the answer that comes of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from datahall.answers.fabric.simulation import fabric_answer, fabric_trace, simulate_fabric
from datahall.catalog.document import parse
from datahall.cli.main import run
from datahall.errors import DatahallError, DocumentError, ScenarioError
from datahall.fabric.flows.crosscheck import crosscheck
from datahall.fabric.scenario import Scenario, play, scenario_of
from datahall.fabric.scenario_file import numbers

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


def read(text: str) -> Scenario:
    return scenario_of(parse(text, "test.toml"))


def problems(text: str) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        read(text)
    return [repr(problem) for problem in caught.value.problems]


def test_a_ring_alone_takes_what_the_formula_says() -> None:
    outcome = play(read(FABRIC + JOB))
    # 62 rounds of 2 MB at 50 GB/s; the longest path has 6 links
    assert outcome.run.makespan_s == pytest.approx(62 * (2e6 / 50e9 + 3e-6), rel=1e-9)
    checked = crosscheck(outcome.scenario, "closed-form", "full", outcome)
    assert checked.worst_fraction < 1e-9


def test_two_jobs_on_the_same_ports_slow_each_other() -> None:
    alone = play(read(FABRIC + JOB)).run.makespan_s
    both = play(read(FABRIC + JOB + JOB.replace("train", "other"))).run.makespan_s
    assert both > 1.5 * alone


def test_background_slows_the_job_and_is_the_same_for_the_same_seed() -> None:
    noisy = (
        FABRIC + JOB + '[[background]]\npattern = "random"\nsize = "8 MB"\nload = "40 %"\nuntil = "3 ms"\n'
    )
    one, other = (play(read(noisy)) for _ in range(2))
    assert one.run.end_s.tobytes() == other.run.end_s.tobytes()
    assert one.run.makespan_s > play(read(FABRIC + JOB)).run.makespan_s
    reseeded = play(read(noisy.replace("seed = 3", "seed = 4")))
    assert reseeded.run.end_s.tobytes() != one.run.end_s.tobytes()


@pytest.mark.parametrize("level", ["symmetric", "full"])
def test_a_failure_slows_the_job_until_the_repair(level: str) -> None:
    whole = play(read(FABRIC + JOB), level)  # type: ignore[arg-type]
    half = '[[failure]]\nat = "0.5 ms"\nuntil = "1 ms"\nleft = "50 %"\nnic = 5\n'
    slowed = play(read(FABRIC + JOB + half), level)  # type: ignore[arg-type]
    late = slowed.run.makespan_s - whole.run.makespan_s
    assert 0.1e-3 < late < 0.5e-3
    out = play(read(FABRIC + JOB + '[[failure]]\nat = "0.5 ms"\nchip = 5\n'), level)  # type: ignore[arg-type]
    assert out.run.num_stuck > 0
    assert fabric_answer(out).verdict == "no"


def test_a_stalled_receiver_pauses_others_until_the_watchdog() -> None:
    text = FABRIC + 'transport = "roce"\nwatchdog = "1 ms"\n' + JOB
    stall = '[[stall]]\nchip = 7\nat = "0.1 ms"\nuntil = "5 ms"\n'
    incast = '[[background]]\npattern = "incast"\nhosts = "32-40"\ntarget = 7\nsize = "1 MB"\n'
    calm, storm = play(read(text + incast)), play(read(text + incast + stall))
    assert storm.run.makespan_s > calm.run.makespan_s + 1e-3


@pytest.mark.parametrize("routing", ["deterministic", "ecmp", "spray"])
@pytest.mark.parametrize("transport", ["infiniband", "roce", "lossy"])
def test_every_routing_and_transport_plays(routing: str, transport: str) -> None:
    text = FABRIC + f'routing = "{routing}"\npaths = 2\ntransport = "{transport}"\nlanes = 1\n' + JOB
    answer = fabric_answer(play(read(text)))
    assert answer.verdict == "yes"
    mean, slowest = answer.results["mean_fraction"], answer.results["slowest_fraction"]
    assert isinstance(mean, float)
    assert isinstance(slowest, float)
    assert 0 < slowest <= mean <= 1


def test_a_fabric_from_the_catalogue_can_be_played() -> None:
    text = 'version = 1\n[fabric]\ntopology = "rail-optimised"\nchips = 64\nchip = "h100-sxm"\n'
    job = '[[job]]\ncollective = "all-reduce"\nalgorithm = "two-level"\nranks = 64\nsize = "1 GB"\n'
    outcome = play(read(text + job))
    assert outcome.scenario.asks[0].num_in_domain == 8
    assert outcome.run.num_stuck == 0


def test_every_problem_is_found_at_once_with_its_line() -> None:
    found = problems(
        'version = 2\ncolour = 1\n[fabric]\ntopology = "fat-tre"\nchips = 64\nbandwidth = "0 Gb/s"\n'
        '[[job]]\ncollective = "all-redcue"\nranks = "0-99"\nsize = "-1 MB"\nrepaet = 2\n'
        '[[job]]\ncollective = "all-reduce"\nalgorithm = "rng"\nranks = [1, 1]\nsize = 5\n'
        '[[failure]]\nat = "1 ms"\n[[failure]]\nat = "2 ms"\nuntil = "1 ms"\nswitch = 999\n'
    )
    text = "\n".join(found)
    for piece in (
        'test.toml:2: unknown key "colour"',
        "test.toml:1: version is 2; this release reads version = 1",
        "test.toml:4",
        "did you mean fat-tree?",
        "test.toml:6: bandwidth is 0 Gb/s; it must be above 0",
        "test.toml:8",
        "did you mean all-reduce?",
        "test.toml:10: size is -1 MB; it must be above 0",
        'test.toml:11: unknown key "repaet"; did you mean repeat?',
    ):
        assert piece in text


def test_problems_of_jobs_and_failures_name_what_is_allowed() -> None:
    text = "\n".join(
        problems(
            FABRIC + '[[job]]\ncollective = "all-reduce"\nranks = "0-99"\nsize = "1 MB"\n'
            '[[job]]\ncollective = "all-reduce"\nalgorithm = "rng"\nranks = 8\nsize = "1 MB"\n'
            '[[job]]\ncollective = "all-reduce"\nranks = [1, 1]\nsize = "1 MB"\n'
            '[[failure]]\nat = "1 ms"\n[[failure]]\nat = "2 ms"\nswitch = 999\n'
            '[[background]]\npattern = "incast"\ntarget = 70\nsize = "1 MB"\n[[stall]]\nchip = 64\nat = "1 s"\n'
        )
    )
    for piece in (
        "endpoint 64 is not there; the fabric has 0 to 63",
        "did you mean ring?",
        "an endpoint is named twice",
        "a failure names one part; one of link, switch, nic, chip, domain",
        "999",
        "endpoint 70 is not there",
        "chip 64 is not there",
    ):
        assert piece in text


def test_nothing_to_send_and_no_fabric_are_problems() -> None:
    text = "\n".join(problems("version = 1\n"))
    assert "[fabric] is missing" in text
    assert "nothing is sent" in text


@pytest.mark.parametrize("bad", ["5-2", "x", "1-", "3:0", 1.5, -1])
def test_ranks_that_cannot_be_read(bad: str | float) -> None:
    with pytest.raises(ValueError, match=r"endpoints|range"):
        numbers(bad)


def test_ranks_as_people_write_them() -> None:
    assert numbers("0-3,8,10-14:2") == [0, 1, 2, 3, 8, 10, 12, 14]
    assert numbers(4) == [0, 1, 2, 3]


def test_the_answer_has_what_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(FABRIC + JOB)
    answer = simulate_fabric(file, check_with="full")
    titles = [table.title for table in answer.tables]
    assert any("fullest" in title for title in titles)
    assert "timeline" in titles
    assert any("cross-check" in title for title in titles)
    assert answer.results["worst_difference_fraction"] == pytest.approx(0.0, abs=1e-9)
    job = answer.tables[0].records()[0]
    assert job["bus_bandwidth_bytes_per_s"] == pytest.approx(2 * 31 / 32 * 64e6 / job["time_s"])
    assert job["mean_flow_fraction"] == pytest.approx(1.0)
    with pytest.raises(ScenarioError, match="symmetric or full"):
        simulate_fabric(file, level="ful")
    with pytest.raises(ScenarioError, match="another level"):
        simulate_fabric(file, check_with="symmetric")
    with pytest.raises(DatahallError, match="cannot be read"):
        simulate_fabric(tmp_path / "missing.toml")


def test_the_trace_holds_every_flow() -> None:
    outcome = play(read(FABRIC + JOB))
    data = fabric_trace(outcome)
    assert data.count(b"train") == 32
    assert b"chip 31" in data


def test_the_command_line_answers_and_writes_a_trace(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(FABRIC + JOB)
    assert run(["simulate", "fabric", str(file), "--json", "--quiet"]) == 0
    assert msgspec.json.decode(capfd.readouterr().out)["results"]["num_flows"] == 32
    trace = tmp_path / "run.perfetto-trace"
    assert run(["simulate", "fabric", str(file), "-o", str(trace), "--quiet"]) == 0
    assert trace.read_bytes() == fabric_trace(play(read(FABRIC + JOB)))
    file.write_text(FABRIC + JOB + '[[failure]]\nat = "0.5 ms"\nchip = 5\n')
    assert run(["simulate", "fabric", str(file), "--quiet"]) == 1
    file.write_text(FABRIC + JOB.replace("ranks", "rnaks"))
    assert run(["simulate", "fabric", str(file), "--quiet"]) == 2
    assert f"{file}:14" in capfd.readouterr().err


def test_too_many_flows_are_refused_before_they_fill_the_memory() -> None:
    many = FABRIC + JOB.replace("size", "repeat = 9000000\nsize")
    with pytest.raises(ScenarioError, match="as many as fit"):
        play(read(many))


def test_sizes_are_those_of_the_wire() -> None:
    clean, lossy = (
        play(read(FABRIC + f'transport = "{kind}"\n' + extra + JOB))
        for kind, extra in (("infiniband", ""), ("lossy", "loss = 0.01\nselective_repeat = true\n"))
    )
    ratio = lossy.run.link_bytes.sum() / clean.run.link_bytes.sum()
    assert ratio == pytest.approx(1 / 0.99)
    assert np.isfinite(lossy.run.makespan_s)
