"""`simulate serve scenario.toml` and `check scenario.toml`, from the command line to their exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from datahall.answers.serving.simulation import simulate_serve
from datahall.errors import ScenarioError

PLAIN = """
version = 1
model = "llama-3.1-8b"
seed = 3
[[pool]]
chip = "h100-sxm"
count = 2
[traffic]
prompt = 300
output = 40
rate = 8
requests = 600
[slo]
ttft = "500 ms"
tpot = "40 ms"
"""
FULL = """
version = 1
kind = "serving"
name = "everything"
model = "llama-3.1-8b"
[[region]]
name = "eu"
to = { us = "40 ms" }
[[region]]
name = "us"
[[pool]]
chip = "h100-sxm"
count = 2
region = "eu"
[[pool]]
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
prompt = 800
output = 30
rate = 2
duration = "2 min"
region = "us"
priority = 1
[autoscaling]
least = 1
most = 3
interval = "5 s"
cold_start = "10 s"
patience = "30 s"
[[outage]]
replica = "0-1"
start = "40 s"
duration = "20 s"
[cache]
questions = 500
[cache.process]
entries = 200
[cache.semantic]
hits = "20 %"
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
    assert asked["results"].items() <= said["results"].items()
    assert set(titles(asked)) == set(titles(said))
    assert {**asked["inputs"], "scenario": said["inputs"]["scenario"]} == said["inputs"]


def test_everything_at_once_has_a_table_for_each(datahall: Callable, write: Callable) -> None:
    code, out, err = datahall("simulate", "serve", write(FULL), "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    for title in ("latency", "traffic", "regions", "cache of answers", "outages", "replicas", "autoscaling"):
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


@pytest.mark.parametrize("words", ["--tp 4 --rate 3", "--rate 3 --tp 1"])
def test_flags_that_the_file_decides_are_named(datahall: Callable, write: Callable, words: str) -> None:
    code, out, err = datahall("simulate", "serve", write(PLAIN), *words.split())
    assert (code, out) == (2, "")
    assert "--tp" in err
    assert "--rate" in err
    assert "--seed, --format and -o" in err
    with pytest.raises(ScenarioError, match="--cold-start beside a scenario"):
        simulate_serve(write(PLAIN), cold_start="1 s")


def test_the_answer_leaves_in_every_format(datahall: Callable, write: Callable, tmp_path: Path) -> None:
    file = write(FULL)
    for name in ("run.html", "run.md", "run.csv", "run.json", "run.perfetto-trace"):
        assert datahall("simulate", "serve", file, "-o", str(tmp_path / name), "--quiet").code == 0
        assert (tmp_path / name).stat().st_size > 100
    page = (tmp_path / "run.html").read_text()
    assert "replicas and load" in page
    assert "requests in the system" in page


def test_check_knows_both_kinds_of_scenario(datahall: Callable, write: Callable) -> None:
    serving = datahall("check", write(FULL))
    assert serving.code == 0
    words = " ".join(serving.out.split())
    assert "a serving scenario, llama-3.1-8b on 3 replicas of 3 chips in all, traffic chat + jobs" in words
    assert "with 2 regions, 2 outages, autoscaling, a cache of answers" in words
    assert "datahall simulate serve" in words
    fabric = datahall("check", write(FABRIC))
    assert fabric.code == 0
    assert "a fabric scenario, 1 job and 0 bursts" in " ".join(fabric.out.split())
    assert "datahall simulate fabric" in fabric.out


BROKEN = [
    ("", 1, "holds no entries"),
    ('kind = "serving"\n', 1, '"version" is missing'),
    ('kind = "servng"\n', 1, "one of serving, fabric"),
    (PLAIN.replace("rate = 8", "rate = -8"), 1, "rate is -8"),
    (PLAIN.replace("rate", "rtae"), 1, "did you mean rate?"),
    (PLAIN.replace("h100-sxm", "h100-sx"), 1, "did you mean: h100-sxm"),
    (PLAIN.replace("8b", "70b"), 1, "holds no sequence"),
    (PLAIN[:40], 1, "scenario.toml:4"),
    (FABRIC.replace("fat-tree", "fat-tre"), 1, "did you mean fat-tree?"),
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
        ("", 2, "4 problems"),
        (PLAIN.replace("count = 2", "count = -2"), 2, "scenario.toml:7: count is -2"),
        (PLAIN.replace("8b", "70b"), 1, "--> "),
        (PLAIN[:40], 2, "scenario.toml:4"),
        (PLAIN.replace("count = 2", 'role = "decode"'), 2, "prefill and decode pools come together"),
        (FABRIC, 2, 'unknown key "fabric"'),
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
