"""Each note of a simulated step, and each command after it, stands where there is something to say."""

from __future__ import annotations

from typing import Any

import pytest

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog

Said = dict[str, Any]

PLAIN: Said = {"model": "llama-3.1-8b", "chips": 16, "global_batch": 32, "recompute": "full"}
REPLICAS, REDUCED = "had to be simulated to know the slowest", "gradients are reduced over"
STRAGGLE, ZERO_BUBBLE = "--slow-hosts", "--schedule zb"
# what is asked beside it, the middles of the notes that this brings, and of the commands
SAID: dict[str, tuple[Said, set[str], set[str]]] = {
    "replicas": ({}, {REPLICAS, REDUCED}, {STRAGGLE}),
    "a pipeline": ({"pp": 2}, {REPLICAS, REDUCED}, {STRAGGLE, ZERO_BUBBLE}),
    "one replica": ({"tp": 8, "pp": 2}, set(), {STRAGGLE, ZERO_BUBBLE}),
    "no bubble": ({"pp": 2, "schedule": "zb"}, {REPLICAS, REDUCED}, {STRAGGLE}),
    "in turns": ({"pp": 2, "vpp": 2}, {REPLICAS, REDUCED}, {STRAGGLE}),
    "a slow host": ({"slow_hosts": "50 %"}, {REPLICAS, REDUCED, "1 of 2 hosts slow"}, set()),
    "jitter": ({"jitter": "1 %"}, {REDUCED, "steps drawn"}, set()),
    "no room": ({"model": "llama-3.1-70b"}, {REPLICAS, REDUCED, "if there were room"}, set()),
}
NOTES = {words for _, notes, _ in SAID.values() for words in notes}


@pytest.mark.parametrize("case", SAID)
def test_what_is_said_beside_a_step_has_a_reason(case: str, shelf: Catalog) -> None:
    more, notes, commands = SAID[case]
    answer = answer_of(ask("simulate train", {**PLAIN, **more}, catalog=shelf))
    assert {words for words in NOTES if any(words in note for note in answer.notes)} == notes, answer.notes
    others = answer.next_commands[1:-2]  # after the trace, before the memory and the ledger
    assert len(others) == len(commands)
    assert all(any(words in one for one in others) for words in commands)
