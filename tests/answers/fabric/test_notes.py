"""Each note of a fabric and of a collective, and each command after it, stands where there is something to say."""

from __future__ import annotations

from typing import Any

import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog

Said = dict[str, Any]

ONE_WAY, GUESSED, FIBRE = "bandwidth is one way", "estimates: ", "fibre everywhere"
PER_PORT, SHARED, DIFFER = "power and price per port as in", "most share links", "chips differ"
FABRICS: dict[str, tuple[Said, set[str]]] = {
    "a fat tree": ({"topologies": ["fat-tree"], "chips": 64}, {ONE_WAY, GUESSED, FIBRE}),
    "one server": ({"topologies": ["hgx"], "chips": 8}, set()),
    "smaller switches": (
        {"topologies": ["fat-tree"], "chips": 64, "radix": 16}, {ONE_WAY, GUESSED, FIBRE, PER_PORT},
    ),
    "a torus": ({"topologies": ["torus"], "sides": [4, 4, 4]}, {ONE_WAY, GUESSED}),
    "many ways": ({"topologies": ["torus"], "sides": [24, 24, 24]}, {ONE_WAY, GUESSED, SHARED}),
    "two kinds": ({"topologies": ["fat-tree", "torus"], "chips": 64}, {ONE_WAY, GUESSED, DIFFER}),
    "of one chip": (
        {"topologies": ["fat-tree", "clos"], "chips": 64, "chip": "h100-sxm"}, {ONE_WAY, GUESSED, FIBRE},
    ),
}  # fmt: skip
UNNAMED, TORUS, BAND = (
    "no topology is named",
    "datasheet only: two public measurements",
    "in eight of ten runs",
)
COLLECTIVES: dict[str, tuple[Said, set[str]]] = {
    "servers": ({"chips": 16}, {UNNAMED, BAND}),
    "one server": ({"chips": 8}, {UNNAMED, BAND}),
    "a fat tree": ({"chips": 16, "on": "fat-tree"}, {BAND}),
    "a torus": ({"chips": 16, "on": "torus"}, {TORUS}),
}


def said(answer: Answer, *tables: dict[str, tuple[Said, set[str]]]) -> set[str]:
    every = {words for table in tables for _, expected in table.values() for words in expected}
    return {words for words in every if any(words in note for note in answer.notes)}


@pytest.mark.parametrize("case", FABRICS)
def test_what_is_said_beside_a_fabric_has_a_reason(case: str, shelf: Catalog) -> None:
    asked, expected = FABRICS[case]
    answer = answer_of(ask("show fabric", asked, catalog=shelf))
    assert said(answer, FABRICS) == expected, answer.notes


@pytest.mark.parametrize("case", COLLECTIVES)
def test_what_is_said_beside_a_collective_has_a_reason(case: str, shelf: Catalog) -> None:
    more, expected = COLLECTIVES[case]
    asked = {"collective": "all-reduce", "size": "3 MB", **more}
    answer = answer_of(ask("show collective", asked, catalog=shelf))
    assert said(answer, COLLECTIVES) == expected, answer.notes


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ({"collective": "all-reduce", "size": "1 GB"}, "--size 64KB"),
        ({"collective": "all-reduce", "size": "64 KB"}, "--size 1GB"),
        ({"collective": "barrier"}, ""),
        ({"collective": "all-to-all", "experts": 16, "tokens": 4096, "topk": 2, "hidden": 512}, ""),
    ],
)
def test_another_size_is_offered_where_there_is_one(asked: Said, other: str, shelf: Catalog) -> None:
    first, *rest = answer_of(ask("show collective", {"chips": 16, **asked}, catalog=shelf)).next_commands
    assert len(rest) == (2 if other else 1)
    assert other in first


RING: Said = {
    "on": "fat-tree",
    "chips": 32,
    "radix": 8,
    "job": [{"collective": "all-reduce", "size": "64 MB"}],
}
SPINE = {"switches": 8, "start": "10 us"}


def flows(shelf: Catalog, **more: Any) -> Answer:
    return answer_of(ask("simulate fabric", RING | more, catalog=shelf))


@pytest.mark.parametrize("transport", ["infiniband", "roce"])
def test_a_time_to_reroute_that_nobody_said_is_said_with_its_source(shelf: Catalog, transport: str) -> None:
    usual = flows(shelf, failure=[SPINE], transport=transport)
    way = shelf.reroute({"infiniband": "infiniband-subnet-manager", "roce": "ethernet-link-down"}[transport])
    (note,) = (note for note in usual.notes if "which nobody said" in note)
    assert way.title in note
    assert way.facts["reroute_s"].source in usual.citations()
    stated = flows(shelf, failure=[SPINE | {"reroute": f"{way.reroute_s} s"}], transport=transport)
    assert stated.results["makespan_s"] == usual.results["makespan_s"]
    assert not any("which nobody said" in note for note in stated.notes)
    assert any("flows take the ways that are left" in note for note in stated.notes)


def test_a_failure_that_no_flow_meets_is_not_routed_around(shelf: Catalog) -> None:
    torus = {"on": "torus", "chips": 64, "radix": None, "job": [{"collective": "all-reduce", "size": "1 GB"}]}
    idle = flows(shelf, **torus, failure=[{"links": 0, "start": "1 ms", "reroute": "1 ms"}])
    assert any("failure does nothing here" in note for note in idle.notes)
    assert not any("flows take the ways" in note for note in idle.notes)
