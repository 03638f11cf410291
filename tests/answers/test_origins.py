"""An input is what somebody said: a leaf that nobody said is an assumption, and says that it is the default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog

# questions of which each says a number or two that no default is
ASKED: dict[str, dict[str, Any]] = {
    "show fit": {"model": "llama-3.1-8b", "tp": 2},
    "show model": {"model": "llama-3.1-8b", "batch": 7},
    "show collective": {"collective": "all-reduce", "chips": 48, "size": "3 MB"},
    "show memory": {"model": "llama-3.1-8b", "chips": 24},
    "simulate train": {"model": "llama-3.1-8b", "chips": 24, "global_batch": 96},
    "plan train": {"model": "llama-3.1-8b", "tokens": "300G", "chips": 24, "global_batch": 96},
    "plan serve": {"model": "llama-3.1-8b", "users": 300, "isl": 700, "osl": 90, "chips": "h200-sxm"},
    "show techniques": {"model": "llama-3.1-8b", "rate": 3, "isl": 700, "osl": 90},
    "simulate serve": {"model": "llama-3.1-8b", "rate": 3, "isl": 700, "osl": 90, "requests": 1000},
    "show hierarchy": {"chip": "h100-sxm", "working_set": "3 GB"},
}
NUMBERS = {2.0, 7.0, 48.0, 24.0, 96.0, 3e6, 3e11, 300.0, 700.0, 90.0, 3.0, 3e9}  # all that is said above
# what is said and is what it is without: the leaf it becomes
DEFAULTS = (
    ("show fit", {"context": 8192}, "tokens of a sequence"),
    ("show fit", {"memory_fraction": "90 %"}, "the engine's share"),
    ("show model", {"context": 8192}, "tokens"),
    ("show collective", {"nic": "400 Gb/s"}, "network of a chip, one way"),
    ("show collective", {"nic": "400 Gb/s", "on": "fat-tree"}, "network of a chip, one way"),
    ("show memory", {"seq": 8192}, "tokens of a sequence"),
    ("simulate train", {"micro_batch": 1}, "micro-batch"),
    ("plan serve", {"headroom": "10 %"}, "headroom"),
    ("plan serve", {"tpot": "50 ms"}, "TPOT limit"),
    ("plan serve", {"tp": 1}, "tp"),
)


def asked(verb: str, said: dict[str, Any], shelf: Catalog, *, bare: bool = False) -> Answer:
    answer = answer_of(ask(verb, said, catalog=shelf, bare=bare))
    assert answer.figure is None or not false_nodes(answer.figure)
    return answer


def leaves(answer: Answer) -> list[Breakdown]:
    assert answer.figure is not None
    return [one for _, one in answer.figure.walk() if not one.parts]


@pytest.mark.parametrize("verb", [verb for verb in ASKED if verb != "show hierarchy"])
def test_a_leaf_that_is_an_input_was_said(verb: str, shelf: Catalog) -> None:
    found = [one for one in leaves(asked(verb, ASKED[verb], shelf)) if one.origin == "input"]
    assert {one.value for one in found} <= NUMBERS, found


@pytest.mark.parametrize(("verb", "more", "leaf"), DEFAULTS, ids=str)
def test_a_default_is_an_assumption_until_it_is_said(
    verb: str, more: dict[str, Any], leaf: str, shelf: Catalog
) -> None:
    plain, beside = (asked(verb, said, shelf) for said in (ASKED[verb], {**ASKED[verb], **more}))
    assert plain.results == beside.results
    before, after = (
        [one for _, one in answer.figure.walk() if one.name == leaf] for answer in (plain, beside)
    )  # type: ignore[union-attr]
    assert before
    assert all(one.origin != "input" for one in before)
    assert {one.origin for one in after} == {"input"}
    assert not any(one.sources for one in after), "what a person says is no fact of a datasheet"


@pytest.mark.parametrize("verb", ASKED)
def test_what_nobody_said_is_listed_apart(verb: str, shelf: Catalog) -> None:
    answer = asked(verb, ASKED[verb], shelf)
    assert set(answer.defaults) <= set(answer.inputs)
    said = {key for key in answer.inputs if key not in answer.defaults}
    assert len(said) == len(ASKED[verb])


# inputs whose default decides the answer, though it is the room that knows it
UNSAID: tuple[tuple[str, dict[str, Any], set[str]], ...] = (
    ("simulate train", {"model": "llama-3.1-8b", "chips": 8},
     {"seq", "global_batch", "precision", "state", "framework", "chip", "tp", "pp", "cp", "dp", "zero", "micro_batch"}),
    ("simulate train", {"model": "qwen3-30b-a3b", "chips": 32, "pp": 4, "cp": 2},
     {"seq", "global_batch", "precision", "chip", "tp", "vpp", "ep", "schedule", "context_exchange", "micro_batch",
      "domain", "nic_bytes_per_s"}),
    ("show memory", {"model": "llama-3.1-8b"},
     {"seq", "global_batch", "precision", "state", "framework", "chip", "chips", "tp", "pp", "micro_batch"}),
    ("plan train", {"model": "qwen3-0.6b", "chips": 8, "tokens": "1G"},
     {"seq", "global_batch", "precision", "state", "framework", "chip", "domain"}),
    ("plan train", {"model": "llama-3.1-8b", "chips": 16, "tokens": "1G"}, {"chip", "domain", "nic_bytes_per_s"}),
    ("show fabric", {"topologies": ["fat-tree"], "chips": 64}, {"domain", "nic_bytes_per_s", "oversubscription"}),
    ("show fabric", {"topologies": ["nvl72"], "chips": 144}, {"chip", "nic_bytes_per_s"}),
    ("show fabric", {"topologies": ["meta-24k-roce"]}, {"chip"}),
    ("show collective", {"collective": "all-reduce", "chips": 48, "size": "3 MB"},
     {"chip", "version", "domain", "nic_bytes_per_s"}),
    ("show collective", {"collective": "all-to-all", "experts": 64, "tokens": 4096, "topk": 2, "hidden": 512},
     {"chip", "chips", "precision", "version"}),
    ("show collective", {"collective": "all-reduce", "on": "tpu-v4-pod", "chips": 64, "size": "3 MB"}, {"chip"}),
    ("show collective", {"collective": "all-reduce", "on": "fat-tree", "chips": 64, "size": "3 MB"},
     {"chip", "oversubscription", "domain", "nic_bytes_per_s"}),
    ("simulate serve", {"model": "llama-3.1-8b", "rate": 5, "isl": 500, "requests": 1000},
     {"osl", "seed", "chip", "tp", "engine", "ttft_s"}),
    ("simulate serve", {"model": "llama-3.1-8b", "rate": 5, "osl": 50, "requests": 1000}, {"isl", "seed"}),
    ("plan serve", {"model": "llama-3.1-8b", "rate": 5}, {"preset", "seed", "chips", "headroom_fraction"}),
    ("show techniques", {"model": "llama-3.1-8b", "rate": 5}, {"preset", "tp", "draft"}),
    ("show techniques", {"model": "llama-3.1-8b", "rate": 5, "isl": 500}, {"osl"}),
    ("simulate fabric", {"on": "fat-tree", "chips": 16, "job": {"size": "1 MB"}},
     {"oversubscription", "routing", "paths", "transport", "lanes", "seed"}),
)  # fmt: skip


@pytest.mark.parametrize(("verb", "said", "acted"), UNSAID)
def test_a_default_that_acted_is_listed(
    verb: str, said: dict[str, Any], acted: set[str], shelf: Catalog
) -> None:
    answer = asked(verb, said, shelf)
    assert acted <= set(answer.defaults)
    form = form_of(verb)
    names = {field.attribute: field.name for field in form.fields.values()}
    every = {names[key]: answer.inputs[key] for key in answer.defaults}
    again = asked(verb, {**said, **every}, shelf, bare=True)
    assert again.defaults == ()
    assert again.headline.replace("as asked", "the usual") == answer.headline
    assert (again.results, again.inputs) == (answer.results, answer.inputs)


def test_what_was_said_of_a_port_is_listed_as_it_was_said_whatever_failed(shelf: Catalog) -> None:
    said = {"collective": "all-reduce", "chips": 16, "size": "1 GB", "on": "fat-tree", "nic": "200 Gb/s"}
    whole, broken = (
        asked("show collective", said | more, shelf) for more in ({}, {"failure": [{"nics": 0, "left": 0.5}]})
    )
    assert whole.results["time_s"] != broken.results["time_s"]
    assert whole.inputs["nic_bytes_per_s"] == broken.inputs["nic_bytes_per_s"] == 25e9


def test_what_has_nothing_to_act_on_is_not_listed(shelf: Catalog) -> None:
    answer = asked("simulate train", {"model": "llama-3.1-8b", "chips": 1, "global_batch": 8}, shelf)
    assert not {"ep", "etp", "vpp", "schedule", "context_exchange", "zero", "shard", "offload"} & set(
        answer.inputs
    )
    assert not {"domain", "nic_bytes_per_s"} & set(answer.inputs)
    inside = asked("show collective", {"collective": "all-reduce", "chips": 8, "size": "3 MB"}, shelf)
    assert "nic_bytes_per_s" not in inside.inputs
    built = asked("show fabric", {"topologies": ["tpu-v4-pod"]}, shelf)
    assert not {"domain", "nic_bytes_per_s"} & set(built.inputs)


def test_a_router_of_one_region_has_nothing_to_send_elsewhere(shelf: Catalog) -> None:
    asking = {"model": "llama-3.1-8b", "rate": 5, "isl": 500, "osl": 50, "requests": 1000}
    answer = asked("simulate serve", asking, shelf)
    assert not {"spill", "role", "affinity_load_ratio", "cold_start_s"} & set(answer.inputs)


LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize("verb", ["show model", "show fit", "show memory"])
def test_what_a_file_says_of_a_model_is_cited_as_that_file(verb: str, tmp_path: Path, shelf: Catalog) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(LLAMA))
    width = [one for one in leaves(asked(verb, {"model": str(file)}, shelf)) if one.name == "hidden width"]
    assert width
    assert {(source.title, source.kind) for one in width for source in one.sources} == {
        ("mine.json", "given")
    }


def test_of_a_layout_file_only_what_it_states_is_an_input(tmp_path: Path, shelf: Catalog) -> None:
    file = tmp_path / "run.sh"
    file.write_text("--tensor-model-parallel-size 4 --micro-batch-size 2\n")
    answer = asked("simulate train", {"model": "llama-3.1-8b", "chips": 8, "layout": str(file)}, shelf)
    found = {one.name: one.origin for one in leaves(answer)}
    assert (found["tp"], found["micro-batch"]) == ("input", "input")
    assert (found["cp"], found["global batch"], found["tokens of a sequence"]) == ("assumption",) * 3


@pytest.mark.parametrize(
    ("option", "value", "leaf"),
    [("memory_fraction", "70 %", "the engine's share"), ("reserved", "1 GB", "context, graphs and buffers")],
)
def test_an_option_of_an_engine_that_somebody_says_is_an_input(
    option: str, value: str, leaf: str, shelf: Catalog
) -> None:
    own, other = (asked("show fit", {**ASKED["show fit"], **more}, shelf) for more in ({}, {option: value}))
    assert {one.origin for one in leaves(own) if one.name == leaf} == {"assumption"}
    assert {one.origin for one in leaves(other) if one.name == leaf} == {"input"}


def test_what_a_layout_file_says_is_an_input_be_it_usual(tmp_path: Path, shelf: Catalog) -> None:
    file = tmp_path / "run.sh"
    file.write_text("--tensor-model-parallel-size 1 --micro-batch-size 1 --seq-length 8192 --bf16\n")
    answer = asked("simulate train", {"model": "llama-3.1-8b", "chips": 8, "layout": str(file)}, shelf)
    found = {one.name: one.origin for one in leaves(answer)}
    assert {found[name] for name in ("tp", "micro-batch", "tokens of a sequence")} == {"input"}
    assert found["cp"] == "assumption"
    assert not {"tp", "micro_batch", "seq", "precision"} & set(answer.defaults)
    assert {"cp", "global_batch", "chip"} <= set(answer.defaults)


def test_a_batch_that_a_file_accumulates_is_no_default(tmp_path: Path, shelf: Catalog) -> None:
    """128 × 8 replicas make the usual 1,024: by the file, and not because that is usual."""
    file = tmp_path / "ds.json"
    file.write_text('{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 128}')
    answer = asked("simulate train", {"model": "llama-3.1-8b", "chips": 8, "layout": str(file)}, shelf)
    assert answer.results["global_batch"] == 1024
    (batch,) = {(one.origin, one.note) for _, one in answer.figure.walk() if one.name == "global batch"}  # type: ignore[union-attr]
    assert batch == ("model", "by the accumulation of the layout file")


@pytest.mark.parametrize(
    ("more", "chips", "replicas"),
    [
        ({"chips": 16}, "input", "computed"), ({"chips": 16, "dp": 16}, "input", "input"),
        ({"dp": 16}, "computed", "input"), ({"tp": 2}, "computed", "model"),
    ],
)  # fmt: skip
def test_chips_and_replicas_are_inputs_where_they_were_said(
    more: dict[str, Any], chips: str, replicas: str, shelf: Catalog
) -> None:
    answer = asked("show memory", {"model": "qwen3-30b-a3b", "zero": 3, **more}, shelf)
    found: dict[str, set[str]] = {}
    for _, one in answer.figure.walk():  # type: ignore[union-attr]
        found.setdefault(one.name, set()).add(one.origin)
    assert found["replicas"] == {replicas}
    assert found.get("chips", {chips}) == {chips}
