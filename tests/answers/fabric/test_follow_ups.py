"""What an answer about a fabric or a collective offers next can be typed, and is about what was asked."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import Any

import pytest
from tests.answers.borders import runs

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog

EXPERTS = {"collective": "all-to-all", "experts": 64, "tokens": 4096, "topk": 2, "hidden": 512}
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "experts": ("show collective", {**EXPERTS, "on": "fat-tree"}),
    "another port and domain": (
        "show collective", {**EXPERTS, "on": "fat-tree", "nic": "12.5GB/s", "domain": 4, "oversubscription": "2:1"},
    ),
    "a failure": ("show collective", {**EXPERTS, "on": "rail-optimised", "failure": {"nics": "1"}}),
    "chips that fill no servers": ("show collective", {"collective": "all-reduce", "size": "1GB", "chips": 9}),
    "a chip without a network": (
        "show collective", {"collective": "all-reduce", "size": "1GB", "chips": 4, "chip": "l4"},
    ),
    "no topology": (
        "show collective", {"collective": "all-reduce", "size": "1GB", "chips": 64, "nic": "25GB/s", "domain": 16},
    ),
    "part of one that was built": (
        "show collective", {"collective": "all-reduce", "size": "1GB", "on": "meta-24k-roce", "chips": 2048},
    ),
    "a torus by its sides": (
        "show collective", {"collective": "all-reduce", "size": "1GB", "on": "torus", "sides": "4x4x8"},
    ),
    "a barrier": ("show collective", {"collective": "barrier", "chips": 64, "on": "tree"}),
    "a fabric": ("show fabric", {"topologies": "fat-tree", "chips": 64, "domain": 4, "nic": "25GB/s"}),
    "several": (
        "show fabric",
        {"topologies": "fat-tree,torus,dragonfly", "chips": 64, "domain": 4, "nic": "25GB/s", "radix": 32},
    ),
}  # fmt: skip


def words_after(command: str) -> dict[str, str]:
    words = shlex.split(command)
    return {word.removeprefix("--"): value for word, value in pairwise(words) if word[:2] == "--"}


@pytest.mark.parametrize("case", ASKED)
def test_what_comes_next_can_be_typed(case: str, shelf: Catalog) -> None:
    verb, said = ASKED[case]
    for command in answer_of(ask(verb, said, catalog=shelf)).next_commands:
        assert "validate" in command or runs(command), command


@pytest.mark.parametrize("case", [case for case in ASKED if case != "several"])
def test_what_comes_next_keeps_how_the_chips_are_wired(case: str, shelf: Catalog) -> None:
    verb, said = ASKED[case]
    answer = answer_of(ask(verb, said, catalog=shelf))
    for command in answer.next_commands:
        if "validate" in command:
            continue
        given = words_after(command)
        for name in ("nic", "domain", "oversubscription", "sides", "chip", "failure"):
            assert (name in given) == (name in said), command
        if verb == "show collective" and "show fabric" in command and "built" not in case:
            assert f"{int(given['chips']):,} × " in answer.headline
