"""Every input of the serving verbs is asked once without and once with a value: it changes something, or it is said.

An input that changes nothing where it stands is named by a note; one that a note calls idle does change nothing.
"""

# ruff: noqa: E501  # tables of what may be said

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.results import number

from datahall.answer import Answer
from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog

SHELF = Catalog(user=False)
TRACE = str(Path(__file__).parents[1] / "files" / "requests.jsonl")
Said = dict[str, Any]

# small questions, in which inputs have little to do
BASES: dict[str, Said] = {
    "simulate serve": {"model": "llama-3.1-8b", "rate": 4, "requests": 100, "isl": 300, "osl": 40},
    "plan serve": {
        "model": "llama-3.1-8b", "rate": 4, "isl": 300, "osl": 40, "chips": ["h100-sxm"], "precision": ["bf16"],
    },
    "show techniques": {"model": "llama-3.1-8b", "rate": 4, "isl": 300, "osl": 40},
    "show fit": {"model": "llama-3.1-8b"},
}  # fmt: skip
# a value other than the default, and what stands beside it in both questions; None takes something away
EXPERTS = {"model": "qwen3-30b-a3b"}
CHAT = {"isl": None, "osl": None, "traffic": "lmsys-chat"}
TWO_REGIONS = {
    "region": [{"name": "eu", "to": {"us": "40 ms"}}, {"name": "us"}], "in_region": "us", "from_region": "us",
}  # fmt: skip
REPLAYED = {"rate": None, "requests": None, "isl": None, "osl": None, "trace": TRACE, "hash_block": 256}
ADAPTERS, SCALED = {"adapters": 16, "resident_adapters": 8}, {"autoscale": "1..3"}
VALUES: dict[str, tuple[Any, Said]] = {
    "failures_like": ("rsc-1", {}), "failure_rate": ("0.1/node-day", {}), "spares_enough": ("99.99 %", {}),
    "detect": ("1h", {}), "reschedule": ("1h", {}), "warm_up": ("1h", {}), "restart": ("3h", {}),
    "facility": ("survey-average", {}), "pue": (1.5, {}), "grid": ("sweden", {}),
    "seed": (7, {}), "chip": ("h200-sxm", {}), "tp": (2, {}), "pp": (2, {}), "dp": (2, {}), "ep": (2, EXPERTS | {"tp": 2}),
    "replicas": (2, {}), "disaggregated": ("prefill=1,decode=1", {}), "precision": ("fp8", {}), "engine": ("sglang", {}),
    "draft": ("mtp", {"model": "deepseek-v3", "chip": "h200-sxm", "chips": ["h200-sxm"], "tp": 8, "precision": "fp8"}),
    "num_draft": (5, {"draft": "ngram"}), "acceptance": ("80 %", {"draft": "ngram"}),
    "adapters": (4, {}), "adapter_rank": (64, ADAPTERS), "resident_adapters": (2, {"adapters": 16}),
    "adapter_zipf": (0.1, ADAPTERS), "attention_adapters": (True, ADAPTERS),
    "host_cache": ("10 GB", {}), "host_link": ("5 GB/s", {"host_cache": "10 GB"}),
    "drive_cache": ("100 GB", {"host_cache": "10 GB"}),
    "drive_rate": ("1 GB/s", {"host_cache": "10 GB", "drive_cache": "100 GB"}),
    "max_context": (100_000, {}), "routing_skew": (1.0, EXPERTS | {"tp": 2}), "kv_blocks": (20_000, {}),
    "in_region": ("eu", TWO_REGIONS), "from_region": ("eu", TWO_REGIONS), "spill": (1, TWO_REGIONS | {"rate": 50}),
    "handoff": ("1 GB/s", {"disaggregated": "prefill=1,decode=1"}),
    "batching": ("static", {}), "token_budget": (256, {}), "max_sequences": (2, {}), "block_tokens": (4096, {}),
    "chunked_prefill": (False, {}), "mixed_steps": (False, {}), "whole_prompt_blocks": (False, {}),
    "whole_output_blocks": (True, {}), "prefix_caching": (False, {}), "graphs": (False, {}), "preemption": ("swap", {}),
    "expert_exchange": ("all-to-all", EXPERTS | {"tp": 2}), "memory_fraction": ("50 %", {}), "reserved": ("60 GB", {}),
    "host_step": ("5 ms", {}), "host_sequence": ("1 ms", {}), "wait": ("50 ms", {"batching": "dynamic"}),
    "first_token": ("100 ms", {}), "routing": ("session", {}), "affinity_load": (2.0, {"routing": "prefix-affinity"}),
    "autoscale": ("1..3", {}), "cold_start": ("5 s", SCALED), "interval": ("5 s", SCALED), "patience": ("10 s", SCALED),
    "users": (5, {"rate": None}), "traffic": ("rag", {"isl": None, "osl": None}), "isl": (700, {}), "osl": (20, {}),
    "spread": (0.5, {}), "burstiness": (0.3, {}), "turns": (3, {}), "think": ("5 s", {"turns": 3}),
    "think_variation": (0.1, {"turns": 3, "think": "5 s"}), "opening": (900, {}), "system": (300, {}),
    "groups": (30, {"system": 300}), "group_zipf": (3.0, {"system": 300, "groups": 30}), "documents": (10, {}),
    "document": (400, {"documents": 10}), "retrieved": (2, {"documents": 10}), "document_zipf": (4.0, {"documents": 10}),
    "hourly": ([1.0] + [0.1] * 23, {"rate": 0.01}), "swing": ("50 %", {}), "peak": ("2 h", {"swing": "50 %"}),
    "lull_rate": (0.5, {"busy": "5 s", "lull": "5 s"}), "requests": (60, {}), "duration": ("10 s", {"requests": None}),
    "speed": (2, REPLAYED), "busiest": ("1 s", REPLAYED), "first": (4, REPLAYED), "priority": (3, {}), "ttft": ("60 ms", {"rate": 8}), "tpot": ("7 ms", {}),
    "percentile": ("P1", {"tpot": "6.6 ms"}), "warmup": ("1 s", {}), "until": ("10 s", {}),
    "on": ("fat-tree", {}), "domain": (16, {}), "nic": ("10 Gb/s", {}), "oversubscription": ("4:1", {"on": "fat-tree"}),
    "chips": (["h200-sxm"], {}), "spare": (1, {}), "headroom": ("60 %", {"rate": 40}), "context": ("4k", {}), "batch": (500, {}),
    "cached": ("90 %", {}), "window": (64, {}), "summary": ("50 %", {}), "summary_requests": (2, {}),
    "small": ("llama-3.2-3b", {}), "easy": ("10 %", {}),
    "objective": ("energy", {}), "buy": (["rent"], {}), "provider": (["lambda"], {}), "price": (7.0, {}),
    "spot_price": (0.5, {"buy": ["spot"]}), "preempted_every": ("1h", {"buy": ["spot"]}), "as_of": ("2025-06-01", {}),
    "available": ("h100-sxm=1,h200-sxm=4", {"rate": 40, "chips": ["h100-sxm", "h200-sxm"]}), "weight": (2.0, {}),
    "country": ("germany", {}), "without": (["samsung"], {}), "licensed": (True, {"country": "germany"}),
    "regions": (["us-east-1"], {}), "residency": (["japan"], {}),
    "users_in": (["eu-west-2"], {"regions": ["us-east-1"]}), "sent": ("1 MB", {"regions": ["us-east-1"]}),
    "owner": ("hyperscaler", {}), "capex": (90_000.0, {}), "interest": ("20 %", {}), "life": ("9y", {}),
    "residual": ("40 %", {}), "depreciation": ("market", {}), "hardware_age": ("2y", {"depreciation": "market"}),
    "colo": ("300USD/kW-month", {}), "energy_price": ("0.5USD/kWh", {}), "repair_cost": ("9 %", {}),
    "staff": (9e4, {}), "used": ("50 %", {}), "orchestration": ("90 %", {}), "network_overhead": ("90 %", {}),
    "storage_overhead": ("90 %", {}), "monitoring": ("90 %", {}), "peak_to_mean": (1.0, {}),
    "api": ("gpt-4o", {"buy": ["rent", "api"]}), "batched": ("50 %", {"buy": ["rent", "api"]}),
}  # fmt: skip
OF_VERB: dict[tuple[str, str], tuple[Any, Said]] = {
    ("plan serve", "precision"): (["fp8"], {"precision": None}),
    ("plan serve", "tp"): (2, {}),
    ("plan serve", "cached"): ("50 %", {"buy": ["rent", "api"], "api": "gpt-4o"}),
    ("plan serve", "disaggregated"): (True, {}),
    ("show fit", "attention_adapters"): (True, ADAPTERS),
}
# inputs that this does not ask, with why
NOT_ASKED = {
    "model": "without one there is no question",
    "rate": "without one, or users or a trace, there is no question",
    "trace": "it stands in place of all else that is said of the traffic",
    "name": "it names the answer",
    "traffic_name": "it names the traffic",
    "role": "a pool of one role needs another pool beside it, in a file",
    "busy": "it stands beside a lull only",
    "lull": "it stands beside a busy time only",
    "sort_trace": "it refuses a trace that is not sorted, or takes it",
    "hash_block": "a trace whose hashes stand for other lengths is refused",
}
FIELDS = [(verb, name) for verb in BASES for name in form_of(verb).fields if name not in NOT_ASKED]


