"""One global batch, and so one step, of a run that nobody says a batch of, whatever is asked about it."""

from __future__ import annotations

import json
import shlex

import pytest

import datahall as dh
from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS
from datahall.cli.main import run
from datahall.scenario.usual import BATCH_WHERE_UNSAID

BATCHES = {1024: 1024, 16384: 1024, 20000: 1250, 32768: 2048}  # a sequence for 16 chips, at least 1,024
TRAINED = (
    "plan train",
    "show memory",
    "simulate train",
    "simulate run",
    "show checkpoint",
    "show power",
    "show cost",
    "show training-techniques",
)


@pytest.mark.parametrize("chips", BATCHES)
def test_all_that_is_asked_of_a_run_is_of_one_batch_and_one_step(chips: int) -> None:
    there = {"chips": chips, "chip": "h100-sxm"}
    plan = dh.plan_train("llama-3.1-8b", tokens="1T", **there)
    others = (
        dh.show_cost("llama-3.1-8b", tokens="1T", **there),
        dh.simulate_run("llama-3.1-8b", tokens="1T", runs=10, **there),
        dh.show_power("llama-3.1-8b", **there),
        dh.show_checkpoint("llama-3.1-8b", **there),
    )
    for one in (plan, *others):
        assert one.inputs["global_batch"] == BATCHES[chips], one.kind
        assert one.results["step_s"] == plan.results["step_s"], one.kind


@pytest.mark.parametrize(
    "asked",
    [
        {"chips": 32768},
        {"chips": 17000},  # of which 8 stay idle: 1,062 sequences do not divide over them
        {"deadline": "6d", "tokens": "15T", "model": "llama-3.1-70b"},
        {"deadline": "6d", "tokens": "15T", "model": "llama-3.1-70b", "global_batch": 4096},
    ],
)
def test_what_follows_a_plan_is_of_its_batch(
    asked: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = dh.plan_train(**{"model": "llama-3.1-8b", "tokens": "1T", "chip": "h100-sxm", **asked})
    batch = plan.inputs["global_batch"]
    assert batch == asked.get("global_batch") or batch == max(1024, int(plan.results["num_chips"]) // 16)
    assert len(plan.next_commands) >= 5
    for command in plan.next_commands:
        words = shlex.split(command)
        asked_again = words[1 : words.index("-o")] if "-o" in words else words[1:]
        run([*asked_again, "--json", "--quiet"])
        assert json.loads(capsys.readouterr().out)["inputs"]["global_batch"] == batch, command


@pytest.mark.parametrize("verb", TRAINED)
def test_every_verb_says_that_default_and_no_other(verb: str) -> None:
    assert BATCH_WHERE_UNSAID in form_of(verb).fields["global_batch"].kind.help


def test_those_are_all_verbs_that_train() -> None:
    assert {one.name for one in VERBS if "global_batch" in form_of(one.name).fields} == set(TRAINED)
