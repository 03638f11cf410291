"""What runs is said: by a simulation where nobody named an algorithm, and by the page as the command says it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.units import fmt

PAGE = Path(__file__).parents[3] / "docs" / "collectives.md"


def simulated(*jobs: dict[str, str], shelf: Catalog) -> Answer:
    said = {"on": "fat-tree", "chips": 16, "job": [{"size": "1MB", **job} for job in jobs]}
    return answer_of(ask("simulate fabric", said, catalog=shelf))


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "all-to-all", "broadcast"])
def test_the_algorithm_by_default_is_the_one_that_asked_for_runs_the_same(kind: str, shelf: Catalog) -> None:
    plain = simulated({"collective": kind}, {"collective": kind}, shelf=shelf)
    (said,) = [note for note in plain.notes if note.startswith(f"by default {kind} is ")]
    named = {"collective": kind, "algorithm": said.rpartition(" is ")[2]}
    asked = simulated(named, named, shelf=shelf)
    assert (asked.results, asked.tables) == (plain.results, plain.tables)
    assert not [note for note in asked.notes if note.startswith("by default")]


def test_the_page_says_of_a_plain_tree_what_the_command_does(shelf: Catalog) -> None:
    text = " ".join(PAGE.read_text().split())
    found = re.search(
        r"The NVLS tree that NCCL would choose sends ([\d.]+ GB) there, ([\d.]+ ms), and the ring that is taken "
        r"instead ([\d.]+ GB), ([\d.]+ ms), where a fat tree takes ([\d.]+ ms)",
        text,
    )
    assert found is not None
    said = {"collective": "all-reduce", "size": "1GB", "chips": 1024}
    tree, chosen, wide = (
        answer_of(ask("show collective", {**said, **more}, catalog=shelf))
        for more in ({"on": "tree", "algorithm": "NVLS tree"}, {"on": "tree"}, {"on": "fat-tree"})
    )
    sent = [re.findall(r"([\d.]+ GB) leave", one.binding)[0] for one in (tree, chosen)]
    times = [fmt(float(str(one.results["time_s"])), "s", 3) for one in (tree, chosen, wide)]
    assert found.groups() == (sent[0], times[0], sent[1], times[1], times[2])
