"""`simulate serve scenario.toml` and `check scenario.toml`, from the command line to their exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import datahall as dh

PLAIN = """
version = 1
model = "llama-3.1-8b"
seed = 3
[[deployment]]
chip = "h100-sxm"
replicas = 2
[traffic]
isl = 300
osl = 40
rate = 8
requests = 600
[promise]
ttft = "500 ms"
tpot = "40 ms"
"""
FULL = """
version = 1
ask = "simulate serve"
name = "everything"
model = "llama-3.1-8b"
[[region]]
name = "eu"
to = { us = "40 ms" }
[[region]]
name = "us"
[[deployment]]
chip = "h100-sxm"
replicas = 2
region = "eu"
[[deployment]]
chip = "l40s"
region = "us"
[[traffic]]
name = "chat"
preset = "sharegpt"
rate = 8
duration = "2 min"
region = "eu"
[[traffic]]
name = "jobs"
isl = 800
osl = 30
rate = 2
duration = "2 min"
region = "us"
priority = 1
[router]
autoscale = "1..3"
interval = "5 s"
cold_start = "10 s"
patience = "30 s"
[[failure]]
replicas = "0-1"
start = "40 s"
duration = "20 s"
[cache]
questions = 500
process = 200
semantic = "20 %"
"""
FABRIC = """
version = 1
[fabric]
topology = "fat-tree"
chips = 64
bandwidth = "400 Gb/s"
[[job]]
collective = "all-reduce"
ranks = 32
size = "1 MB"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    def written(text: str) -> str:
        file = tmp_path / "scenario.toml"
        file.write_text(text)
        return str(file)

    return written


def titles(answer: dict) -> list[str]:
    return [table["title"] for table in answer["tables"]]


def test_a_file_says_what_flags_say(datahall: Callable, write: Callable) -> None:
    said = json.loads(datahall("simulate", "serve", write(PLAIN), "--json").out)
    flags = "--chip h100-sxm --replicas 2 --isl 300 --osl 40 --rate 8 --requests 600 --ttft 500ms --tpot 40ms --seed 3"
    asked = json.loads(datahall("simulate", "serve", "llama-3.1-8b", *flags.split(), "--json").out)
    assert asked["results"] == said["results"]
    assert asked["tables"] == said["tables"]
    assert asked["figure"] == said["figure"]
    assert {**asked["inputs"], "scenario": said["inputs"]["scenario"]} == said["inputs"]


