"""`simulate fabric`: the same run by flags, file, Python and JSON; what it says, and its trace."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.answers.borders import asked_everywhere, runs

import datahall as dh
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cli.main import run
from datahall.errors import DatahallError, DocumentError, ScenarioError
from datahall.units import fmt

FILE = """
version = 1
name = "test"
seed = 3

[fabric]
topology = "fat-tree"
chips = 64
bandwidth = "400 Gb/s"
latency = "500 ns"

[network]
paths = 2

[[job]]
name = "train"
collective = "all-reduce"
ranks = "0-31"
size = "64 MB"
"""
LOST = '\n[[failure]]\nstart = "0.5 ms"\nchips = 5\n'


def test_the_answer_has_what_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(FILE)
    answer = dh.simulate_fabric(str(file), check_with="full")
    titles = [table.title for table in answer.tables]
    assert any("fullest" in title for title in titles)
    assert "timeline" in titles
    assert any("cross-check" in title for title in titles)
    assert answer.results["worst_difference_fraction"] == pytest.approx(0.0, abs=1e-6)
    assert "test on an 8-ary fat tree takes" in answer.headline
    assert answer.figure is not None
    assert not false_nodes(answer.figure)
    assert answer.figure.value == pytest.approx(answer.results["makespan_s"])


def test_what_is_said_beside_a_file_stands_in_its_place(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(FILE)
    slow, fast = (dh.simulate_fabric(str(file), bandwidth=rate) for rate in ("200 Gb/s", "400 Gb/s"))
    assert slow.results["makespan_s"] > 1.5 * fast.results["makespan_s"]
    assert any("in place of what" in note for note in slow.notes)


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"detail": "ful"}, "detail", "there is no"),
        ({"check_with": "symmetric"}, "check_with", "the detail that is simulated"),
        ({"job": {"ranks": "0-99"}}, "job", "endpoint 64 is not there"),
        ({"job": {"colour": "red"}}, "job", "unknown key"),
        ({"loss": 0.1, "job": {}}, "loss", "does not drop packets"),
        ({"failure": "switches=999", "job": {}}, "failure", "no switch 999"),
        ({"on": "knot", "job": {}}, "on", "knot"),
        ({"chip": "h100-sxm", "bandwidth": "400 Gb/s", "job": {}}, "bandwidth", "do not go together"),
        ({}, "job", "nothing is sent"),
    ],
)
def test_bad_input_names_the_field(asked: dict[str, object], field: str, words: str, shelf: Catalog) -> None:
    given = {"on": "fat-tree", "chips": 64, **asked}
    with pytest.raises(DatahallError, match=words) as caught:
        dh.simulate_fabric(**given, catalog=shelf)
    assert caught.value.field == field


def test_a_file_is_wrong_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(FILE + '\n[[job]]\nranks = "0-99"\n\n[[stall]]\nchip = 64\n')
    with pytest.raises(DocumentError) as caught:
        dh.simulate_fabric(str(file))
    places = [problem.where for problem in caught.value.problems]
    assert places == [f"{file}:22", f"{file}:25"]
    with pytest.raises(DatahallError):
        dh.simulate_fabric(str(tmp_path / "missing.toml"))


def test_the_command_line_answers_and_writes_a_trace(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(FILE)
    assert run(["simulate", "fabric", str(file), "--json", "--quiet"]) == 0
    assert msgspec.json.decode(capfd.readouterr().out)["results"]["num_flows"] == 64
    trace = tmp_path / "run.perfetto-trace"
    assert run(["simulate", "fabric", str(file), "-o", str(trace), "--quiet"]) == 0
    assert trace.read_bytes().count(b"train") == 64
    file.write_text(FILE + LOST)
    assert run(["simulate", "fabric", str(file), "--quiet"]) == 1
    assert "never end" in capfd.readouterr().out
    file.write_text(FILE.replace("ranks", "rnaks"))
    assert run(["simulate", "fabric", str(file), "--quiet"]) == 2
    assert f"{file}:18" in capfd.readouterr().err


CASES = (
    {"on": "fat-tree", "chips": "64", "job": "collective=all-reduce,ranks=64,size=64MB"},
    {"on": "rail-optimised", "chips": "64", "chip": "h200-sxm", "job": "algorithm=two-level,size=1GB", "seed": "4"},
    {
        "on": "leaf-spine", "chips": "64", "bandwidth": "400 Gb/s", "transport": "roce",
        "job": "collective=all-to-all,ranks=0-31,size=8MB", "background": "pattern=incast,target=3,size=1MB",
        "failure": "nics=5,start=100us,duration=1ms,left=50%", "stall": "chip=7,start=10us,duration=50us",
    },
    {"on": "torus", "sides": "4x4x4", "job": "collective=send-recv,size=1MB", "failure": "links=0"},
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["on"])
def test_every_border_gives_the_same_answer_and_its_next_commands_run(
    case: dict[str, str], shelf: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = asked_everywhere("simulate fabric", case, shelf)
    assert answer.next_commands
    for line in answer.next_commands:
        assert runs(line) if "-o " not in line else True, line


def test_flows_that_never_end_are_a_no(shelf: Catalog) -> None:
    job = {"collective": "all-reduce", "size": "64MB"}
    lost = dh.simulate_fabric(on="fat-tree", chips=64, job=job, failure="chips=5,start=100us", catalog=shelf)
    assert lost.verdict == "no"
    assert lost.results["makespan_s"] is None
    with pytest.raises((ScenarioError, DatahallError)):
        dh.simulate_fabric(on="fat-tree", chips=64, job=job, failure="chips=5", catalog=shelf)


UEC = """
[transport.uec]
source = { title = "t", date = "2026-01" }
title = "Ultra Ethernet"
flow_control = "credits"
repeat = "selective"
routing = "spray"
mtu = "4096 B"
header = "80 B"
host_latency = "1 us"
timeout = "1 ms"
stuck = "10 ms"
steady = "50 %"
"""
ONE_SWITCH = {"on": "fat-tree", "chips": 64, "job": {"collective": "all-reduce", "size": "64MB"}}


def test_a_lossy_transport_says_what_it_sent_again(shelf: Catalog) -> None:
    whole, lost, alone = (
        dh.simulate_fabric(**ONE_SWITCH, **more, catalog=shelf)
        for more in (
            {},
            {"transport": "lossy", "loss": "1 %"},
            {"transport": "lossy", "loss": "1 %", "selective_repeat": True},
        )
    )
    for answer in (lost, alone):
        (note,) = [note for note in answer.notes if "1 % of packets are lost" in note]
        assert "of their rate; a message waits 2 ms on average" in note
        assert answer.results["resent_fraction"] == pytest.approx(0.01)
        assert answer.results["makespan_s"] > whole.results["makespan_s"] + 2e-3
    assert any("again at half the rate" in note for note in lost.notes)
    assert any("again alone" in note for note in alone.notes)
    assert "resent_fraction" not in whole.results


def test_every_transport_of_the_catalogue_can_be_simulated(shelf: Catalog, tmp_path: Path) -> None:
    """One that is added, too: flows have its steady rate, and wait for a stuck chip as long as it does."""
    (tmp_path / "uec.toml").write_text(UEC)
    own = Catalog(extra=[str(tmp_path)], user=False)
    plain = dh.simulate_fabric(**ONE_SWITCH, catalog=shelf)
    for name in (*(one.name for one in shelf.transports()), "uec"):
        answer = dh.simulate_fabric(**ONE_SWITCH, transport=name, catalog=own)
        assert answer.results["makespan_s"] >= plain.results["makespan_s"]
    assert answer.results["makespan_s"] > 1.6 * plain.results["makespan_s"]
    assert any("flows keep 50 % of their rate" in note for note in answer.notes)
    with pytest.raises(DatahallError, match="lanes does nothing here"):
        dh.simulate_fabric(**ONE_SWITCH, transport="tcp", lanes=1, catalog=own)
    with pytest.raises(DatahallError, match="uec does not drop packets"):
        dh.simulate_fabric(**ONE_SWITCH, transport="uec", loss="1 %", catalog=own)


def test_a_lossy_transport_that_loses_nothing_is_said_to_do_nothing(shelf: Catalog) -> None:
    plain, lossy = (
        dh.simulate_fabric(**ONE_SWITCH, **more, catalog=shelf) for more in ({}, {"transport": "lossy"})
    )
    assert plain.results == lossy.results
    assert any(note.startswith("transport does nothing here") for note in lossy.notes)
    assert not any("packets are lost" in note for answer in (plain, lossy) for note in answer.notes)


def test_queue_pairs_on_one_path_are_counted_as_the_table_counts_them(shelf: Catalog) -> None:
    plain, split = (dh.simulate_fabric(**ONE_SWITCH, **more, catalog=shelf) for more in ({}, {"paths": 4}))
    assert split.results["num_flows"] == 4 * plain.results["num_flows"]
    assert split.results["makespan_s"] == pytest.approx(plain.results["makespan_s"])
    assert any("each flow in 4 queue pairs, which count as flows" in note for note in split.notes)
    assert any(note.startswith("paths does nothing here") for note in split.notes)


def test_levels_are_of_jobs_and_background_alone_has_none() -> None:
    asked = {
        "on": "fat-tree", "chips": 64, "check_with": "closed-form",
        "background": [{"pattern": "random", "size": "1 MB", "load": "10 %", "until": "100 us"}],
    }  # fmt: skip
    notes = dh.simulate_fabric(**asked).notes
    assert any("check_with does nothing here" in note for note in notes)


def test_what_spraying_costs_is_said() -> None:
    asked = {"on": "fat-tree", "chips": 64, "job": [{"collective": "all-reduce", "size": "1 MB"}]}
    plain, sprayed = (dh.simulate_fabric(**asked | more) for more in ({}, {"routing": "spray"}))
    assert not any("sprayed" in note for note in plain.notes)
    assert any("sprayed packets" in note and "95 %" in note for note in sprayed.notes)


ASKED = {"on": "fat-tree", "chips": 64, "job": {"collective": "all-reduce", "ranks": 64, "size": "64 MB"}}
WIDE = {"on": "fat-tree", "chips": 128, "job": {"collective": "all-to-all", "ranks": 128, "size": "64 MB"}}
SLOWED = {"switches": "4", "start": "1 us", "left": "10 %"}


@pytest.mark.parametrize("routing", ["ecmp", "adaptive", "spray"])
def test_a_time_to_reroute_that_changes_nothing_is_said(routing: str) -> None:
    now, later = (
        dh.simulate_fabric(**WIDE, routing=routing, failure=SLOWED | {"reroute": time})
        for time in ("0 s", "200 us")
    )
    idle = now.results["makespan_s"] == later.results["makespan_s"]
    assert idle == (routing != "spray")
    assert any("reroute does nothing here" in note for note in now.notes) == idle


def test_ways_that_are_left_after_the_end_are_not_spoken_of() -> None:
    words = "flows take the ways that are left then"
    for start, spoken in (("1 us", True), ("10 d", False)):
        notes = dh.simulate_fabric(**ASKED, failure={"nics": "3", "start": start, "reroute": "1 us"}).notes
        assert any(words in note for note in notes) == spoken, notes


def test_a_job_that_repeats_says_how_often_and_how_long_one_run_takes() -> None:
    asked = {"collective": "all-reduce", "ranks": "0-63", "size": "16MB"}
    once = dh.simulate_fabric(on="fat-tree", chips=64, job=asked)
    thrice = dh.simulate_fabric(on="fat-tree", chips=64, job=asked | {"repeat": 3, "pause": "1ms"})
    run_s = once.results["makespan_s"]
    assert thrice.results["makespan_s"] == pytest.approx(3 * run_s + 2e-3)
    assert (thrice.results["num_runs"], thrice.results["run_s"]) == (3, pytest.approx(run_s))
    assert thrice.headline.startswith("3 × all-reduce 0 of 16 MB on ")
    assert f"({fmt(run_s, 's')} each)" in thrice.headline
    (row,), (alone,) = thrice.tables[0].records(), once.tables[0].records()
    assert (row["runs"], row["run_s"]) == (3, pytest.approx(run_s))
    assert row["bus_bandwidth_bytes_per_s"] == pytest.approx(alone["bus_bandwidth_bytes_per_s"])
    assert "runs" not in alone
