"""Scenarios of a service that are wrong: every problem at once, with its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from datahall.answers.ask import ask, scenario_file
from datahall.catalog import Catalog
from datahall.errors import DocumentError, InfeasibleError, spelled
from datahall.inference.fleet.service import Service

Read = Callable[[str], Service]
Problems = Callable[[str], list[str]]

ROOT = 'version = 1\nmodel = "llama-3.1-8b"\n'
POOL = '[[deployment]]\nchip = "h100-sxm"\n'
TRAFFIC = "[traffic]\nisl = 200\nosl = 40\nrate = 5\nrequests = 300\n"
REGIONS = '[[region]]\nname = "eu"\ninside = "1 ms"\nto = { us = "40 ms" }\n[[region]]\nname = "us"\n'
FAILURE = '[[failure]]\nreplicas = 0\nstart = "1 s"\nduration = "1 s"\n'


def test_every_value_that_cannot_be_read_is_found_at_once_with_its_line(problems: Problems) -> None:
    found = problems(
        'version = 2\nmodle = "llama-3.1-8b"\nmodel = "llama-3.1-8"\n'  # 1-3
        '[router]\nrouting = "round"\n'  # 4-5
        '[[deployment]]\nchip = "h100-sx"\nreplicas = -2\nenginee = "vllm"\nrole = "prefil"\n'  # 6-10
        '[[deployment]]\nchip = "h100-sxm"\ntoken_budget = "8k apples"\ndrft = "mtp"\nacceptance = "150 %"\n'  # 11-15
        '[traffic]\nrate = 3\nusers = 4\nisl = { shape = "lognorml" }\npreset = "shargpt"\n'  # 16-20
        '[[failure]]\nreplicas = "all"\nstart = "-3 s"\n'  # 21-23
        "[cache]\nsemantic = 2\n[promise]\nttft = 500\n"  # 24-27
    )
    wanted = (
        "s.toml:1: version is 2; this release reads version = 1",
        's.toml:2: unknown key "modle"; did you mean model?',
        's.toml:3: "llama-3.1-8" is not a model in the catalogue; did you mean: llama-3.1-8b',
        's.toml:5: router.routing: there is no "round"; one of round-robin',
        's.toml:7: "h100-sx" is not a chip in the catalogue; did you mean: h100-sxm',
        "s.toml:8: deployment.replicas: -2 is too small; it must be at least 1",
        's.toml:9: unknown key "enginee"; did you mean deployment.engine?',
        's.toml:10: deployment.role: there is no "prefil"; one of both, prefill, decode; did you mean prefill?',
        "s.toml:13: deployment.token_budget: '8k apples'",
        's.toml:14: unknown key "drft"; did you mean deployment.draft?',
        "s.toml:15: deployment.acceptance: 150 % is out of bounds; above 0 % and at most 100 %",
        "s.toml:15: deployment.acceptance does nothing here: it needs deployment.draft",
        "s.toml:17: traffic.rate and traffic.users do not go together; say one of them",
        's.toml:19: "lognorml" is not a shape; did you mean: lognormal',
        's.toml:20: "shargpt" is not a traffic; did you mean: sharegpt',
        's.toml:22: replicas: "all" cannot be read',
        "s.toml:23: start: -3 s is too small; it must be at least 0",
        's.toml:25: semantic: 2 is out of bounds; at least 0 % and below 100 %; did you mean "2 %"?',
        's.toml:27: promise.ttft: 500 has no unit; e.g. "50 ms"',
    )
    assert len(found) == len(wanted)
    for line, start in zip(found, wanted, strict=True):  # in the order of their lines
        assert line.startswith(start), (start, found)


def test_everything_that_cannot_be_built_is_found_at_once_with_its_line(problems: Problems) -> None:
    found = problems(
        ROOT + '[measurement]\nwarmup = "5 s"\nuntil = "2 s"\n'  # 3-5
        + POOL + 'region = "eu"\n' + POOL + "tp = 3\n"  # 6-11
        + TRAFFIC + "[cache]\nquestions = 5\n"  # 12-18
    )  # fmt: skip
    wanted = (
        "s.toml:4: nothing is measured: the warm-up ends after 5 s, the run after 2 s",
        's.toml:8: "eu" is not a region; describe it: [[region]] with name=eu',
        "s.toml:11: llama-3.1-8b: deployment.tp = 3 breaks the rule",
        "s.toml:17: a cache without tiers; process, shared or semantic",
    )
    assert len(found) == len(wanted)
    assert all(line.startswith(start) for line, start in zip(found, wanted, strict=True)), found


WRONG = [
    # what is wrong, text after the root, what the first problem says
    ("no traffic", POOL, "s.toml: how often requests come is not said; e.g. traffic.rate = 80"),
    ("no traffic source", POOL + "[traffic]\nisl = 5\n", "s.toml:5: how often requests come is not said"),
    (
        "role alone",
        POOL + 'role = "prefill"\n' + TRAFFIC,
        "s.toml:3: pools with the role prefill do not make",
    ),
    ("text", 'deployment = "h100"\n' + TRAFFIC, "s.toml:3: deployment must be a table; write [[deployment]]"),
    ("several", POOL + TRAFFIC + 2 * "[[promise]]\n", "s.toml:10: 2 tables of promise; one: [promise]"),
    (
        "another verb's",
        POOL + TRAFFIC + "[training]\nseq = 5\n",
        "s.toml:10: simulate serve takes no [training]",
    ),
    (
        "another verb's key",
        POOL + TRAFFIC + "[fabric]\nradix = 5\n",
        "s.toml:11: simulate serve takes no radix",
    ),
    ("tp of 3", POOL + "tp = 3\n" + TRAFFIC, "s.toml:5: llama-3.1-8b: deployment.tp = 3 breaks the rule"),
    (
        "fp8 on a100",
        '[[deployment]]\nchip = "a100-sxm-80gb"\nprecision = "fp8"\n' + TRAFFIC,
        "s.toml:5: NVIDIA A100 SXM 80 GB has no FP8",
    ),
    ("chip without a name", '[[deployment]]\nchip = ""\n' + TRAFFIC, 's.toml:4: "" is not a chip'),
    ("precision", POOL + 'precision = "fp7"\n' + TRAFFIC, 's.toml:5: "fp7" is not a precision'),
    ("engine", POOL + 'engine = "vlm"\n' + TRAFFIC, 's.toml:5: "vlm" is not an engine; did you mean: vllm'),
    ("draft", POOL + 'draft = "nope"\n' + TRAFFIC, 's.toml:5: "nope" is not a draft'),
    (
        "too many",
        POOL + "replicas = 200000\n" + TRAFFIC,
        "s.toml:5: deployment.replicas: 200000 is too large; it must be at most",
    ),
    ("handoff", POOL + 'handoff = "1 GB/s"\n' + TRAFFIC, "s.toml:5: only a prefill pool hands"),
    (
        "half a replica",
        POOL + "replicas = 1.5\n" + TRAFFIC,
        "s.toml:5: deployment.replicas: 1.5 is not a whole number",
    ),
    (
        "flag",
        POOL + 'prefix_caching = "no"\n' + TRAFFIC,
        's.toml:5: deployment.prefix_caching: "no" cannot be read; true or false',
    ),
    (
        "waiting",
        POOL + 'wait = "5 ms"\n' + TRAFFIC,
        's.toml:5: deployment.wait does nothing here: it needs deployment.batching = "dynamic" or',
    ),
    (
        "adapters",
        POOL + "adapter_rank = 4\n" + TRAFFIC,
        "s.toml:5: deployment.adapter_rank does nothing here: it needs",
    ),
    (
        "pools",
        POOL + 'disaggregated = "prefill=1xh200,decode=1xh10"\n' + TRAFFIC,
        's.toml:5: "h10" is not a chip',
    ),
    (
        "no region",
        REGIONS + POOL + TRAFFIC + 'region = "eu"\n',
        "s.toml:9: deployment.region is missing beside regions; one of eu, us",
    ),
    (
        "region name",
        REGIONS + POOL + 'region = "es"\n' + TRAFFIC + 'region = "eu"\n',
        's.toml:11: "es" is not a region; one of eu, us',
    ),
    (
        "region to",
        REGIONS.replace("us = ", "ue = ") + POOL + 'region = "eu"\n' + TRAFFIC + 'region = "eu"\n',
        's.toml:3: "ue" is not a region; one of eu, us; did you mean us?',
    ),
    (
        "negative rate",
        POOL + TRAFFIC.replace("rate = 5", "rate = -5"),
        "s.toml:8: traffic.rate: -5 is too small; it must be above",
    ),
    (
        "no rate",
        POOL + TRAFFIC.replace("rate = 5", "rate = 0"),
        "s.toml:8: traffic.rate: 0 is too small; it must be above 0",
    ),
    (
        "rate in words",
        POOL + TRAFFIC.replace("rate = 5", 'rate = "many"'),
        's.toml:8: traffic.rate: "many" is not a number',
    ),
    (
        "two movements",
        POOL + TRAFFIC + 'swing = 0.5\nbusy = "1 s"\nlull = "1 s"\n',
        "s.toml:8: the rate can move in one",
    ),
    ("busy without lull", POOL + TRAFFIC + 'busy = "1 s"\n', "s.toml:10: busy for 1 s, a lull for 0 s"),
    (
        "no end",
        POOL + '[traffic]\nrate = inf\nduration = "1 s"\n',
        "s.toml:7: traffic.duration does nothing here: all requests come at once",
    ),
    (
        "no pause",
        POOL + '[traffic]\nusers = 3\nduration = "1 s"\n',
        "s.toml:6: users who never pause, for a duration",
    ),
    (
        "shares",
        REGIONS + POOL + 'region = "eu"\n' + TRAFFIC + "region = { eu = 0.5 }\n",
        "s.toml:17: traffic.region: shares of regions add up to 0.5",
    ),
    (
        "share of nowhere",
        REGIONS + POOL + 'region = "eu"\n' + TRAFFIC + "region = { ue = 1 }\n",
        's.toml:17: "ue" is not a region; one of eu, us',
    ),
    ("hours", POOL + TRAFFIC + "hourly = [1, 2]\n", "s.toml:10: 2 hourly factors"),
    (
        "prompt too long",
        POOL + TRAFFIC.replace("200", "500000"),
        "s.toml:6: prompts of 500,000 tokens for a context of 131,072",
    ),
    (
        "prompt of nothing",
        POOL + TRAFFIC.replace("200", "0"),
        "s.toml:6: traffic.isl: 0 is too small; it must be at least 1",
    ),
    (
        "lognormal",
        POOL + TRAFFIC.replace("200", '{ shape = "lognormal", mean = 5 }'),
        "s.toml:6: traffic.isl: a lognormal with a mean alone",
    ),
    ("no trace", POOL + '[traffic]\ntrace = "gone.csv"\n', "s.toml:6: traffic.trace: gone.csv is not a file"),
    (
        "users burst",
        POOL + "[traffic]\nusers = 5\nburstiness = 2\n",
        "s.toml:7: traffic.burstiness does nothing here: it needs",
    ),
    (
        "speed of a rate",
        POOL + TRAFFIC + "speed = 2\n",
        "s.toml:10: traffic.speed does nothing here: it needs traffic.trace",
    ),
    (
        "failure of nobody",
        POOL + TRAFFIC + FAILURE.replace("= 0", "= 7"),
        "s.toml:10: replica 7 is not there; 0 to 0",
    ),
    (
        "failure of what",
        POOL + TRAFFIC + FAILURE.replace("replicas = 0\n", ""),
        "s.toml:10: a failure names what is out",
    ),
    (
        "failure of a chip",
        POOL + TRAFFIC + '[fabric]\ntopology = "fat-tree"\n' + FAILURE.replace("replicas", "chips"),
        "s.toml:12: a part of the fabric is out all the time here",
    ),
    ("failure twice", POOL + TRAFFIC + 2 * FAILURE, "s.toml:14: replica 0 is out from 1 s for 1 s already"),
    (
        "most",
        POOL + "replicas = 4\n" + TRAFFIC + '[router]\nautoscale = "1..2"\n',
        "s.toml:12: the first pool starts with 4 replicas",
    ),
    (
        "tier name",
        POOL + TRAFFIC + "[cache]\nshard = 3\n",
        's.toml:11: unknown key "shard"; did you mean shared?',
    ),
    (
        "rate of questions",
        POOL + TRAFFIC.replace("rate = 5", "rate = inf") + "[cache]\nshared = 100\n",
        "s.toml:10: how often questions come is not known",
    ),
]


@pytest.mark.parametrize(("text", "said"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_is_said_with_its_line(problems: Problems, text: str, said: str) -> None:
    found = problems(ROOT + text)
    assert found[0].startswith(said), found
    assert not any("⟦" in line for line in found)


def test_an_empty_file_says_all_that_is_missing(problems: Problems) -> None:
    assert [line.split(";")[0] for line in problems("")] == [
        's.toml: "version" is missing',
        "s.toml: model is missing",
    ]


def test_a_model_without_a_name_is_none(problems: Problems) -> None:
    assert problems('version = 1\nmodel = ""\n' + POOL + TRAFFIC)[0].startswith('s.toml:2: "" is not a model')
    assert problems("version = 1\nmodel = 8\n" + POOL + TRAFFIC)[0].startswith("s.toml:2: model: 8")


def test_a_distance_that_nobody_gave_is_missing(problems: Problems) -> None:
    regions = REGIONS.replace('to = { us = "40 ms" }\n', "")
    text = ROOT + regions + POOL + 'region = "eu"\n' + TRAFFIC + 'region = "eu"\n'
    assert problems(text)[0].startswith("s.toml:3: no distance from eu to us")
    twice = REGIONS.replace('"us"\n', '"eu"\n', 1)
    assert any("two regions are named" in line for line in problems(ROOT + twice + POOL + TRAFFIC))


def test_users_come_alone(problems: Problems) -> None:
    text = ROOT + POOL + "[[traffic]]\nusers = 5\n[[traffic]]\nrate = 5\n"
    assert problems(text) == [
        "s.toml:6: users beside other traffic; users come alone; give each stream its traffic.rate"
    ]


def test_a_file_that_asks_something_else_is_not_taken_for_this(problems: Problems) -> None:
    (line,) = problems('ask = "plan serve"\n' + ROOT + POOL + TRAFFIC)
    assert line == 's.toml:1: the file asks "plan serve"; leave it out, or ask = "simulate serve"'


def test_a_model_that_does_not_fit_is_a_no_and_not_a_mistake(read: Read, problems: Problems) -> None:
    pool = POOL + "tp = 1\n"
    text = ROOT.replace("8b", "70b") + pool + TRAFFIC
    with pytest.raises(InfeasibleError) as caught:
        read(text)
    assert caught.value.where == "s.toml:3"
    assert spelled(caught.value.hint) == 'enough: precision="fp8", or tp=2'
    with pytest.raises(InfeasibleError, match=r"s\.toml:6: "):
        read(text.replace(pool, 2 * pool))
    assert len(problems(text + "[cache]\nquestions = 5\n")) == 2  # beside a mistake it is one of the problems


@pytest.mark.parametrize(
    ("cut", "line"),
    [('version = 1\nmodel = "lla', 2), (ROOT + "[[deployment", 3), (ROOT + "[[deployment]]\nchip =", 4)],
)
def test_a_file_that_was_cut_off_names_the_line(tmp_path: Path, cut: str, line: int) -> None:
    file = tmp_path / "s.toml"
    file.write_text(cut)
    with pytest.raises(DocumentError, match=rf"s\.toml:{line}: "):
        scenario_file(str(file))


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(DocumentError, match=r"s\.toml: cannot be read: Permission denied"):
        scenario_file(str(tmp_path / "s.toml"))


def test_what_names_no_input_names_the_place_all_the_same(shelf: Catalog) -> None:
    with pytest.raises(DocumentError) as caught:
        ask(
            "simulate serve",
            {"model": "llama-3.1-8b", "pp": 99, "warmup": "5 s", "until": "2 s"},
            catalog=shelf,
        )
    assert [line.split(":")[0].strip() for line in caught.value.lines()[1:]] == ["pp", "rate", "warmup"]
