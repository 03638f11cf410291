"""Answers about services: figures that add up, questions that can be asked again, follow-ups that ask the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.answers.borders import said_by_name

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.answers.verbs import BY_NAME
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cli.command import Question
from datahall.cli.main import run
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario

PLAN = [
    {"model": "llama-3.1-8b", "users": 500, "chips": "h100-sxm,l40s"},
    {"model": "llama-3.1-70b", "rate": 20, "isl": 2000, "osl": 300, "chips": "h200", "precision": "fp8", "ttft": 2.0},
    {"model": "deepseek-v3", "rate": 5, "chips": "h200", "precision": "fp8"},
    {"model": "qwen3-30b-a3b", "rate": 50, "chips": "h100-sxm", "draft": "ngram", "num_draft": 2},
    {"model": "llama-3.1-8b", "rate": 20, "chips": "mi300x", "adapters": 100, "resident_adapters": 20,
     "engine": "sglang", "max_sequences": 64, "headroom": 0.2, "percentile": 99},
    {"model": "llama-3.1-8b", "users": 300, "think": 30.0, "traffic": "rag", "spread": 0.5, "tp": 2, "chips": "l40s",
     "ttft": 3.0, "seed": 3},
]  # fmt: skip
SIMULATE = [
    {"model": "llama-3.1-8b", "rate": 5, "requests": 300},
    {"model": "deepseek-v3", "chip": "h200", "precision": "fp8", "tp": 8, "ep": 8, "rate": 2, "requests": 300},
    {"model": "deepseek-v3", "chip": "h200", "precision": "fp8", "tp": 1, "dp": 16, "ep": 16, "rate": 5,
     "requests": 300},
    {"model": "llama-3.1-8b", "users": 16, "requests": 300, "draft": "ngram", "num_draft": 1, "acceptance": 0.8,
     "adapters": 10, "tpot": 0.03, "engine": "sglang"},
    {"model": "llama-3.1-8b", "disaggregated": "prefill=1xh200,decode=2xh200", "rate": 5, "requests": 300},
    {"model": "llama-3.1-70b", "rate": 1, "requests": 200, "tp": 2, "pp": 2},
    {"model": "llama-3.1-8b", "rate": 5, "requests": 300, "engine": "static"},
    {"model": "llama-3.1-8b", "rate": 500, "requests": 2000, "isl": 400, "osl": 100},
    {"model": "llama-3.1-8b", "rate": 5, "requests": 300, "turns": 3, "host_cache": 10e9, "autoscale": "1..3",
     "cold_start": 10.0},
    {"model": "llama-3.1-8b", "rate": 8, "requests": 300, "replicas": 2, "cache": "process=200,semantic=20%",
     "failure": ["replicas=0,start=5s,duration=10s"]},
]  # fmt: skip
FIT = [
    {"model": "llama-3.1-70b", "context": "32k"},
    {"model": "deepseek-v3", "chip": "h200", "precision": "fp8", "tp": 8, "batch": 64},
    {"model": "llama-3.1-8b", "adapters": 100, "engine": "sglang"},
    {"model": "llama-3.1-8b", "engine": "trtllm", "chip": "mi300x"},
    {"model": "llama-3.1-405b", "tp": 2},
]
TECHNIQUES = [
    {"model": "llama-3.1-8b", "chip": "l40s", "rate": 2, "isl": 2000, "osl": 300, "cached": 0.6},
    {"model": "deepseek-v3", "chip": "h200", "tp": 8, "rate": 2, "precision": "fp8", "draft": "mtp"},
]
QUESTIONS = [
    *(("plan serve", given) for given in PLAN),
    *(("simulate serve", given) for given in SIMULATE),
    *(("show fit", given) for given in FIT),
    *(("show techniques", given) for given in TECHNIQUES),
]
SERVING = {"plan serve", "simulate serve", "show techniques"}
Given = dict[str, object]


@pytest.fixture(scope="session")
def answer(shelf: Catalog) -> Callable[[int], Answer]:
    """The answer to a question of the list, asked once."""
    known: dict[int, Answer] = {}

    def asked(place: int) -> Answer:
        if place not in known:
            verb, given = QUESTIONS[place]
            known[place] = getattr(dh, BY_NAME[verb].function)(**given, catalog=shelf)
        return known[place]

    return asked


each = pytest.mark.parametrize(
    "place", range(len(QUESTIONS)), ids=[f"{verb} {given}" for verb, given in QUESTIONS]
)


@each
def test_the_chain_holds_and_its_value_is_the_result(answer: Callable[[int], Answer], place: int) -> None:
    found = answer(place)
    assert found.figure is not None
    assert false_nodes(found.figure) == []
    name = {
        "serving plan": "num_chips", "serving run": "tpot_mean_s", "fit": "num_sequences",
        "serving techniques": "together_ratio",
    }[found.kind]  # fmt: skip
    assert found.results[name] == pytest.approx(found.figure.value, rel=1e-12)


@each
def test_what_was_asked_can_be_asked_again(
    answer: Callable[[int], Answer], place: int, shelf: Catalog
) -> None:
    found = answer(place)
    again = dh.ask(json.loads(json.dumps(found.question)), catalog=shelf)
    for part in (
        "headline",
        "verdict",
        "results",
        "tables",
        "figure",
        "inputs",
        "question",
        "next_commands",
    ):
        assert getattr(again, part) == getattr(found, part), part


def scenario_of(line: str, shelf: Catalog) -> Scenario:
    """The scenario that a command line asks, read as the command reads it."""
    words = shlex.split(line)
    assert words[0] == "datahall"
    verb = next(BY_NAME[name] for name in (" ".join(words[1:3]), words[1]) if name in BY_NAME)
    context = Question(verb).make_context(verb.name, words[1 + len(verb.name.split()) :])
    typed = {name: value for name, value in context.params.items() if name in form_of(verb.name).fields}
    return read_names(form_of(verb.name), Question(verb)._given(context, typed), shelf)


@each
def test_follow_ups_parse_and_keep_what_was_given(
    answer: Callable[[int], Answer], place: int, shelf: Catalog
) -> None:
    verb, _ = QUESTIONS[place]
    found = answer(place)
    asked = {key: value for key, value in _flat(found.question).items() if key not in ("version", "ask")}
    for line in found.next_commands:
        if "validate" in line:
            continue
        scenario = scenario_of(line, shelf)
        kept = said_by_name(scenario)
        changed = {
            "rate",
            "users",
            "think",
            "chips",
            "chip",
            "precision",
            "replicas",
            "requests",
            "batch",
            "engine",
            "cached",  # of a prompt, by a replica; of a plan it is what an API finds in its cache
            "disaggregated",  # which pools there are, where a service is simulated
        }
        for name, value in asked.items():
            if name in scenario.form.fields and name not in changed:
                # a plan finds the group of ranks or stages by itself
                assert kept.get(name) == value or (name == "tp" and scenario.verb == "plan serve"), (
                    name,
                    line,
                )
        if "static" not in str(asked.get("engine")):
            assert asked.get("engine") == kept.get("engine") or "engine" not in scenario.form.fields
        assert verb != "simulate serve" or scenario.form.verb in SERVING


def _flat(question: dict[str, object]) -> dict[str, object]:
    """What was said, by the names of inputs; the key of a preset is its flag."""
    found: dict[str, object] = {}
    for key, value in question.items():
        if key not in (
            "failure",
            "cache",
            "region",
            "job",
            "background",
            "stall",
        ):  # inline tables: one flag each
            found |= value if isinstance(value, dict) else {key: value}
    if "preset" in found:
        found["traffic"] = found.pop("preset")
    return found


@pytest.mark.parametrize("place", [0, 1, 5, 6, 7, 12, 13, 14, 15, 21, 22])
def test_follow_ups_run_and_end_with_an_answer(
    answer: Callable[[int], Answer],
    place: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where a follow-up writes its file
    for line in answer(place).next_commands:
        words = shlex.split(line)[1:]
        if " ".join(words[:2]) in SERVING:
            assert run(words) in (0, 1), line
            written = [f"datahall: wrote {name}: " for name in words[-1:] if "-o" in words]
            said = capsys.readouterr().err
            assert said.startswith(written[0]) if written else said == "", line


@pytest.mark.parametrize("place", [0, 1, 2, 4])
def test_a_plan_holds_when_it_is_simulated_as_it_says(answer: Callable[[int], Answer], place: int) -> None:
    plan = answer(place)
    words = shlex.split(plan.next_commands[0])
    verb = BY_NAME["simulate serve"]
    context = Question(verb).make_context(verb.name, words[3:])
    typed = {name: value for name, value in context.params.items() if name in form_of(verb.name).fields}
    simulated = dh.simulate_serve(**Question(verb)._given(context, typed))
    good, least = simulated.results["good_fraction"], float(plan.inputs["percentile"])  # type: ignore[arg-type]
    assert simulated.verdict == "yes"
    assert isinstance(good, float)
    assert good >= least - 0.02
    assert simulated.results["num_chips"] == plan.results["num_chips"]


def test_a_trace_is_planned_for_with_its_own_lengths(tmp_path: Path) -> None:
    rows = "".join(f"{place},{900 + place % 3 * 100},50\n" for place in range(30))
    (tmp_path / "t.csv").write_text(f"arrival_s,prompt,output\n{rows}")
    found = dh.simulate_serve("llama-3.1-8b", trace=str(tmp_path / "t.csv"), warmup="0s")
    assert f"--trace {tmp_path / 't.csv'}" in found.next_commands[0]
    assert "--isl" not in found.next_commands[0]


def test_a_trace_of_one_time_is_planned_for_with_its_mean_lengths(tmp_path: Path) -> None:
    """All at once, from which no rate follows: as many a second as ended."""
    rows = "".join(f"0,{900 + place % 3 * 100},50\n" for place in range(30))
    (tmp_path / "t.csv").write_text(f"arrival_s,prompt,output\n{rows}")
    found = dh.simulate_serve("llama-3.1-8b", trace=str(tmp_path / "t.csv"), warmup="0s")
    assert "--isl 1000 --osl 50" in found.next_commands[0]
    assert "--trace" not in found.next_commands[0]


LLAMA = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": True,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "hidden_size": 2048, "intermediate_size": 8192, "moe_intermediate_size": 1024,
    "num_hidden_layers": 12, "first_k_dense_replace": 1, "num_attention_heads": 16, "num_key_value_heads": 16,
    "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 1, "n_group": 8, "topk_group": 4,
    "vocab_size": 129280, "max_position_embeddings": 32768,
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
}  # fmt: skip


@pytest.mark.parametrize("config", [LLAMA, DEEPSEEK], ids=["dense", "experts"])
@pytest.mark.parametrize("verb", ["plan_serve", "simulate_serve"])
def test_the_folder_of_a_config_says_nothing_about_the_model(
    tmp_path: Path, config: Given, verb: str
) -> None:
    more: Given = {"chips": "h200"} if verb == "plan_serve" else {"chip": "h200", "requests": 300}
    found = []
    for name in ("deepseek-v3", "dsv3"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        found.append(getattr(dh, verb)(str(folder), rate=20, precision="fp8", **more))
    one, other = found
    for part in (
        "headline",
        "binding",
        "verdict",
        "results",
        "tables",
        "figure",
        "notes",
        "inputs",
        "charts",
    ):
        assert getattr(one, part) == getattr(other, part), part


def test_the_file_says_how_its_weights_are_scaled_and_that_tells(tmp_path: Path) -> None:
    """Scales of blocks cost: the same layers without them are faster in fp8."""
    plain = {key: value for key, value in DEEPSEEK.items() if key != "quantization_config"}
    times = []
    for name, config in (("scaled", DEEPSEEK), ("plain", plain)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        found = dh.simulate_serve(str(tmp_path / name), rate=20, chip="h200", precision="fp8", requests=300)
        times.append(found.results["tpot_mean_s"])
    assert times[0] != times[1]


@pytest.mark.parametrize("verb", ["plan_serve", "simulate_serve"])
def test_lengths_beside_a_preset_stand_in_its_place_and_that_is_said(verb: str) -> None:
    more: Given = {"chips": "h100-sxm"} if verb == "plan_serve" else {"requests": 1000}
    plain, own = (
        getattr(dh, verb)("llama-3.1-8b", rate=20, traffic="lmsys-chat", **lengths, **more)
        for lengths in ({}, {"isl": 4000})
    )
    assert any("(lmsys-chat)" in note for note in plain.notes)
    assert any("(lmsys-chat with its own isl)" in note for note in own.notes)
    assert (
        own.results["ttft_s" if verb == "plan_serve" else "ttft_p50_s"]
        > (plain.results["ttft_s" if verb == "plan_serve" else "ttft_p50_s"])
    )
    if verb == "plan_serve":
        assert own.results["prompt_tokens"] == 4000
        assert own.results["output_tokens"] == plain.results["output_tokens"]
