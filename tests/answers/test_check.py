"""`check` knows what a file is, whatever it is called, and lists every problem with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datahall import check
from datahall.answer import Answer
from datahall.answers.ask import scenario_file
from datahall.answers.file import verb_of
from datahall.answers.verbs import BY_NAME, VERBS
from datahall.catalog import Catalog, document
from datahall.errors import ScenarioError
from datahall.scenario.read import is_scenario

CHIP = """[chip.my-chip]
source = { title = "my bench", date = "2026-03", kind = "measured" }
title = "My chip"
vendor = "Me"
family = "hopper"
memory = "64 GB"
memory_bandwidth = "2 TB/s"
"""
FAILURES = """[failures.mine]
source = { title = "our own log", date = "2026-11", kind = "measured" }
title = "mine"
chip = "h100-sxm"
node_chips = 8
[failures.mine.causes]
"gpu fell off" = { component = "chip", rate = "0.004/day" }
"""
ROOFLINE = """version = 1
ask = "show roofline"
model = "llama-3.1-8b"
[deployment]
chip = "h200"
[sequences]
batch = 8
"""
HIERARCHY = """version = 1
[deployment]
chip = "h100-sxm"
[working_set]
working_set = "2 GB"
"""


def checked(folder: Path, shelf: Catalog, text: str, name: str = "file.toml") -> Answer:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return check(str(file), catalog=shelf)


def problems(answer: Answer) -> list[tuple[object, ...]]:
    return [row for table in answer.tables if table.title == "problems" for row in table.rows]


@pytest.mark.parametrize(
    ("text", "holds", "then"),
    [
        (CHIP, "chip my-chip", "datahall catalog add"),
        (FAILURES, "failures mine", "datahall catalog add"),
        (ROOFLINE, "a scenario that asks show roofline", "datahall show roofline"),
        (HIERARCHY, "a scenario that asks show hierarchy", "datahall show hierarchy"),
    ],
    ids=["catalogue", "named as a section is", "named", "by its sections"],
)
def test_a_file_is_known_by_what_it_holds(
    tmp_path: Path, shelf: Catalog, text: str, holds: str, then: str
) -> None:
    answer = checked(tmp_path, shelf, text)
    assert answer.verdict == "yes"
    assert holds in answer.headline
    assert answer.next_commands[0].startswith(then)
    assert str(tmp_path) in answer.next_commands[0]


def test_a_scenario_may_be_json(tmp_path: Path, shelf: Catalog) -> None:
    asked = {"version": 1, "ask": "show chip", "claim": {"chip": "h200"}}
    assert "asks show chip" in checked(tmp_path, shelf, json.dumps(asked), "question.json").headline
    asked["claim"] = {"chip": 7}
    assert checked(tmp_path, shelf, json.dumps(asked, indent=1), "question.json").verdict == "no"


@pytest.mark.parametrize(
    ("text", "lines", "words"),
    [
        (ROOFLINE.replace("batch = 8", "batch = 0\ncontext = -1"), {7, 8}, "at least 1"),
        (ROOFLINE.replace("h200", "h20x"), {5}, "is not a chip"),
        (ROOFLINE.replace("llama-3.1-8b", "lama"), {3}, "is not a model"),
        (ROOFLINE.replace("[sequences]", "[sequence]"), {6}, "unknown"),
        (ROOFLINE.replace("[sequences]", "[traffic]"), {6}, "takes no [traffic]"),
        (ROOFLINE.replace("version = 1", "version = 2"), {1}, "version is 2"),
        (ROOFLINE.replace("show roofline", "show rooflin"), {2}, "asks 'show rooflin'"),
        (HIERARCHY.replace("working_set = ", "working_sett = "), {5}, "did you mean"),
    ],
)
def test_every_problem_has_its_line(
    tmp_path: Path, shelf: Catalog, text: str, lines: set[int], words: str
) -> None:
    answer = checked(tmp_path, shelf, text)
    assert answer.verdict == "no"
    found = problems(answer)
    assert {str(row[0]) for row in found} == {f"{tmp_path / 'file.toml'}:{line}" for line in lines}
    assert any(words in f"{row[1]} {row[2]}" for row in found)
    assert answer.results["num_problems"] == len(found)


def test_the_config_that_a_scenario_names_is_read(tmp_path: Path, shelf: Catalog) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": "wide"}')
    answer = checked(tmp_path, shelf, ROOFLINE.replace("llama-3.1-8b", "config.json"))
    assert answer.verdict == "no"
    assert any("hidden_size" in str(row[1]) for row in problems(answer))


def test_inputs_are_spelled_as_the_file_has_them(tmp_path: Path, shelf: Catalog) -> None:
    answer = checked(tmp_path, shelf, ROOFLINE.replace('chip = "h200"', "# chip"))
    (row,) = problems(answer)
    assert "deployment.chip is missing" in str(row[1])
    assert "--" not in " ".join(map(str, row[1:]))


def read(text: str) -> document.Document:
    return document.parse(text, "x.toml")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("version = 1", True),
        ('ask = "show chip"', True),
        ('model = "llama-3.1-8b"', True),
        ("[traffic]\nrate = 5", True),
        ('[fabric]\ntopology = "torus"', True),
        ('[fabric.mine]\ntitle = "Mine"', False),
        ('[failures]\nfailures_like = "llama-3"', True),
        ('[failures.mine]\ntitle = "Mine"', False),
        ('[[region]]\nname = "east"', True),
        ('[region.mine]\ntitle = "Mine"', False),
        ("[model.mine]\nhidden = 8", False),
        ("[chip.mine]\nmemory = 1", False),
        ('model_type = "llama"\nversion = 1', False),
    ],
)
def test_a_scenario_is_known_from_a_catalogue_file(text: str, is_one: bool) -> None:
    assert is_scenario(read(text)) is is_one


def test_the_verb_is_the_one_that_takes_most_of_it() -> None:
    looks = [verb for verb in VERBS if verb.group == "show"]
    assert verb_of(read(HIERARCHY), looks) is BY_NAME["show hierarchy"]
    assert verb_of(read('ask = "show chip"'), looks) is BY_NAME["show chip"]
    with pytest.raises(ScenarioError, match='ask = one of "show '):
        verb_of(read("version = 1"), looks)
    with pytest.raises(ScenarioError, match="asks 'plan serve'"):
        verb_of(read('ask = "plan serve"'), looks)


@pytest.mark.parametrize("text", ["version = 1\n", "version = 1\n[traffic]\n"])
def test_a_file_that_says_nothing_is_not_right(tmp_path: Path, shelf: Catalog, text: str) -> None:
    answer = checked(tmp_path, shelf, text)
    assert answer.verdict == "no"
    assert any("says nothing that is asked" in str(row[1]) for row in problems(answer))


@pytest.mark.parametrize(
    ("content", "asks"),
    [
        ({"version": 1, "ask": "show chip"}, True),
        ({"version": 1, "model_type": "llama"}, False),  # some models' config.json has a version of its own
        ({"version": 2, "ask": "show chip"}, True),  # and is told which version is read
        ({"version": "1", "model": "llama-3.1-8b"}, True),
        ({"model": "llama-3.1-8b", "traffic": {"rate": 20}}, True),
        ({"hidden_size": 64}, False),
        ({"model_type": "llama"}, False),
    ],
)
def test_a_json_file_asks_unless_it_describes_a_model(
    tmp_path: Path, content: dict[str, object], asks: bool
) -> None:
    file = tmp_path / "file.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    assert (scenario_file(str(file)) is not None) is asks


def test_a_gateways_file_is_checked_as_one(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[upstream.u]\nurl = "http://10.0.0.7"\n[model.m]\nupstreams = ["u"]\n')
    answer = check(str(file))
    assert answer.verdict == "yes"
    assert answer.next_commands == (f"datahall serve {file}",)
    file.write_text(file.read_text() + "retires = 3\n")
    answer = check(str(file))
    assert answer.verdict == "no"
    assert (f"{file}:5", 'nothing is called "retires" here', "did you mean retries?") in answer.tables[0].rows
