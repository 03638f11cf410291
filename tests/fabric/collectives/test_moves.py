"""A collective is what its row says: whoever treats one unlike the others asks the row, and not the name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import datahall as dh
from datahall.catalog import load
from datahall.errors import UnsupportedError
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.algorithms.table import num_steps
from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.ctran import ring_time
from datahall.fabric.collectives.host_staged import staged_times
from datahall.fabric.collectives.system import system_of

SIZES = np.array([1e4, 1e7])


@pytest.mark.parametrize("said", [{"chips": 64}, {"chips": 4}, {"chips": 64, "size": "1MB", "on": "tree"}])
def test_another_with_the_row_of_a_barrier_is_answered_as_one(
    said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headline, table, chart, chain, notes and what is offered next; nothing of them is of the word."""

    def told(kind: str, **more: str) -> str:
        return dh.show_collective(collective=kind, **said | more).to_json().replace("send-recv", "barrier")

    barrier = told("barrier")
    assert told("send-recv", size="1MB") != barrier
    monkeypatch.setitem(MOVES, "send-recv", MOVES["barrier"])
    assert told("send-recv") == barrier


def test_it_says_what_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOVES, "all-to-all", MOVES["barrier"]._replace(stands_for="reduce"))
    found = dh.show_collective(collective="all-to-all", chips=64, size="1MB")
    assert found.headline.startswith("An all-to-all of 64 ×")
    assert any("an all-to-all moves one number" in note for note in found.notes)
    assert "an all-to-all is a reduce of one number" in found.to_json()


def test_ctran_adds_up_where_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def took(kind: Any) -> list[float]:
        return ring_time(library().ctran, kind, SIZES, 8, interleaved=False).tolist()

    gathered, summed = took("all-gather"), took("reduce-scatter")
    assert gathered != summed
    monkeypatch.setitem(MOVES, "all-gather", MOVES["all-gather"]._replace(adds=True))
    assert took("all-gather") == summed


def test_a_sum_is_of_what_was_added_up() -> None:
    for name, row in MOVES.items():
        if row.result in {"sum", "share"}:
            assert row.adds, name
        if row.result in {"whole", "pieces", "nothing"}:
            assert not row.adds, name


def test_what_goes_through_host_memory_takes_the_rounds_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    once, twice = (staged_times(kind, SIZES, 4, 1e10).tolist() for kind in ("all-gather", "all-reduce"))
    with pytest.raises(UnsupportedError, match="host memory") as refused:
        staged_times("broadcast", SIZES, 4, 1e10)
    assert refused.value.hint == "one of all-reduce, all-gather, reduce-scatter"
    monkeypatch.setitem(MOVES, "broadcast", MOVES["all-reduce"])
    monkeypatch.setitem(MOVES, "all-reduce", MOVES["all-gather"])
    assert staged_times("broadcast", SIZES, 4, 1e10).tolist() == twice
    assert staged_times("all-reduce", SIZES, 4, 1e10).tolist() == once


@pytest.mark.parametrize(("num_ranks", "steps"), [(8, 14), (64, 126)])
def test_a_barrier_takes_the_steps_of_the_sum_that_it_runs(num_ranks: int, steps: int) -> None:
    """A sum of one number goes round a ring twice, whoever asks for it."""
    system = system_of(load().chip("h100-sxm"))
    assert num_steps(system, "barrier", "ring", num_ranks) == steps
    assert num_steps(system, "barrier", "tree", num_ranks) == num_steps(
        system, "all-reduce", "tree", num_ranks
    )


@pytest.mark.parametrize(
    ("collective", "words"),
    [
        ("all-reduce", "The links of all axes bind."),
        ("all-to-all", "The bisection binds."),
        ("send-recv", "The link to the next chip binds."),
    ],
)
def test_a_torus_says_which_links_bind(collective: str, words: str) -> None:
    found = dh.show_collective(collective, size="10GB", on="torus", chips=64, chip="tpu-v5p")
    assert found.binding == words
