"""An answer says every input that was given, and the defaults that say something."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import ask, form_of, inputs_of
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.scenario.read import read_names

PLAN = {"model": "llama-3.1-8b", "rate": 5}


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"headroom": 0}, "headroom_fraction", 0.0),
        ({"chunked_prefill": False}, "chunked_prefill", False),
        ({"headroom": "20 %"}, "headroom_fraction", 0.2),
    ],
)
def test_nothing_that_was_said_is_left_out(
    shelf: Catalog, given: dict[str, object], name: str, value: object
) -> None:
    found = inputs_of(read_names(form_of("plan serve"), {**PLAN, **given}, shelf))
    assert found[name] == value


def test_a_default_that_says_nothing_is_left_out(shelf: Catalog) -> None:
    found = inputs_of(read_names(form_of("plan serve"), PLAN, shelf))
    assert "chunked_prefill" not in found
    assert "draft" not in found
    assert found["headroom_fraction"] > 0


def test_a_seed_is_an_input_where_something_is_drawn(shelf: Catalog) -> None:
    run = {"model": "llama-3.1-8b", "chips": 8}
    assert inputs_of(read_names(form_of("plan serve"), PLAN, shelf))["seed"] == 0
    assert "seed" not in inputs_of(read_names(form_of("simulate train"), run, shelf))
    assert inputs_of(read_names(form_of("simulate train"), {**run, "jitter": "2 %"}, shelf))["seed"] == 0


POOLS: dict[str, Any] = {
    "version": 1,
    "ask": "simulate serve",
    "model": "llama-3.1-8b",
    "deployment": [{"chip": "h100-sxm", "replicas": 2}, {"chip": "l40s", "replicas": 4, "precision": "fp8"}],
    "traffic": [{"rate": 4, "isl": 300, "osl": 20, "requests": 20}, {"rate": 2, "isl": 500, "requests": 20}],
}


def test_of_several_deployments_and_streams_each_is_said_and_none_stands_for_all() -> None:
    inputs = dh.ask(POOLS).inputs
    assert inputs["deployment"] == "chip h100-sxm, replicas 2; chip l40s, replicas 4, precision fp8"
    assert inputs["traffic"] == "rate 4, isl 300, osl 20, requests 20; rate 2, isl 500, requests 20"
    assert not {"chip", "replicas", "precision", "rate_per_s", "isl", "osl", "tp"} & set(inputs)
    assert (inputs["engine"], inputs["pp"]) == ("vllm", 1)  # by default, and the same of both


def test_of_one_deployment_in_a_list_each_input_is_said_alone() -> None:
    one = POOLS | {"deployment": POOLS["deployment"][:1], "traffic": POOLS["traffic"][:1]}
    inputs = dh.ask(one).inputs
    assert (inputs["chip"], inputs["replicas"]) == ("h100-sxm", 2)
    assert "deployment" not in inputs


RUN: dict[str, Any] = {"model": "llama-3.1-8b", "rate": 2, "isl": 300, "osl": 20}
# questions in which chips of several domains meet, those of one, and one alone
MANY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("simulate serve", RUN | {"requests": 20, "tp": 16}),
    ("simulate serve", RUN | {"requests": 20, "tp": 16, "on": "fat-tree"}),
    ("plan serve", RUN | {"chips": ["h100-sxm"], "precision": ["bf16"], "tp": 16}),
    ("show techniques", RUN | {"tp": 16}),
    ("simulate train", {"model": "llama-3.1-8b", "chips": 16, "global_batch": 32}),
    ("plan train", {"model": "llama-3.1-8b", "chips": 16, "global_batch": 32, "tokens": "1T"}),
    ("show collective", {"collective": "all-reduce", "chips": 16, "size": "1MB"}),
    ("simulate fabric", {"on": "fat-tree", "chips": 16, "job": {"size": "1MB", "ranks": "0-15"}}),
    ("show fabric", {"topologies": "fat-tree", "chips": 16}),
)
FEW: tuple[tuple[str, dict[str, Any]], ...] = (
    ("simulate serve", RUN | {"requests": 20, "tp": 2}),
    ("plan serve", RUN | {"chips": ["h100-sxm"], "precision": ["bf16"], "tp": 2}),
    ("simulate train", {"model": "llama-3.1-8b", "chips": 8, "global_batch": 32}),
    ("show collective", {"collective": "all-reduce", "chips": 8, "size": "1MB"}),
)
WIRES = {"domain": "4", "nic": "25 GB/s"}


def answered(verb: str, given: dict[str, Any], shelf: Catalog) -> Answer:
    return answer_of(ask(verb, given, catalog=shelf))


@pytest.mark.parametrize(("verb", "given"), MANY, ids=str)
def test_what_joins_chips_is_a_default_that_acted(verb: str, given: dict[str, Any], shelf: Catalog) -> None:
    """Said as it is listed it changes nothing, and is an input then; said otherwise it is listed so."""
    found = answered(verb, given, shelf)
    assert {"domain", "nic_bytes_per_s"} <= set(found.defaults)
    same = {"domain": found.inputs["domain"], "nic": f"{found.inputs['nic_bytes_per_s']} B/s"}
    again = answered(verb, given | same, shelf)
    assert again.results == found.results
    assert not {"domain", "nic_bytes_per_s"} & set(again.defaults)
    other = answered(verb, given | WIRES, shelf)
    assert (other.inputs["domain"], other.inputs["nic_bytes_per_s"]) == (4, 25e9)


@pytest.mark.parametrize(("verb", "given"), FEW, ids=str)
def test_a_port_that_nothing_goes_through_is_none(verb: str, given: dict[str, Any], shelf: Catalog) -> None:
    found = answered(verb, given, shelf)
    assert "nic_bytes_per_s" not in found.inputs
    assert found.inputs["domain"] == 8


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("show collective", {"collective": "all-reduce", "chips": 16, "size": "1MB"}),
        ("show collective", {"collective": "all-reduce", "chips": 16, "size": "1MB", "chip": "gaudi3"}),
        ("show roofline", {"chip": "h100-sxm", "model": "llama-3.1-8b"}),
        ("show roofline", {"chip": "gaudi3", "model": "llama-3.1-8b"}),
    ],
    ids=str,
)
def test_the_level_of_the_constants_is_listed_as_it_would_be_said(
    verb: str, given: dict[str, Any], shelf: Catalog
) -> None:
    found = answered(verb, given, shelf)
    assert "level" in found.defaults
    again = answered(verb, given | {"level": found.inputs["level"]}, shelf)
    assert again.results == found.results
    assert "level" not in again.defaults


def test_tables_that_were_said_stand_among_the_inputs_as_they_were_said() -> None:
    job, slow, out = (
        {"collective": "all-reduce", "ranks": 16, "size": "1MB"},
        {"nics": [3], "left": 0.5},
        {"nics": [4]},
    )
    found = dh.simulate_fabric(on="fat-tree", chips=16, job=[job], failure=[slow, out])
    assert found.inputs["job"] == "collective all-reduce, ranks 0-15, size 1MB"
    assert found.inputs["failure"] == "nics 3, left 50%; nics 4"
    assert not {"job", "failure"} & set(found.defaults)
    assert "background" not in found.inputs
    assert (
        "job collective all-reduce, ranks 0-15, size 1MB · failure nics 3, left 50%; nics 4"
        in found._repr_html_()
    )
