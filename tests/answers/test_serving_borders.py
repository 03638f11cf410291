"""One question about a service has one answer: by flags, by keywords, from TOML and from JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.cli.main import run

# verb, flags, keywords, sections of a file
CASES = {
    "experts in fp8": (
        "simulate serve",
        "deepseek-v3 --chip h200 --precision fp8 --tp 8 --ep 8 --rate 2 --requests 300",
        {"model": "deepseek-v3", "chip": "h200", "precision": "fp8", "tp": 8, "ep": 8, "rate": 2, "requests": 300},
        {
            "model": "deepseek-v3",
            "deployment": {"chip": "h200", "precision": "fp8", "tp": 8, "ep": 8},
            "traffic": {"rate": 2, "requests": 300},
        },
    ),
    "experts in fp8, planned": (
        "plan serve",
        "deepseek-v3 --chips h200 --precision fp8 --tp 8 --rate 2",
        {"model": "deepseek-v3", "chips": ["h200"], "precision": "fp8", "tp": 8, "rate": 2},
        {
            "model": "deepseek-v3",
            "deployment": {"tp": 8},
            "candidates": {"chips": ["h200"], "precision": ["fp8"]},
            "traffic": {"rate": 2},
        },
    ),
    "limits and users": (
        "plan serve",
        "llama-3.1-8b --users 200 --think 20s --ttft 500ms --tpot 30ms --percentile P90 --headroom 20% --chips l40s",
        {"model": "llama-3.1-8b", "users": 200, "think": 20.0, "ttft": 0.5, "tpot": 0.03, "percentile": 90,
         "headroom": 0.2, "chips": "l40s"},
        {
            "model": "llama-3.1-8b",
            "traffic": {"users": 200, "think": "20 s"},
            "promise": {"ttft": "500 ms", "tpot": "30 ms", "percentile": 0.9},
            "candidates": {"headroom": "20 %", "chips": "l40s"},
        },
    ),
    "shapes, failures and a cache": (
        "simulate serve",
        "llama-3.1-8b --replicas 2 --rate 8 --requests 400 --isl shape=uniform,low=100,high=500 --osl 40 --seed 4 "
        "--failure replicas=0,start=10s,duration=20s --cache process=200,semantic=20% --routing two-choices",
        {"model": "llama-3.1-8b", "replicas": 2, "rate": 8, "requests": 400, "osl": 40, "seed": 4,
         "isl": {"shape": "uniform", "low": 100, "high": 500}, "routing": "two-choices",
         "failure": {"replicas": 0, "start": "10 s", "duration": "20 s"},
         "cache": {"process": 200, "semantic": 0.2}},
        {
            "model": "llama-3.1-8b",
            "seed": 4,
            "deployment": {"replicas": 2},
            "router": {"routing": "two-choices"},
            "traffic": {"rate": 8, "requests": 400, "osl": 40, "isl": {"shape": "uniform", "low": 100, "high": 500}},
            "failure": [{"replicas": 0, "start": "10 s", "duration": "20 s"}],
            "cache": {"process": 200, "semantic": "20 %"},
        },
    ),
    "regions": (
        "simulate serve",
        "llama-3.1-8b --rate 5 --requests 200 --in-region eu --from-region us "
        "--region '{name=\"eu\", to={us=\"40 ms\"}}' --region name=us,inside=1ms",
        {"model": "llama-3.1-8b", "rate": 5, "requests": 200, "in_region": "eu", "from_region": "us",
         "region": [{"name": "eu", "to": {"us": "40 ms"}}, {"name": "us", "inside": "1 ms"}]},
        {
            "model": "llama-3.1-8b",
            "deployment": {"region": "eu"},
            "traffic": {"rate": 5, "requests": 200, "region": "us"},
            "region": [{"name": "eu", "to": {"us": "40 ms"}}, {"name": "us", "inside": "1 ms"}],
        },
    ),
    "engine, adapters and a draft": (
        "simulate serve",
        "llama-3.1-8b --users 8 --requests 200 --engine sglang --no-prefix-caching --token-budget 4k "
        "--adapters 50 --adapter-rank 8 --draft ngram --acceptance 40% --host-cache 10GB --nic 400Gb/s "
        "--autoscale 1..2 --cold-start 5s",
        {"model": "llama-3.1-8b", "users": 8, "requests": 200, "engine": "sglang", "prefix_caching": False,
         "token_budget": 4000, "adapters": 50, "adapter_rank": 8, "draft": "ngram", "acceptance": 0.4,
         "host_cache": 10e9, "nic": 50e9, "autoscale": "1..2", "cold_start": 5.0},
        {
            "model": "llama-3.1-8b",
            "deployment": {
                "engine": "sglang", "prefix_caching": False, "token_budget": "4k", "adapters": 50, "adapter_rank": 8,
                "draft": "ngram", "acceptance": 0.4, "host_cache": "10 GB",
            },
            "router": {"autoscale": "1..2", "cold_start": "5 s"},
            "traffic": {"users": 8, "requests": 200},
            "fabric": {"nic": "400 Gb/s"},
        },
    ),
    "fit": (
        "show fit",
        "llama-3.1-70b --chip h200 --context 32k --batch 4 --memory-fraction 80%",
        {"model": "llama-3.1-70b", "chip": "h200", "context": 32_000, "batch": 4, "memory_fraction": 0.8},
        {
            "model": "llama-3.1-70b",
            "deployment": {"chip": "h200", "memory_fraction": "80 %"},
            "sequences": {"context": "32k", "batch": 4},
        },
    ),
    "techniques": (
        "show techniques",
        "llama-3.1-8b --chip l40s --rate 2 --cached 60% --isl 2000 --osl 300",
        {"model": "llama-3.1-8b", "chip": "l40s", "rate": 2, "cached": 0.6, "isl": 2000, "osl": 300},
        {
            "model": "llama-3.1-8b",
            "deployment": {"chip": "l40s"},
            "traffic": {"rate": 2, "isl": 2000, "osl": 300},
            "prefix": {"cached": "60 %"},
        },
    ),
}  # fmt: skip


def toml(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


PARTS = ("verdict", "results", "tables", "figure", "inputs", "sources")


@pytest.mark.parametrize("name", CASES)
def test_every_border_gives_the_same_answer(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, flags, keywords, sections = CASES[name]

    def command(*words: str) -> dict[str, object]:
        assert run([*verb.split(), *words, "--json"]) in (0, 1)
        out, err = capsys.readouterr()
        assert err == ""
        found: dict[str, dict[str, object]] = json.loads(out)
        found["inputs"].pop("scenario", None)  # the path of the file is all that differs
        return {part: found[part] for part in PARTS if part in found}

    for ending, text in (("toml", _toml_file(sections)), ("json", json.dumps({"version": 1, **sections}))):
        (tmp_path / f"s.{ending}").write_text(text)
    by_flags = command(*shlex.split(flags))
    assert command(str(tmp_path / "s.toml")) == by_flags
    assert command(str(tmp_path / "s.json")) == by_flags
    by_keywords: Answer = getattr(dh, verb.replace(" ", "_"))(**keywords)
    by_body = dh.ask({"version": 1, "ask": verb, **sections})
    for answer in (by_keywords, by_body):
        found = json.loads(answer.to_json())
        assert {part: found[part] for part in PARTS if part in found} == by_flags
    assert by_keywords.question == by_body.question


def _toml_file(sections: Mapping[str, object]) -> str:
    return "\n".join(["version = 1", *(f"{key} = {toml(value)}" for key, value in sections.items())])
