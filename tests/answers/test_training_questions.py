"""Training's verbs: figures that hold, one answer from every border, and follow-ups that run and agree."""

import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.catalog.document import Document
from datahall.cli.main import run
from datahall.units import fmt

SHELF = Catalog(user=False)

# a verb and its inputs: dense and mixtures, every kind of parallelism, offload, a deadline, stragglers
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "plan dense": ("plan train", {"model": "llama-3.1-8b", "tokens": "1T", "chips": 64}),
    "plan by a deadline": (
        "plan train", {"model": "llama-3.1-8b", "tokens": "1T", "deadline": "20d", "global_batch": 512},
    ),
    "plan experts": (
        "plan train", {"model": "qwen3-30b-a3b", "tokens": "1T", "chips": 64, "chip": "h200-sxm", "imbalance": 1.2},
    ),
    "plan offload": (
        "plan train",
        {"model": "llama-3.1-405b", "tokens": "1T", "chips": 64, "global_batch": 512,
         "offload": "optimizer,activations"},
    ),
    "plan on a slow network": (
        "plan train", {"model": "llama-3.1-8b", "tokens": "1T", "chips": 64, "nic": "10 GB/s", "domain": 4},
    ),
    "memory dense": ("show memory", {"model": "llama-3.1-70b", "chips": 64, "tp": 8, "global_batch": 256}),
    "memory experts": (
        "show memory", {"model": "deepseek-v3", "chip": "h800-sxm", "pp": 16, "ep": 64, "recompute": "full"},
    ),
    "memory context": ("show memory", {"model": "llama-3.1-8b", "cp": 8, "seq": 65536, "micro_batch": 1}),
    "memory sharded": (
        "show memory", {"model": "llama-3.1-8b", "chips": 64, "zero": 3, "shard": 8, "offload": "optimizer:nvme"},
    ),
    "memory modules": (
        "show memory", {"model": "llama-3.1-8b", "chips": 16, "tp": 2, "pp": 4, "modules": "mlp,layernorm",
                        "schedule": "zb", "state": "pure-bf16"},
    ),
    "step dense": (
        "simulate train", {"model": "llama-3.1-8b", "chips": 64, "tp": 4, "pp": 4, "global_batch": 64, "seq": 4096},
    ),
    "step interleaved": (
        "simulate train", {"model": "llama-3.1-8b", "chips": 64, "tp": 2, "pp": 4, "vpp": 4, "recompute": "full"},
    ),
    "step experts": (
        "simulate train", {"model": "qwen3-30b-a3b", "chips": 16, "chip": "h200-sxm", "ep": 8, "imbalance": 1.3},
    ),
    "step context": (
        "simulate train", {"model": "llama-3.1-8b", "chips": 64, "cp": 8, "context_exchange": "all-to-all",
                           "seq": 32768, "zero": 3, "global_batch": 64},
    ),
    "step offload": (
        "simulate train", {"model": "llama-3.1-405b", "chips": 64, "tp": 8, "pp": 8, "global_batch": 64,
                           "offload": "optimizer,activations", "split": "15,16x6,15"},
    ),
    "step stragglers": (
        "simulate train", {"model": "llama-3.1-8b", "chips": 64, "pp": 4, "jitter": "2 %", "slow_hosts": "5 %",
                           "slow_by": "20 %", "seed": 7, "schedule": "dualpipe"},
    ),
}  # fmt: skip
each = pytest.mark.parametrize("name", QUESTIONS)


@cache
def answer(name: str) -> Answer:
    verb, given = QUESTIONS[name]
    return answer_of(ask(verb, given, catalog=SHELF))


@each
def test_every_figure_is_what_its_parts_make(name: str) -> None:
    figure = answer(name).figure
    assert figure is not None
    assert false_nodes(figure) == []
    key = {"plan train": "elapsed_s", "show memory": "total_bytes", "simulate train": "step_s"}[
        QUESTIONS[name][0]
    ]
    assert figure.value == pytest.approx(answer(name).results[key], rel=1e-12)
    leaves = {one.origin for _, one in figure.walk() if not one.parts}
    assert {"input", "fact", "assumption"} <= leaves
    assert max(depth for depth, _ in figure.walk()) >= 4


@each
def test_bands_are_stated_on_the_step_and_reach_the_run(name: str) -> None:
    found = answer(name)
    if QUESTIONS[name][0] == "show memory":
        return
    assert found.figure is not None
    steps = found.figure.at("time of the steps") if "duration_s" in found.results else found.figure
    assert steps.band is not None
    key = "duration" if "duration_s" in found.results else "step"
    assert steps.band.low == pytest.approx(found.results[f"{key}_low_s"])
    assert steps.band.high == pytest.approx(found.results[f"{key}_high_s"])
    low, value, high = (cast(float, found.results[f"{key}{end}_s"]) for end in ("_low", "", "_high"))
    assert 0 < low < value < high