def test_everything_at_once_has_a_table_for_each(datahall: Callable, write: Callable) -> None:
    code, out, err = datahall("simulate", "serve", write(FULL), "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    for title in ("latency", "traffic", "regions", "cache of answers", "failures", "replicas", "autoscaling"):
        assert title in titles(answer)
    results = answer["results"]
    assert results["num_unfinished"] == 0
    assert results["num_rerouted"] > 0
    assert results["recomputed_tokens"] > 0
    assert results["answered_fraction"] == pytest.approx(results["expected_answered_fraction"], abs=0.05)
    assert results["miss_wait_s"] == pytest.approx(30.05e-3)
    assert 1 <= results["peak_replicas"] <= 3
    tables = {table["title"]: table for table in answer["tables"]}
    regions, streams = tables["regions"]["rows"], tables["traffic"]["rows"]
    assert sum(row["requests"] for row in regions) == sum(row["requests"] for row in streams)
    assert [row["from"] for row in regions] == ["eu", "us"]


def test_a_seed_of_the_command_wins_over_that_of_the_file(datahall: Callable, write: Callable) -> None:
    file = write(PLAIN)
    plain, same, other = (
        json.loads(datahall("simulate", "serve", file, *more, "--json").out)
        for more in ((), ("--seed", "3"), ("--seed", "4"))
    )
    assert plain["results"] == same["results"]
    assert plain["results"]["ttft_mean_s"] != other["results"]["ttft_mean_s"]
    assert other["inputs"]["seed"] == 4


def test_flags_beside_a_file_stand_in_its_place_and_that_is_said(datahall: Callable, write: Callable) -> None:
    code, out, err = datahall("simulate", "serve", write(PLAIN), "--rate", "3", "--tp", "2", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    changed = PLAIN.replace("rate = 8", "rate = 3").replace("replicas = 2", "replicas = 2\ntp = 2")
    assert (
        answer["results"]
        == json.loads(datahall("simulate", "serve", write(changed), "--json").out)["results"]
    )
    said = [note for note in answer["notes"] if "in place of" in note]
    assert len(said) == 1  # tp was not in the file, so nothing gave way to it
    assert "rate 8" in said[0]
    assert "scenario.toml" in said[0]


def test_a_flag_that_could_mean_several_tables_is_refused(datahall: Callable, write: Callable) -> None:
    code, out, err = datahall("simulate", "serve", write(FULL), "--tp", "2", "--rate", "3")
    assert (code, out) == (2, "")
    assert "the file has 2 tables [[deployment]]" in err
    assert "the file has 2 tables [[traffic]]" in err
    assert dh.simulate_serve(write(PLAIN), requests=50).results["num_arrived"] == 50


def test_follow_ups_of_a_file_keep_what_was_said_beside_it(datahall: Callable, write: Callable) -> None:
    words = ("--ttft", "300ms", "--failure", "replicas=0,start=10s,duration=5s")
    answer = json.loads(datahall("simulate", "serve", write(FULL), *words, "--json").out)
    asked_again = [line for line in answer["next_commands"] if "simulate" in line]
    assert asked_again
    for line in asked_again:
        assert "scenario.toml" in line
        assert "--ttft 300ms" in line
        assert "--failure replicas=0,start=10s,duration=5s" in line
        assert "--tpot" not in line  # the file says the rest


def test_the_answer_leaves_in_every_format(datahall: Callable, write: Callable, tmp_path: Path) -> None:
    file = write(FULL)
    for name in ("run.html", "run.md", "run.csv", "run.json", "run.perfetto-trace"):
        assert datahall("simulate", "serve", file, "-o", str(tmp_path / name), "--quiet").code == 0
        assert (tmp_path / name).stat().st_size > 100
    page = (tmp_path / "run.html").read_text()
    assert "replicas over time" in page
    assert "requests in the system" in page


def test_check_knows_what_a_scenario_asks(datahall: Callable, write: Callable) -> None:
    for text, verb in ((FULL, "simulate serve"), (PLAIN, "simulate serve"), (FABRIC, "simulate fabric")):
        code, out, err = datahall("check", write(text))
        assert (code, err) == (0, "")
        assert "is right" in " ".join(out.split())
        assert f"datahall {verb}" in out


BROKEN = [
    ("", 1, "holds no entries"),
    ('ask = "simulate serve"\n', 1, '"version" is missing'),
    ('version = 1\nask = "simulate servng"\n', 1, "simulate serve"),
    (PLAIN.replace("rate = 8", "rate = -8"), 1, "rate: -8 is too small"),
    (PLAIN.replace("rate", "rtae"), 1, "did you mean traffic.rate?"),
    (PLAIN.replace("h100-sxm", "h100-sx"), 1, "did you mean: h100-sxm"),
    (PLAIN.replace("8b", "70b").replace("replicas = 2", "tp = 1"), 1, "holds no sequence"),
    (PLAIN[:40], 1, "scenario.toml:4"),
    (FABRIC.replace("fat-tree", "fat-tre"), 1, "fat-tree"),
]


@pytest.mark.parametrize(("text", "code", "said"), BROKEN, ids=range(len(BROKEN)))
def test_check_lists_what_is_wrong(
    datahall: Callable, write: Callable, text: str, code: int, said: str
) -> None:
    found = datahall("check", write(text), "--json")
    assert found.code == code
    problems = json.loads(found.out)["tables"][0]["rows"]
    assert any(said in " ".join(map(str, row.values())) for row in problems)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", 2, "2 problems"),
        (
            PLAIN.replace("replicas = 2", "replicas = -2"),
            2,
            "scenario.toml:7: deployment.replicas: -2 is too small",
        ),
        (PLAIN.replace("8b", "70b").replace("replicas = 2", "tp = 1"), 1, "--> "),
        (PLAIN[:40], 2, "scenario.toml:4"),
        (PLAIN.replace("replicas = 2", 'role = "decode"'), 2, "prefill and decode pools come together"),
        (FABRIC, 2, "simulate serve takes no [job]"),
    ],
)
def test_a_wrong_file_ends_with_its_code(
    datahall: Callable, write: Callable, text: str, code: int, said: str
) -> None:
    found = datahall("simulate", "serve", write(text))
    assert (found.code, found.out) == (code, "")
    assert said in found.err
    assert "Traceback" not in found.err


def test_a_file_that_is_not_there_is_said_to_be_missing(datahall: Callable) -> None:
    for words in (("simulate", "serve", "gone.toml"), ("check", "gone.toml")):
        found = datahall(*words)
        assert found.code in (1, 2)
        assert "No such file" in found.out + found.err


def test_check_reads_the_trace_too(datahall: Callable, write: Callable, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival_s,prompt,output\n0,100,10\n1,-5,10\n")
    file = write(PLAIN.partition("[traffic]")[0] + '[traffic]\ntrace = "t.csv"\n')
    found = datahall("check", file, "--json")
    assert found.code == 1
    assert "t.csv:3" in found.out
    (tmp_path / "t.csv").write_text("arrival_s,prompt,output\n0,100,10\n1,5,10\n")
    assert datahall("check", file).code == 0
    assert json.loads(datahall("simulate", "serve", file, "--json").out)["results"]["num_finished"] == 2


def test_entries_of_the_catalogue_are_still_checked_as_such(datahall: Callable, write: Callable) -> None:
    source = 'source = { title = "t", date = "2026" }\n'
    chip = f'[chip.x]\ntitle = "X"\nvendor = "v"\nfamily = "cpu"\nmemory = "1 GB"\n{source}'
    found = datahall("check", write(chip))
    assert found.code == 0
    assert "chip x" in " ".join(found.out.split())
    assert "datahall catalog add" in found.out
