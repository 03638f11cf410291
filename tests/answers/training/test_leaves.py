"""Leaves of training's figures: an input is one of the question, and every other number is made of its own parts."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.answers.claims import unfounded

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.breakdown import Breakdown, given
from datahall.catalog import Catalog

MIXTURE: dict[str, Any] = {
    "model": "qwen3-235b-a22b", "chips": 256, "chip": "h100-sxm", "tp": 4, "pp": 4, "ep": 16, "etp": 2, "shard": 8,
    "zero": 1, "compress": "bf16", "framework": "megatron-bridge", "global_batch": 256,
}  # fmt: skip
PLAN: dict[str, Any] = {"model": "llama-3.1-70b", "tokens": "1T", "chip": "h100-sxm"}
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "mixture": ("simulate train", MIXTURE),
    "mixture, its memory": (
        "show memory",
        {name: value for name, value in MIXTURE.items() if name != "chips"} | {"dp": 16},
    ),
    "experts as tp and ep leave them": ("simulate train", MIXTURE | {"etp": None, "shard": None, "ep": 2}),
    "no chips said": ("show memory", {"model": "qwen3-30b-a3b", "chip": "h100-sxm", "tp": 2, "ep": 8}),
    "a batch that is rounded up": (
        "simulate train",
        {"model": "llama-3.1-8b", "chip": "h200", "tp": 8, "chips": 24},
    ),
    "plan": ("plan train", PLAN | {"chips": 16, "offload": "optimizer"}),
    "plan by a deadline": ("plan train", PLAN | {"tokens": "100B", "deadline": "30d"}),
}
FILE = "--tensor-model-parallel-size 2 --micro-batch-size 2 --seq-length 4096 --global-batch-size 64"
COPIES = "[parallelism]\ntensor_parallel_degree = 2\ndata_parallel_replicate_degree = 2\n"


def answered(verb: str, said: dict[str, Any]) -> Answer:
    named = {name: value for name, value in said.items() if value is not None}
    return answer_of(ask(verb, named, catalog=Catalog(user=False)))


@cache
def answer(name: str) -> Answer:
    return answered(*QUESTIONS[name])


def nodes(found: Answer, name: str) -> list[Breakdown]:
    assert found.figure is not None
    met = [one for _, one in found.figure.walk() if one.name == name]
    assert met, name
    return met


def leaves_of(node: Breakdown) -> set[str]:
    return {one.name for _, one in node.walk() if not one.parts}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_input_is_one_of_the_question(name: str) -> None:
    assert unfounded(answer(name)) == []


@pytest.mark.parametrize(("name", "text"), [("run.args", FILE), ("run.toml", COPIES)])
@pytest.mark.parametrize("verb", ["simulate train", "show memory"])
def test_an_input_of_a_layout_file_is_what_the_file_says(
    tmp_path: Path, verb: str, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    found = answered(verb, {"model": "llama-3.1-8b", "chips": 16, "chip": "h100-sxm", "layout": str(path)})
    assert unfounded(found) == []
    assert {one.value for one in nodes(found, "tp")} == {2.0}
    assert found.figure is not None
    false = given("tp", 4, "count")
    changed = msgspec.structs.replace(found.figure, parts=(*found.figure.parts, false))
    lines = unfounded(msgspec.structs.replace(found, figure=changed))
    assert any(str(false) in line for line in lines)


@pytest.mark.parametrize(
    ("question", "name", "value", "rests_on"),
    [
        ("mixture", "replicas", 16, {"chips", "tp", "stages", "cp"}),
        ("mixture", "sequences at once", 16, {"chips", "tp", "stages", "cp", "micro-batch"}),
        ("mixture", "stages that hold tables", 2, {"stages", "ends of the pipeline"}),
        ("mixture", "chips that hold all experts once", 32, {"expert ranks", "chips that share an expert"}),
        ("experts as tp and ep leave them", "chips that share an expert", 2, {"one", "tp", "expert ranks"}),
        ("mixture", "domains", 2, {"expert ranks", "chips of a domain"}),
        ("mixture, its memory", "replicas", 16, {"replicas"}),
        ("no chips said", "replicas", 4, {"tp", "cp", "expert ranks"}),
        ("a batch that is rounded up", "global batch", 1026, {"chips", "tp", "stages", "cp", "micro-batch"}),
    ],
)
def test_a_number_is_made_of_its_own_parts(
    question: str, name: str, value: float, rests_on: set[str]
) -> None:
    for one in nodes(answer(question), name):
        assert one.value == value
        assert leaves_of(one) == rests_on


def test_ranks_that_share_a_state_come_from_its_group() -> None:
    """Of 16 replicas 8 share dense weights; of 64 chips of a stage two hold the same experts, one in each group."""
    for one in nodes(answer("mixture"), "own dense"):
        ranks = one.at("ranks that share them")
        assert ranks.value == 8
        assert leaves_of(ranks) == {"replicas that share a state"}
    assert {one.at("ranks that share them").value for one in nodes(answer("mixture"), "own expert")} == {1.0}
    found = {one.value for one in nodes(answer("mixture, its memory"), "ranks that share it")}
    assert found == {8.0, 1.0}


def test_chips_are_an_input_of_a_plan_that_was_given_them_and_else_its_decision() -> None:
    assert {one.origin for one in nodes(answer("plan"), "chips")} == {"input"}
    assert {one.origin for one in nodes(answer("plan by a deadline"), "chips")} == {"decision"}
    for name in ("tp", "stages", "micro-batch"):
        assert {one.origin for one in nodes(answer("plan"), name)} == {"decision"}


def test_waiting_for_the_slowest_rank_is_the_growth_of_the_other_parts() -> None:
    figure = answer("mixture").figure
    assert figure is not None
    name = "waiting for the slowest rank"
    waiting, others = figure.at(name), [part.value for part in figure.parts if part.name != name]
    assert waiting.operation == "product"
    assert waiting.at("all other parts").value == pytest.approx(sum(others), rel=1e-12)
    assert waiting.value == pytest.approx(answer("mixture").results["slowest_s"], rel=1e-9)


def test_a_gradient_has_one_size_and_it_is_in_bytes() -> None:
    plain = answered("simulate train", MIXTURE | {"compress": None, "shard": None})
    found = nodes(plain, "bytes of a gradient")
    assert len({msgspec.json.encode(one) for one in found}) == 1
    assert found[0].unit == "bytes"


@pytest.mark.parametrize(
    ("question", "name", "rests_on"),
    [
        ("mixture", "embedding and head", {"vocabulary", "hidden width"}),
        ("mixture, its memory", "values of a table on the chip", {"vocabulary", "hidden width", "tp"}),
    ],
)
def test_tables_rest_on_the_vocabulary(question: str, name: str, rests_on: set[str]) -> None:
    for one in nodes(answer(question), name):
        assert leaves_of(one) == rests_on


@pytest.mark.parametrize(
    ("kind", "rests_on"),
    [
        ("routed experts", {"tp", "width of an expert", "experts of a token", "expert ranks"}),
        ("attention", {"tp", "query heads", "width of a head"}),
        ("matrix products", {"tp", "query heads", "hidden width"}),
    ],
)
def test_work_on_one_chip_rests_on_the_widths_and_on_who_shares_them(kind: str, rests_on: set[str]) -> None:
    figure = answer("mixture").figure
    assert figure is not None
    layer = figure.at("kernels", "in its layers", "one layer, one micro-batch")
    bound = layer.at(f"{kind}, bf16", "kernels alone", "least time")
    assert rests_on <= leaves_of(bound.at("their arithmetic", "FLOP"))
    assert rests_on <= leaves_of(bound.at("moving their bytes", "bytes"))


def test_parameters_do_not_rest_on_the_length_of_a_sequence() -> None:
    figure = answer("mixture, its memory").figure
    assert figure is not None
    weights = [one for _, one in figure.walk() if one.unit == "parameters"]
    assert weights
    assert [str(one) for one in weights if "tokens of a sequence" in leaves_of(one)] == []


def test_the_efficiency_of_kernels_is_called_what_it_is_called_in_serving() -> None:
    """One word and one origin for the share of their bound that kernels of a chip reach."""
    roofline = answered("show roofline", {"model": "llama-3.1-8b", "chip": "h100-sxm"})
    served, trained = (nodes(one, "efficiency") for one in (roofline, answer("mixture")))
    origins = {(one.origin, one.sources, one.basis) for one in (*served, *trained)}
    assert len(origins) == 1
    assert trained[0].origin == "fitted"


def test_bytes_that_unfused_work_moves_are_counted_by_their_factors() -> None:
    said = {"chips": 16, "chip": "a100-sxm-80gb", "tp": 4, "framework": "megatron-2022", "global_batch": 32}
    found = answered("simulate train", {"model": "gpt-3-175b", **said, "pp": 4, "seq": 2048})
    moved = nodes(found, "bytes moved")
    assert {one.operation for one in moved} == {"product"}
    assert {"query heads", "tokens of a sequence", "micro-batch"} <= leaves_of(moved[0])
