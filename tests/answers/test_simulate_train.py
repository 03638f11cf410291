"""`simulate train`: the answer, its figures, its timeline, and what it refuses."""

import json
import re
from pathlib import Path

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.cli.main import run
from datahall.errors import DatahallError, ScenarioError, UnknownNameError

SMALL = {"chips": 64, "chip": "h100-sxm", "tp": 4, "pp": 4, "global_batch": 64, "seq": 4096}


def asked(**more: object) -> Answer:
    return dh.simulate_train("llama-3.1-8b", **(SMALL | more))  # type: ignore[arg-type]


def test_the_answer_holds_what_a_person_asks() -> None:
    answer = asked()
    assert number(answer, "step_low_s") < number(answer, "step_s") < number(answer, "step_high_s")
    assert 0 < number(answer, "bubble_fraction") < 0.5
    assert number(answer, "exposed_s") > 0
    assert number(answer, "memory_bytes") > 10e9
    assert abs(number(answer, "difference_fraction")) < 0.05
    assert "MFU" in answer.headline
    assert answer.figure is not None
    assert sum(part.value for part in answer.figure.parts) == pytest.approx(answer.figure.value)
    titles = [table.title for table in answer.tables]
    assert len(titles) == 4
    assert any("closed form" in title for title in titles)


def test_the_three_costs_of_synchronisation_are_parts() -> None:
    table = next(one for one in asked(recompute="full").tables if "synchronisation" in one.title)
    costs = [str(row[0]) for row in table.rows]
    assert costs == ["barrier", "message", "pipeline bubble", "recomputation", "all"]
    assert all(float(row[2]) > 0 for row in table.rows)  # type: ignore[arg-type]


def test_replicas_are_the_chips_left_over() -> None:
    assert asked().results["dp"] == 4
    assert asked(dp=4).results == asked().results


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_only_replicas_that_share_their_state_gather_parameters(zero: int) -> None:
    """Stage 0 is an all-reduce: what is gathered are the gradients."""
    (note,) = [line for line in asked(zero=zero).notes if line.startswith("gradients are reduced over")]
    assert ("parameters" in note) is (zero > 0)


def test_the_same_seed_gives_the_same_answer() -> None:
    first, again, other = (asked(jitter="3 %", slow_hosts="5 %", seed=seed).results for seed in (1, 1, 2))
    assert first == again
    assert first["step_s"] != other["step_s"]


def test_the_command_and_the_function_agree(capsys: pytest.CaptureFixture[str]) -> None:
    words = "simulate train llama-3.1-8b --chips 64 --chip h100-sxm --tp 4 --pp 4 --global-batch 64 --seq 4096 --json"
    assert run(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["results"]["step_s"] == pytest.approx(asked().results["step_s"])


def test_a_timeline_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "simulate train llama-3.1-8b --chips 64 --tp 4 --pp 4 --global-batch 64 --format perfetto -o"
    file = tmp_path / "step.pftrace"
    assert run([*words.split(), str(file)]) == 0
    assert b"stage 3" in file.read_bytes()
    assert "ui.perfetto.dev" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "error", "field", "text"),
    [
        ({"tp": 3}, ScenarioError, "tp", "nearest legal: tp=2 or tp=4"),
        ({"dp": 5}, ScenarioError, "chips", "dp=4 would fit"),
        ({"pp": 16, "vpp": 4}, ScenarioError, "vpp", "32 layers"),
        ({"global_batch": 63}, ScenarioError, "global_batch", "does not divide 63"),
        ({"zero": 4}, ScenarioError, "zero", "at most 3"),
        ({"recompute": "some"}, ScenarioError, "recompute", "one of none, selective, full"),
        ({"schedule": "1f2b"}, ScenarioError, "schedule", "did you mean 1f1b"),
        ({"schedule": "interleaved"}, ScenarioError, "vpp", "at least two chunks"),
        ({"framework": "megatron"}, UnknownNameError, "framework", "did you mean: megatron"),
        ({"slow_hosts": "many"}, ScenarioError, "slow_hosts", "many"),
        ({"slow_by": "10 %"}, ScenarioError, "slow_by", "does nothing here: it needs slow_hosts"),
        ({"jitter": "80 %"}, ScenarioError, "jitter", "50 %"),
        ({"chip": "h1000-sxm"}, DatahallError, "chip", "h100-sxm"),
        ({"global_batch": 64 * 10**7, "seq": 1}, ScenarioError, "global_batch", "more than 100,000"),
    ],
)
def test_what_cannot_be_simulated_says_why(
    more: dict[str, object], error: type[DatahallError], field: str, text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        asked(**more)
    assert caught.value.field == field


def experts(**more: object) -> Answer:
    return dh.simulate_train(
        "qwen3-30b-a3b",
        **({"chips": 16, "chip": "h200", "ep": 8, "global_batch": 64, "seq": 4096} | more),  # type: ignore[arg-type]
    )


def test_a_busier_rank_of_experts_is_shown_and_slows_the_step() -> None:
    chance, skewed = experts(), experts(imbalance="1.3")
    assert number(skewed, "step_s") > number(chance, "step_s") > 0
    assert number(skewed, "uneven_s") > 10 * number(chance, "uneven_s") > 0
    assert any("1.300 of the mean load (as asked)" in note for note in skewed.notes)
    assert any("chance alone" in note for note in chance.notes)
    assert any("--imbalance 1.3" in command for command in skewed.next_commands)
    assert not any("busiest" in note for note in asked().notes)


@pytest.mark.parametrize("value", ["0.9", "inf", "twice"])
def test_an_imbalance_below_even_is_refused(value: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        experts(imbalance=value)
    assert caught.value.field == "imbalance"


def test_a_stage_waits_for_all_chips_that_share_it() -> None:
    notes = asked(cp=2, jitter="2 %").notes
    assert any("the slowest of 8 chips, a step for the slowest of 2 replicas" in note for note in notes)


@pytest.mark.parametrize(
    "more", [{"tp": 8, "pp": 5, "dp": 1}, {"tp": 4, "pp": 3}, {"tp": 8, "cp": 3, "dp": 2}]
)
def test_degrees_that_are_offered_make_the_chips_that_were_asked_for(more: dict[str, object]) -> None:
    """Beside a number of replicas that was said and beside one that follows."""
    with pytest.raises(ScenarioError, match="chips, not 64") as caught:
        asked(**more)
    assert caught.value.marked is not None
    offers = re.findall(r"⟦(\w+)=(\d+)⟧ with ⟦dp=(\d+)⟧", caught.value.marked[1])
    assert offers
    for name, value, replicas in offers:
        assert asked(**more | {name: int(value), "dp": int(replicas)}).verdict == "yes"
