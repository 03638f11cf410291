"""Serving scenarios that are wrong: every problem at once, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.errors import DocumentError, InfeasibleError
from datahall.inference.scenario import (
    read_serving_scenario,
    serving_scenario_of,
)
from datahall.inference.scenario_file import as_keys

ROOT = 'version = 1\nmodel = "llama-3.1-8b"\n'
POOL = '[[pool]]\nchip = "h100-sxm"\n'
TRAFFIC = "[traffic]\nprompt = 200\noutput = 40\nrate = 5\nrequests = 300\n"
REGIONS = '[[region]]\nname = "eu"\ninside = "1 ms"\nto = { us = "40 ms" }\n[[region]]\nname = "us"\n'


def problems(text: str, shelf: Catalog, path: str = "s.toml") -> list[str]:
    with pytest.raises(DocumentError) as caught:
        serving_scenario_of(parse(text, path), shelf)
    return [repr(one) for one in caught.value.problems]


def test_every_problem_is_found_at_once_with_its_line(shelf: Catalog) -> None:
    found = problems(
        'version = 2\nmodle = "llama-3.1-8b"\nmodel = "llama-3.1-8"\nrouting = "round"\n'  # 1-4
        '[[pool]]\nchip = "h100-sx"\ncount = -2\nenginee = "vllm"\nrole = "prefil"\n'  # 5-9
        '[[pool]]\nchip = "h100-sxm"\nregion = "eu"\ntoken_budget = "8k apples"\n'  # 10-13
        'speculation = { drft = "mtp", acceptance = "150 %" }\n'  # 14
        '[traffic]\nrate = 3\nusers = 4\nprompt = { shape = "lognorml" }\n'  # 15-18
        '[[outage]]\nreplica = 9\nstart = "-3 s"\n[autoscaling]\nleast = 4\nmost = 2\n'  # 19-24
        "[cache]\n[slo]\nttft = 500\n",  # 25-27
        shelf,
    )
    wanted = (
        "s.toml:1: version is 2; this release reads version = 1",
        's.toml:2: unknown key "modle"; did you mean model?',
        's.toml:3: "llama-3.1-8" is not a model in the catalogue; did you mean: llama-3.1-8b',
        's.toml:4: routing is "round"; one of round-robin',
        's.toml:6: "h100-sx" is not a chip in the catalogue; did you mean: h100-sxm',
        "s.toml:7: count is -2; it must be 1 or more",
        's.toml:8: unknown key "enginee"; did you mean engine?',
        's.toml:9: role is "prefil"; one of both, prefill, decode; did you mean prefill?',
        's.toml:12: "eu" is not a region; write [[region]]',
        "s.toml:13: token_budget: '8k apples'",
        's.toml:14: unknown key "drft"; did you mean draft?',
        's.toml:14: "draft" is missing',
        "s.toml:14: acceptance is 150 %",
        "s.toml:15: traffic with rate and users; say one of rate, users, trace",
        's.toml:18: shape is "lognorml"; one of fixed, uniform, lognormal',
        "s.toml:21: start is -3 s; it must be 0 or more",
        's.toml:19: "duration" is missing',
        "s.toml:23: at least 4 and at most 2 replicas",
        "s.toml:25: a cache without tiers",
        "s.toml:27: ttft is 500, without a unit",
    )
    for one in wanted:
        assert any(line.startswith(one) for line in found), (one, found)
    assert len(found) == len(wanted)


WRONG = [
    # what is wrong, text after the root, what the one problem says
    ("empty pool list", TRAFFIC, "s.toml: [[pool]] is missing"),
    ("no traffic", POOL, "s.toml: [traffic] is missing"),
    (
        "no traffic source",
        POOL + "[traffic]\nprompt = 5\n",
        "s.toml:5: traffic with neither a rate, nor users",
    ),
    (
        "role alone",
        POOL + 'role = "prefill"\n' + TRAFFIC,
        "s.toml:3: pools with the role prefill do not make a whole",
    ),
    ("pool is text", 'pool = "h100"\n' + TRAFFIC, "s.toml:3: pool must be a table; write [[pool]]"),
    ("tp of 3", POOL + "tp = 3\n" + TRAFFIC, "s.toml:3: llama-3.1-8b: tp = 3 breaks the rule"),
    (
        "fp8 on a100",
        '[[pool]]\nchip = "a100-sxm-80gb"\nprecision = "fp8"\n' + TRAFFIC,
        "s.toml:3: NVIDIA A100",
    ),
    ("chip without a name", '[[pool]]\nchip = ""\n' + TRAFFIC, 's.toml:4: "" is not a chip'),
    ("precision", POOL + 'precision = "fp7"\n' + TRAFFIC, 's.toml:5: "fp7" is not a precision'),
    ("engine", POOL + 'engine = "vlm"\n' + TRAFFIC, 's.toml:5: "vlm" is not an engine; did you mean: vllm'),
    ("draft", POOL + 'speculation = { draft = "nope" }\n' + TRAFFIC, 's.toml:3: "nope" is not a model'),
    ("too many", POOL + "count = 200000\n" + TRAFFIC, "s.toml:5: 200,000 replicas; at most 100,000"),
    ("handoff", POOL + 'handoff = "1 GB/s"\n' + TRAFFIC, "s.toml:5: only a prefill pool hands"),
    ("half a replica", POOL + "count = 1.5\n" + TRAFFIC, "s.toml:5: count is 1.5; a whole number"),
    ("flag", POOL + 'prefix_caching = "no"\n' + TRAFFIC, "s.toml:5: prefix_caching is 'no'; true or false"),
    (
        "no region",
        REGIONS + POOL + TRAFFIC + 'region = "eu"\n',
        's.toml:9: "region" is missing; one of eu, us',
    ),
    (
        "region name",
        REGIONS + POOL + 'region = "es"\n' + TRAFFIC + 'region = "eu"\n',
        's.toml:11: "es" is not a region; one of eu, us',
    ),
    (
        "preset",
        POOL + TRAFFIC + 'preset = "shargpt"\n',
        's.toml:10: "shargpt" is not a traffic; did you mean: sharegpt',
    ),
    (
        "negative rate",
        POOL + TRAFFIC.replace("rate = 5", "rate = -5"),
        "s.toml:8: rate is -5; it must be above 0",
    ),
    ("no rate", POOL + TRAFFIC.replace("rate = 5", "rate = 0"), "s.toml:8: rate is 0; it must be above 0"),
    (
        "rate in words",
        POOL + TRAFFIC.replace("rate = 5", 'rate = "many"'),
        "s.toml:8: rate: 'many' is not a quantity",
    ),
    (
        "two movements",
        POOL + TRAFFIC + 'swing = 0.5\nbusy = "1 s"\nquiet = "1 s"\n',
        "s.toml:8: the rate can move in one way only",
    ),
    ("no end", POOL + '[traffic]\nrate = inf\nduration = "1 s"\n', "s.toml:6: all at once, for a duration"),
    (
        "no pause",
        POOL + '[traffic]\nusers = 3\nduration = "1 s"\n',
        "s.toml:5: users who never pause, for a duration",
    ),
    (
        "shares",
        REGIONS + POOL + 'region = "eu"\n' + TRAFFIC + "region = { eu = 0.5 }\n",
        "s.toml:17: shares of regions add up to 0.5",
    ),
    (
        "share of nowhere",
        REGIONS + POOL + 'region = "eu"\n' + TRAFFIC + "region = { ue = 1 }\n",
        's.toml:17: "ue" is not a region; one of eu, us',
    ),
    ("hours", POOL + TRAFFIC + "hourly = [1, 2]\n", "s.toml:8: 2 hourly factors"),
    (
        "prompt too long",
        POOL + TRAFFIC.replace("200", "500000"),
        "s.toml:5: prompts of 500,000 tokens for a context of 131,072",
    ),
    ("prompt of nothing", POOL + TRAFFIC.replace("200", "0"), "s.toml:6: prompt is 0; it must be 1 or more"),
    (
        "lognormal",
        POOL + TRAFFIC.replace("200", '{ shape = "lognormal", mean = 5 }'),
        "s.toml:6: a lognormal with a mean alone",
    ),
    ("no trace", POOL + '[traffic]\ntrace = "gone.csv"\n', "s.toml:6: gone.csv is not a file"),
    (
        "users burst",
        POOL + "[traffic]\nusers = 5\nburstiness = 2\n",
        "s.toml:7: burstiness does not go with the rest: users come when",
    ),
    (
        "speed of a rate",
        POOL + TRAFFIC + "speed = 2\n",
        "s.toml:10: speed does not go with the rest: only a trace",
    ),
    (
        "outage of nobody",
        POOL + TRAFFIC + '[[outage]]\nreplica = 7\nstart = "1 s"\nduration = "1 s"\n',
        "s.toml:11: replica 7 is not there; 0 to 0",
    ),
    (
        "outage of what",
        POOL + TRAFFIC + '[[outage]]\nstart = "1 s"\nduration = "1 s"\n',
        "s.toml:10: an outage names replicas or a region",
    ),
    (
        "outage words",
        POOL + TRAFFIC + '[[outage]]\nreplica = "all"\nstart = "1 s"\nduration = "1 s"\n',
        's.toml:11: replica: "all" is not a range',
    ),
    (
        "outage twice",
        POOL + TRAFFIC + 2 * '[[outage]]\nreplica = 0\nstart = "1 s"\nduration = "1 s"\n',
        "s.toml:16: replica 0 is out from 1 s for 1 s already",
    ),
    (
        "most",
        POOL + "count = 4\n" + TRAFFIC + "[autoscaling]\nmost = 2\n",
        "s.toml:12: the first pool starts with 4 replicas",
    ),
    ("tier", POOL + TRAFFIC + "[cache.semantic]\nhits = 2\n", "s.toml:11: hits is 2; at most 1"),
    ("tier name", POOL + TRAFFIC + "[cache.shard]\n", 's.toml:10: unknown key "shard"; did you mean shared?'),
    (
        "rate of questions",
        POOL + TRAFFIC.replace("rate = 5", "rate = inf") + "[cache.shared]\n",
        "s.toml:10: how often questions come is not known",
    ),
]


@pytest.mark.parametrize(("text", "said"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_is_said_with_its_line(shelf: Catalog, text: str, said: str) -> None:
    found = problems(ROOT + text, shelf)
    assert found[0].startswith(said), found


def test_an_empty_file_says_all_that_is_missing(shelf: Catalog) -> None:
    assert [one.split(";")[0] for one in problems("", shelf)] == [
        's.toml: "model" is missing',
        's.toml: "version" is missing',
        "s.toml: [[pool]] is missing",
        "s.toml: [traffic] is missing",
    ]


def test_a_model_without_a_name_is_none(shelf: Catalog) -> None:
    assert problems('version = 1\nmodel = ""\n' + POOL + TRAFFIC, shelf)[0].startswith(
        's.toml:2: "" is not a model'
    )
    assert problems("version = 1\nmodel = 8\n" + POOL + TRAFFIC, shelf)[0].startswith("s.toml:2: model is 8")


def test_a_distance_that_nobody_gave_is_missing(shelf: Catalog) -> None:
    regions = REGIONS.replace('to = { us = "40 ms" }\n', "")
    text = ROOT + regions + POOL + 'region = "eu"\n' + TRAFFIC + 'region = "eu"\n'
    assert problems(text, shelf)[0].startswith("s.toml:3: no distance from eu to us")
    twice = REGIONS.replace('"us"\n', '"eu"\n', 1)
    assert any("two regions are named" in one for one in problems(ROOT + twice + POOL + TRAFFIC, shelf))


def test_users_come_alone(shelf: Catalog) -> None:
    text = ROOT + POOL + "[[traffic]]\nusers = 5\n[[traffic]]\nrate = 5\n"
    assert problems(text, shelf) == [
        "s.toml:6: users beside other traffic; users come alone; say a rate for each stream"
    ]


def test_a_model_that_does_not_fit_is_a_no_and_not_a_mistake(shelf: Catalog) -> None:
    text = ROOT.replace("8b", "70b") + POOL + TRAFFIC
    with pytest.raises(InfeasibleError) as caught:
        serving_scenario_of(parse(text, "s.toml"), shelf)
    assert caught.value.where == "s.toml:3"
    assert 'precision = "fp8"' in caught.value.hint
    assert "tp = 2" in caught.value.hint
    with pytest.raises(InfeasibleError, match=r"s\.toml:5: "):
        serving_scenario_of(parse(text.replace(POOL, 2 * POOL), "s.toml"), shelf)
    both = problems(text + "speed = 3\n", shelf)
    assert len(both) == 2  # beside a mistake it is one of the problems


def test_flags_in_a_hint_become_keys() -> None:
    assert as_keys("--tp 2, or --precision fp8") == 'tp = 2, or precision = "fp8"'
    assert as_keys("nothing to do") == "nothing to do"


@pytest.mark.parametrize(
    ("cut", "line"), [('version = 1\nmodel = "lla', 2), (ROOT + "[[pool", 3), (ROOT + "[[pool]]\nchip =", 4)]
)
def test_a_file_that_was_cut_off_names_the_line(tmp_path: Path, shelf: Catalog, cut: str, line: int) -> None:
    file = tmp_path / "s.toml"
    file.write_text(cut)
    with pytest.raises(DocumentError, match=rf"s\.toml:{line}: "):
        read_serving_scenario(file, shelf)


def test_a_file_that_may_not_be_read_says_so(
    tmp_path: Path, shelf: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(DocumentError, match=r"s\.toml: cannot be read: Permission denied"):
        read_serving_scenario(tmp_path / "s.toml", shelf)