@cache
def _asked(verb: str, key: bytes) -> Answer:
    return answer_of(ask(verb, msgspec.json.decode(key), catalog=SHELF))


def asked(verb: str, said: Mapping[str, Any]) -> Answer:
    return _asked(verb, msgspec.json.encode(said))


def both(verb: str, name: str) -> tuple[Answer, Answer]:
    """The answer without an input, and with it."""
    value, beside = OF_VERB.get((verb, name), VALUES[name])
    form = form_of(verb)
    taken = {*form.fields, *(concept.name for concept in form.tables)}
    plain = {key: one for key, one in (BASES[verb] | beside).items() if one is not None and key in taken}
    without = {
        key: one for key, one in plain.items() if key != name or name in REPLAYED or name in TWO_REGIONS
    }
    return asked(verb, without) if name != "users" else asked(verb, BASES[verb]), asked(
        verb, {**plain, name: value}
    )


def same_results(plain: Answer, other: Answer) -> bool:
    """Whether all results of two answers are equal that both have."""
    common = plain.results.keys() & other.results.keys()
    return all(plain.results[key] == other.results[key] for key in common)


def same_tables(plain: Answer, other: Answer) -> bool:
    rows = [[table.rows for table in one.tables] for one in (plain, other)]
    return rows[0] == rows[1]


