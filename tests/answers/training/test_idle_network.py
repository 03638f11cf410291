"""What is said of the network and not felt is said to do nothing, exactly where the step is as long without it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results import number

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog

SHELF = Catalog(user=False)
STEP: dict[str, Any] = {"model": "llama-3.1-8b", "chip": "h100-sxm", "recompute": "full"}
TREE = {"on": "fat-tree", "chips": 512, "global_batch": 512}
ASKED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a ratio that hides": ({**TREE, "zero": 1}, {"oversubscription": "2:1"}),
    "a ratio that shows": ({**TREE, "zero": 3}, {"oversubscription": "31:1"}),
    "a ratio behind longer work": ({**TREE, "zero": 1, "global_batch": 4096}, {"oversubscription": "8:1"}),
    "a tree of full bisection": ({"chips": 512, "global_batch": 512}, {"on": "fat-tree"}),
    "servers as they are sold": ({"chips": 64, "global_batch": 64}, {"on": "hgx"}),
    "a tree of one way up": ({"chips": 512, "global_batch": 512}, {"on": "tree"}),
    "the port that it has": ({"chips": 64, "global_batch": 64}, {"nic": "400 Gb/s"}),
    "a narrower port": ({"chips": 64, "global_batch": 64, "zero": 3}, {"nic": "10 Gb/s"}),
    "the domain that it has": ({"chips": 64, "tp": 8, "global_batch": 64}, {"domain": 8}),
    "a port that is half": ({**TREE, "zero": 1}, {"failure": "nics=0,left=50 %"}),
}


def asked(verb: str, said: dict[str, Any]) -> Answer:
    return answer_of(ask(verb, said, catalog=SHELF))


def called_idle(found: Answer, name: str) -> bool:
    notes = (note.partition(" nothing here: ") for note in found.notes)
    return any(end and name in start.replace(",", " ").split() for start, end, _ in notes)


FELT = {"a ratio that shows", "a tree of one way up", "a narrower port", "a port that is half"}


@pytest.mark.parametrize("case", ASKED)
def test_a_step_says_what_it_does_not_feel(case: str) -> None:
    base, wired = ASKED[case]
    (name,) = wired
    plain, other = (asked("simulate train", STEP | base | more) for more in ({}, wired))
    assert called_idle(other, name) == (plain.results["step_s"] == other.results["step_s"])
    assert called_idle(other, name) == (case not in FELT)
    assert not called_idle(plain, name)


@pytest.mark.parametrize("case", ["a ratio that hides", "servers as they are sold", "the port that it has"])
def test_a_plan_says_what_it_does_not_feel(case: str) -> None:
    base, wired = ASKED[case]
    (name,) = wired
    said = {"model": "llama-3.1-8b", "chip": "h100-sxm", "tokens": "1T"}
    base = {key: value for key, value in base.items() if key != "zero"}
    plain, other = (asked("plan train", said | base | more) for more in ({}, wired))
    assert plain.results["duration_s"] == other.results["duration_s"]
    assert called_idle(other, name)
    assert "longer" not in other.binding


def test_a_plan_that_feels_its_network_says_what_it_costs_instead() -> None:
    said = {"model": "llama-3.1-8b", "chip": "h100-sxm", "tokens": "1T", "chips": 512, "on": "tree"}
    found = asked("plan train", said)
    assert number(found, "duration_s") > number(found, "full_bisection_duration_s")
    assert not called_idle(found, "on")
    assert "longer" in found.binding


def test_a_network_without_which_nothing_would_join_the_chips_is_felt() -> None:
    """Nobody published what network an A40 has: without what was said, sixteen of them do not run together."""
    said = {
        "model": "llama-3.1-8b",
        "chip": "a40",
        "chips": 16,
        "tp": 8,
        "global_batch": 16,
        "nic": "100 Gb/s",
    }
    assert not called_idle(asked("simulate train", said), "nic")