@each
def test_a_headline_has_the_numbers_of_the_results(name: str) -> None:
    found, results = answer(name), answer(name).results

    def shown(key: str, unit: str, digits: int = 3) -> str:
        return fmt(cast(float, results[key]), unit, digits)

    match QUESTIONS[name][0]:
        case "plan train":
            said = [shown("duration_s", "s"), shown("headroom_bytes", "bytes"), f"{results['num_chips']:,} ×"]
            said.append(f"{fmt(cast(float, results['mfu_fraction']), 'fraction')} MFU")
            assert results["duration_s"] == pytest.approx(
                cast(float, results["num_steps"]) * cast(float, results["step_s"])
            )
        case "simulate train":
            said = [shown(key, "s") for key in ("step_s", "step_low_s", "step_high_s")]
            said += [shown("memory_bytes", "bytes"), f"{results['tokens_per_s']:,.0f} tokens/s"]
            said.append(f"{fmt(cast(float, results['mfu_fraction']), 'fraction')} MFU")
            per_step = cast(float, results["seq_tokens"]) * cast(float, results["global_batch"])
            assert cast(float, results["tokens_per_s"]) * cast(float, results["step_s"]) == pytest.approx(
                per_step
            )
            num_chips = cast(float, QUESTIONS[name][1]["chips"])
            assert cast(float, results["chip_tokens_per_s"]) * num_chips == pytest.approx(
                results["tokens_per_s"]
            )
        case _:
            said = [shown("total_bytes", "bytes", 4), shown("limit_bytes", "bytes", 4)]
            said += [shown("headroom_bytes", "bytes")] if found.verdict == "yes" else []
    assert not [one for one in said if one not in found.headline]


@each
def test_the_closed_form_stands_beside_what_was_simulated(name: str) -> None:
    found, results = answer(name), answer(name).results
    if QUESTIONS[name][0] == "show memory":
        return
    closed_s = cast(float, results["closed_form_s" if "closed_form_s" in results else "closed_step_s"])
    away = closed_s / cast(float, results["step_s"]) - 1.0
    said = "as the simulation does" if abs(away) < 5e-4 else fmt(abs(away), "fraction")
    layout = found.headline if QUESTIONS[name][0] == "plan train" else str(found.inputs)
    alone = "zero 3" in layout.replace("'zero': 3", "zero 3") and "pp" not in layout.replace("'pp': 1,", "")
    assert ("the same sum" if alone else said) in found.binding
    if "difference_fraction" in results:
        assert results["difference_fraction"] == pytest.approx(away)
    else:  # the chosen row of the best layouts
        table = next(one for one in found.tables if one.title == "best layouts")
        assert table.rows[0][1:4] == pytest.approx((closed_s, results["step_s"], away))


@each
def test_flags_keywords_toml_and_json_have_one_answer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb, given = QUESTIONS[name]
    asked = answer(name)
    by_keywords = getattr(dh, verb.replace(" ", "_"))(**given, catalog=SHELF)
    plain = msgspec.to_builtins(asked.question)
    by_file = answer_of(ask(verb, document=Document("", plain, {}), catalog=SHELF))
    by_json = dh.ask(json.loads(json.dumps(plain)), catalog=SHELF)
    words = [str(given["model"])]
    for key, value in given.items():
        words += [] if key == "model" else [f"--{key.replace('_', '-')}", str(value)]
    code = run([*verb.split(), *words, "--json"])
    by_flags = json.loads(capsys.readouterr().out)
    assert code == (1 if asked.verdict == "no" else 0)
    for other in (by_keywords, by_file, by_json):
        assert other.results == asked.results
        assert other.figure == asked.figure
        assert other.headline == asked.headline
    assert by_flags["headline"] == asked.headline
    assert by_flags["results"].keys() == asked.results.keys()


@each
def test_follow_ups_run_and_keep_what_was_given(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = QUESTIONS[name][1]
    for command in answer(name).next_commands:
        words = shlex.split(command)[1:]
        if words[0] == "validate":
            continue
        assert run([*words, *(() if "-o" in words else ("--json",))]) in (0, 1), command
        if words[:2] == QUESTIONS[name][0].split() and "deadline" not in given:
            for key in given:
                assert key == "model" or f"--{key.replace('_', '-')}" in words, command


def test_a_plan_and_what_follows_it_agree(capsys: pytest.CaptureFixture[str]) -> None:
    plan = answer("plan offload")
    memory, step, *_ = plan.next_commands
    assert run([*shlex.split(memory)[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]["total_bytes"] == pytest.approx(
        plan.results["memory_bytes"]
    )
    assert run([*shlex.split(step)[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]["step_s"] == pytest.approx(plan.results["step_s"])


def test_the_cheapest_change_is_the_next_command_and_fits(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer("memory dense")
    assert found.verdict == "no"
    assert run([*shlex.split(found.next_commands[0])[1:], "--json"]) == 0
    free = next(row for row in found.tables[-1].rows if row[1] == "yes")[2]
    assert json.loads(capsys.readouterr().out)["results"]["headroom_bytes"] == pytest.approx(free)


def test_the_network_reaches_every_number_of_chips_that_a_plan_weighs() -> None:
    usual, slow = answer("plan dense"), answer("plan on a slow network")
    assert number(slow, "step_s") > number(usual, "step_s")
    (fast_front,) = (table for table in usual.tables if table.title == "chips against time")
    (slow_front,) = (table for table in slow.tables if table.title == "chips against time")
    times = {row[0]: row[1] for row in fast_front.rows}
    assert all(row[1] > times[row[0]] for row in slow_front.rows if row[0] in times)


def test_no_answer_speaks_of_flags_or_play() -> None:
    for name in QUESTIONS:
        found = answer(name)
        text = " ".join(
            (found.headline, found.binding, *found.notes, *(table.note for table in found.tables))
        )
        assert "--" not in text
        assert "played" not in text
