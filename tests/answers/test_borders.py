"""One question has one answer, however it is asked: by flags, a TOML file, keywords or JSON."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import ask, ask_document, form_of
from datahall.answers.reply import answer_of
from datahall.answers.verbs import BY_NAME, words
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog, document
from datahall.cli.main import run
from datahall.errors import DatahallError
from datahall.report.wire import decode, encode

CASES: list[tuple[str, dict[str, object]]] = [
    ("show chip", {"chip": "h100-sxm"}),
    ("show chip", {"chip": "h100-sxm", "claim": "peak.fp8=3958 TFLOP/s"}),
    ("show model", {"model": "llama-3.1-8b", "context": 4096, "batch": 8, "precision": "fp8"}),
    ("show model", {"model": "gpt-oss-120b", "chips": ["h200-sxm", "l40s"]}),
    ("show roofline", {"chip": "h200-sxm", "model": "llama-3.1-8b", "phase": "prefill", "context": 2048}),
    ("show roofline", {"chip": "h100-sxm", "model": "qwen3-8b", "precision": "fp8", "tp": 2, "eager": True}),
    ("show roofline", {"chip": "h200-sxm", "model": "llama-3.1-405b"}),
    ("show hierarchy", {"chip": "h100-sxm", "working_set": "120GB", "offload": "host", "prefetch": True}),
    ("catalog chips", {"sort": "memory", "vendor": "nvidia", "precision": "fp8"}),
    ("catalog models", {"sort": "active", "family": "qwen"}),
    ("catalog prices", {"chip": "h100", "kind": "spot", "max_age": "90d", "as_of": "2026-11-15"}),
    ("catalog search", {"text": ["nvlink", "4"]}),
]


def by_flags(verb: str, asked: dict[str, object], capsys: pytest.CaptureFixture[str]) -> Answer:
    form = form_of(verb)
    line = verb.split()
    for name, value in asked.items():
        texts = [str(one) for one in value] if isinstance(value, list) else [str(value)]
        if name in form.arguments:
            line += texts
        elif value is True:
            line.append(form.flag(name))
        else:
            line += [form.flag(name), ",".join(texts)]
    run([*line, "--json", "--quiet"])
    return decode(capsys.readouterr().out)


def tables(verb: str, asked: dict[str, object]) -> dict[str, object]:
    """What was asked, under the sections and keys of a file."""
    content: dict[str, object] = {"version": 1, "ask": verb}
    for name, value in asked.items():
        field = form_of(verb).fields[name]
        place = content.setdefault(field.section, {}) if field.section else content
        assert isinstance(place, dict)
        place[field.key] = value
    return content


def toml(content: dict[str, object]) -> str:
    def written(value: object) -> str:
        return json.dumps(value)

    head = [f"{key} = {written(value)}" for key, value in content.items() if not isinstance(value, dict)]
    for key, value in content.items():
        if isinstance(value, dict):
            head += [f"[{key}]", *(f"{name} = {written(inner)}" for name, inner in value.items())]
    return "\n".join(head)


def same(one: Answer, other: Answer) -> None:
    """Equal but for the file that a question came from."""
    first, second = (json.loads(encode(answer)) for answer in (one, other))
    for answer in (first, second):
        answer["inputs"].pop("scenario", None)
    assert first == second


@pytest.mark.parametrize(("verb", "asked"), CASES, ids=[f"{verb} {n}" for n, (verb, _) in enumerate(CASES)])
def test_every_border_gives_the_same_answer(
    verb: str, asked: dict[str, object], shelf: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    called = getattr(dh, BY_NAME[verb].function)(**asked, catalog=shelf)
    same(called, by_flags(verb, asked, capsys))
    file = tmp_path / "question.toml"
    file.write_text(toml(tables(verb, asked)), encoding="utf-8")
    same(called, answer_of(ask(verb, document=document.read(file), catalog=shelf)))
    same(called, ask_document(json.loads(json.dumps(tables(verb, asked))), catalog=shelf))
    same(called, ask_document(called.question, catalog=shelf))  # type: ignore[arg-type]


@pytest.mark.parametrize(("verb", "asked"), CASES, ids=[f"{verb} {n}" for n, (verb, _) in enumerate(CASES)])
def test_figures_hold_and_follow_up_commands_run(
    verb: str, asked: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    answer = by_flags(verb, asked, capsys)
    assert answer.figure is None or false_nodes(answer.figure) == []
    for line in answer.next_commands:
        program, *rest = shlex.split(line)
        assert program == "datahall"
        if rest[0] == "validate" or rest[:2] == ["show", "fit"]:  # long, or another subject's
            continue
        assert run(rest) in (0, 1), line
        assert capsys.readouterr().err.replace("datahall: wrote", "").count("error") == 0, line


@pytest.mark.parametrize(
    ("verb", "asked", "field"),
    [
        ("show model", {"model": "llama-3.1-8b", "context": 0}, "context"),
        ("show model", {"model": "llama-3.1-8b", "batch": 1.5}, "batch"),
        ("show model", {"model": "llama-3.1-8b", "precision": "fp7"}, "precision"),
        ("show model", {"model": "lama-3.1-8b"}, "model"),
        ("show roofline", {"chip": "h200", "model": "llama-3.1-8b", "tp": 3}, "tp"),
        ("show roofline", {"chip": "h200", "model": "llama-3.1-8b", "phase": "think"}, "phase"),
        ("show roofline", {"chip": "h200", "model": "llama-3.1-8b", "level": "guess"}, "level"),
        ("show hierarchy", {"chip": "h100-sxm", "working_set": "0 GB"}, "working_set"),
        ("show hierarchy", {"chip": "h100-sxm", "offload": "tape"}, "offload"),
        ("catalog chips", {"vendor": "nvida"}, "vendor"),
        ("catalog chips", {"precision": "fp7"}, "precision"),
        ("catalog models", {"family": "lamma"}, "family"),
        ("validate", {"domain": "kernel"}, "domain"),
        ("explain", {"term": "tpott"}, "term"),
    ],
)
def test_what_is_wrong_names_its_input(
    verb: str, asked: dict[str, object], field: str, shelf: Catalog
) -> None:
    with pytest.raises(DatahallError) as caught:
        getattr(dh, BY_NAME[verb].function)(**asked, catalog=shelf)
    assert caught.value.field == field


@pytest.mark.parametrize("verb", sorted({verb for verb, _ in CASES}))
def test_the_lines_to_copy_parse(verb: str) -> None:
    for line in words(BY_NAME[verb]):
        assert line.startswith(f"datahall {verb}")


def test_numbers_of_an_array_are_numbers() -> None:
    plain = dh.show_fit("llama-3.1-8b", batch=4, context=4096, chip="h200")
    drawn = dh.show_fit("llama-3.1-8b", batch=np.int64(4), context=np.array([4096.0])[0], chip="h200")
    assert drawn.results == plain.results