@pytest.mark.parametrize(("verb", "name"), FIELDS)
def test_an_input_changes_something_or_is_said_to_change_nothing(verb: str, name: str) -> None:
    plain, other = both(verb, name)
    named = [note for note in other.notes if re.search(rf"\b{name}\b.* nothing", note)]
    if named:
        assert same_results(plain, other), named
    else:
        assert not (same_results(plain, other) and same_tables(plain, other)), other.notes


NARROW = {"nic": "10 Gb/s", "on": "fat-tree", "oversubscription": "4:1", "failure": [{"nics": 0}]}


@pytest.mark.parametrize("verb", ["simulate serve", "plan serve", "show techniques"])
@pytest.mark.parametrize("tp", [1, 4])
def test_a_network_that_no_group_crosses_is_said_to_change_nothing(verb: str, tp: int) -> None:
    said = BASES[verb] | {"tp": tp}
    plain, other = asked(verb, said), asked(verb, said | NARROW)
    (note,) = [note for note in other.notes if "oversubscription" in note]
    assert note.startswith("on, " if verb != "show techniques" else "oversubscription ")
    assert ("domain" in note) == (tp > 1)
    if verb != "show techniques":  # whose disaggregated pools hand over through the ports
        assert same_results(plain, other)
        assert all(name in note for name in NARROW)


@pytest.mark.parametrize("verb", ["simulate serve", "plan serve", "show techniques"])
@pytest.mark.parametrize("chip", ["gb200", "gb300"])
def test_a_fabric_brings_no_chip_that_was_said(verb: str, chip: str) -> None:
    """A rack of the chip that its name stands for is what that chip is sold in: nothing, be the rack named or not."""
    of = {"chips": [chip]} if verb == "plan serve" else {"chip": chip}
    said = BASES[verb] | of | {"tp": 2}
    plain, other = asked(verb, said), asked(verb, said | {"on": "nvl72"})
    assert same_results(plain, other)
    assert any(note.startswith("on does nothing here") for note in other.notes)
    assert not any(note.startswith("no chip was said") for note in other.notes)


def test_a_network_that_a_group_crosses_is_not() -> None:
    said = BASES["simulate serve"] | {"tp": 16, "nic": "10 Gb/s"}
    slow = asked("simulate serve", said)
    assert not [note for note in slow.notes if "nothing" in note]
    wide = asked("simulate serve", said | {"nic": "400 Gb/s"})
    assert number(slow, "tpot_mean_s") > number(wide, "tpot_mean_s")
    ratio = asked("simulate serve", said | {"on": "fat-tree", "oversubscription": "4:1"})
    # sixteen chips are under one switch, and no tree is wider than the network of chips as they are sold
    names = {note.split()[0] for note in ratio.notes if "nothing" in note}
    assert names == {"oversubscription", "on"}


@pytest.mark.parametrize(("draft", "same"), [("ngram", True), ("llama-3.2-1b", False)])
def test_a_draft_that_is_the_usual_one_is_said_to_change_nothing(draft: str, same: bool) -> None:
    said = BASES["show techniques"]
    plain, other = asked("show techniques", said), asked("show techniques", said | {"draft": draft})
    assert same_tables(plain, other) is same
    assert any(note.startswith("draft does nothing here") for note in other.notes) is same


@pytest.mark.parametrize(("osl", "num"), [(500, 100), (150, 0)])
def test_requests_that_the_context_cuts_are_counted(osl: int, num: int) -> None:
    """Prompts of 300 tokens leave 200 of a context of 500."""
    said = {"osl": osl, "max_context": 500}
    run = asked("simulate serve", BASES["simulate serve"] | said)
    assert run.results.get("num_answers_cut", 0) == num
    assert ("100 answers were cut to fit the context of 500 tokens" in run.notes) == bool(num)
    assert ("max_context cuts nothing: no request is longer" in run.notes) == (not num)
    for verb in ("plan serve", "show techniques"):
        notes = asked(verb, BASES[verb] | said).notes
        whole = any(note.startswith("100 % of requests are cut to fit the context of 500") for note in notes)
        assert whole == bool(num)
        averages = [note for note in notes if "on average" in note]
        assert all(("as they are cut" in note) == bool(num) for note in averages)


def test_conversations_that_outgrow_the_context_lose_turns() -> None:
    said = {"turns": 20, "max_context": 2000, "requests": 200}
    run = asked("simulate serve", BASES["simulate serve"] | said)
    assert number(run, "num_turns_left_out") > 0
    assert any("turns of conversations" in note for note in run.notes)
