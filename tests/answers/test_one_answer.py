"""One question has one answer, however it is asked: by flags, by a TOML file, from Python, as JSON."""

# ruff: noqa: E501  # tables of what may be said

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import datahall as dh
from datahall.answers.ask import form_of
from datahall.answers.verbs import BY_NAME
from datahall.cli.main import run
from datahall.scenario.form import Form
from datahall.scenario.kinds import Flag, Listed

NUM_QUESTIONS = 240
DENSE = ("llama-3.1-8b", "qwen3-32b", "mistral-7b")
SPARSE = ("qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-20b")
CHIPS = ("h100-sxm", "h200", "b200", "l40s", "a100-sxm-80gb", "mi300x")
FABRICS = ("fat-tree", "tree", "nvl72", "torus", "rail-optimised")

# For each verb: what is always said (one of several), and what may be said beside it.
ALWAYS: dict[str, dict[str, tuple[str, ...]]] = {
    "show chip": {"chip": CHIPS},
    "show hierarchy": {"chip": CHIPS[:4]},
    "show model": {"model": (*DENSE, *SPARSE)},
    "show fit": {"model": (*DENSE, *SPARSE)},
    "show roofline": {"chip": CHIPS, "model": (*DENSE, *SPARSE)},
    "show fabric": {"topologies": FABRICS, "chips": ("72", "144", "576")},
    "show collective": {
        "collective": ("all-reduce", "all-gather", "all-to-all", "broadcast"),
        "size": ("1MB", "64 MB", "1GB"),
        "chips": ("72", "144", "288"),
    },
    "show memory": {"model": DENSE, "chips": ("8", "16", "64")},
    "show techniques": {"model": DENSE[:2], "rate": ("1", "2.5"), "chip": CHIPS[:3]},
    "plan serve": {
        "model": DENSE[:2],
        "chips": ("h200", "h100-sxm,h200", "b200"),
        "rate": ("2", "7.5", "30"),
    },
    "plan train": {
        "model": DENSE[:2],
        "tokens": ("1T", "2e11"),
        "chips": ("32", "64"),
        "global_batch": ("256", "512"),
    },
    "simulate serve": {"model": DENSE[:1], "rate": ("2", "4", "8/s"), "requests": ("200", "300")},
    "simulate train": {"model": DENSE[:1], "chips": ("8", "16", "32"), "global_batch": ("32", "64")},
    "catalog chips": {},
    "catalog models": {},
    "catalog prices": {},
    "catalog search": {"text": ("nvlink", "h100")},
}
BESIDE: dict[str, dict[str, tuple[str, ...]]] = {
    "show hierarchy": {"working_set": ("2 GB", "30MB"), "prefetch": ("true",)},
    "show model": {"context": ("4k", "16384"), "batch": ("1", "8"), "precision": ("fp8", "bf16"), "chips": ("h200,b200",)},
    "show fit": {
        "chip": CHIPS[:4], "context": ("4k", "32k"), "batch": ("4", "16"), "precision": ("bf16", "fp8"), "tp": ("2", "4"),
        "engine": ("vllm", "sglang", "trtllm"), "adapters": ("8",), "memory_fraction": ("85 %",),
    },
    "show roofline": {
        "phase": ("prefill", "decode"), "batch": ("1", "32"), "context": ("512", "8k"), "tp": ("2",), "eager": ("true",),
        "level": ("datasheet", "family"),
    },
    "show fabric": {"oversubscription": ("1:1", "2:1"), "chip": ("gb200", "h100-sxm")},
    "show collective": {"on": FABRICS, "oversubscription": ("2:1",), "algorithm": ("ring", "tree"), "all": ("true",)},
    "show memory": {
        "tp": ("1", "2", "4"), "pp": ("1", "2"), "seq": ("4k", "8192"), "recompute": ("full", "selective"), "zero": ("1", "3"),
        "micro_batch": ("1", "2"), "framework": ("nemo", "fsdp"), "chip": ("h100-sxm", "h200"),
    },
    "show techniques": {"isl": ("500", "2k"), "osl": ("100",), "cached": ("60 %",), "ttft": ("2s",), "draft": ("ngram",)},
    "plan serve": {
        "isl": ("500", "1000"), "osl": ("100", "200"), "ttft": ("2s", "800 ms"), "tpot": ("60ms",), "precision": ("bf16", "bf16,fp8"),
        "engine": ("vllm", "sglang"), "headroom": ("20 %", "0"), "percentile": ("90", "P95"), "traffic": ("sharegpt", "lmsys-chat"),
        "tp": ("1", "2"), "nic": ("200 Gb/s",),
    },
    "plan train": {"chip": ("h100-sxm", "h200"), "seq": ("4096", "8k"), "precision": ("bf16", "fp8"), "framework": ("nemo", "fsdp")},
    "simulate serve": {
        "chip": CHIPS[:4], "isl": ("300", "shape=lognormal,mean=400,p95=900"), "osl": ("40", "60"), "replicas": ("1", "2"),
        "routing": ("round-robin", "session", "prefix-affinity"), "turns": ("2",), "think": ("1 s",), "seed": ("1", "7"), "ttft": ("500ms",),
        "token_budget": ("2k", "4096"), "prefix_caching": ("true", "false"), "draft": ("ngram",), "adapters": ("4",),
        "host_cache": ("20 GB",), "spread": ("0.5",), "precision": ("fp8", "bf16"), "percentile": ("99",),
    },
    "simulate train": {
        "chip": ("h200", "h100-sxm"), "tp": ("1", "2"), "pp": ("2",), "seq": ("4k",), "zero": ("1", "2"), "jitter": ("1 %",),
        "seed": ("3",), "recompute": ("selective",), "slow_hosts": ("5 %",),
    },
    "catalog chips": {"sort": ("memory", "bf16"), "vendor": ("nvidia", "amd"), "precision": ("fp8",)},
    "catalog models": {"sort": ("parameters",), "family": ("llama",)},
    "catalog prices": {"chip": ("h100",), "kind": ("spot",), "max_age": ("400 days",)},
}  # fmt: skip
WEIGHTS = {"plan serve": 2, "plan train": 2, "simulate train": 3, "show techniques": 2, "simulate serve": 8}


def questions() -> list[tuple[str, dict[str, str]]]:
    """So many questions, each a verb and some inputs as a person types them; the same on every run."""
    draw = random.Random(20261115)
    verbs = [verb for verb in ALWAYS for _ in range(WEIGHTS.get(verb, 5))]
    made = []
    for place in range(NUM_QUESTIONS):
        verb = verbs[place % len(verbs)]
        said = {name: draw.choice(values) for name, values in ALWAYS[verb].items()}
        beside = BESIDE.get(verb, {})
        for name in draw.sample(sorted(beside), draw.randint(0, min(4, len(beside)))):
            said[name] = draw.choice(beside[name])
        made.append((verb, said))
    return made


QUESTIONS = questions()


def by_flags(verb: str, said: dict[str, str]) -> list[str]:
    form = form_of(verb)
    words = verb.split()
    words += [word for name in form.arguments if name in said for word in said[name].split(",")]
    for name, text in said.items():
        if name in form.arguments:
            continue
        flag = f"--{name.replace('_', '-')}"
        if isinstance(form.fields[name].kind, Flag):
            words.append(flag if text == "true" else flag.replace("--", "--no-", 1))
        else:
            words += [flag, text]
    return words


def plain(form: Form, name: str, text: str) -> Any:
    """A value in the types that a file or a program would use."""
    kind = form.fields[name].kind
    if isinstance(kind, Flag):
        return text == "true"
    if isinstance(kind, Listed):
        return text.split(",")
    if text.isdecimal():
        return int(text)
    if text.startswith("shape="):
        table = dict(part.split("=") for part in text.split(","))
        return {key: int(value) if value.isdecimal() else value for key, value in table.items()}
    return text


def as_question(verb: str, said: dict[str, str]) -> dict[str, Any]:
    form = form_of(verb)
    asked: dict[str, Any] = {"version": 1, "ask": verb}
    for name, text in said.items():
        field = form.fields[name]
        value = plain(form, name, text)
        if field.section:
            asked.setdefault(field.section, {})[field.key] = value
        else:
            asked[field.key] = value
    return asked


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def as_toml(asked: dict[str, Any]) -> str:
    heads = {key: value for key, value in asked.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in asked.items() if isinstance(value, dict)}
    lines = [f"{key} = {toml(value)}" for key, value in heads.items()]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def heart(answer: dict[str, Any]) -> dict[str, Any]:
    """What must be the same: all but the file that asked, and texts in which a border spells inputs its own way."""
    spelled = ("next", "next_commands", *(("binding",) if answer["verdict"] == "no" else ()))
    kept = {key: value for key, value in answer.items() if key not in spelled}
    kept["inputs"] = {key: value for key, value in answer["inputs"].items() if key != "scenario"}
    return kept


@pytest.mark.parametrize(
    ("verb", "said"), QUESTIONS, ids=[f"{n}-{verb}" for n, (verb, _) in enumerate(QUESTIONS)]
)
def test_one_question_has_one_answer(
    verb: str, said: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(words: list[str]) -> dict[str, Any]:
        code = run([*words, "--json", "--quiet"])
        out, err = capsys.readouterr()
        assert code in (0, 1, 2), err
        return {"code": code, "error": err} if not out else heart(json.loads(out))

    asked = as_question(verb, said)
    file = tmp_path / "question.toml"
    file.write_text(as_toml(asked), encoding="utf-8")
    flags = printed(by_flags(verb, said))
    written = printed([*verb.split(), str(file)])
    form, function = form_of(verb), getattr(dh, BY_NAME[verb].function)
    keywords = {name: plain(form, name, text) for name, text in said.items()}
    if "error" in flags:  # what one border refuses all refuse, with the same exit code
        assert written["code"] == flags["code"]
        for again in (lambda: function(**keywords), lambda: dh.ask(asked)):
            with pytest.raises(dh.DatahallError) as refused:
                again()
            assert refused.value.exit_code == flags["code"]
        return
    assert written == flags
    assert heart(json.loads(function(**keywords).to_json())) == flags
    assert heart(json.loads(dh.ask(asked).to_json())) == flags


def test_an_answer_can_be_asked_again() -> None:
    first = dh.simulate_serve(
        "llama-3.1-8b", rate=3, requests=200, isl=300, osl=30, failure="replicas=0,start=1s,duration=2s"
    )
    again = dh.ask(first.question)
    assert heart(json.loads(again.to_json())) == heart(json.loads(first.to_json()))


def test_as_many_questions_as_promised() -> None:
    assert len(QUESTIONS) >= 200
    assert {verb for verb, _ in QUESTIONS} == set(ALWAYS)
