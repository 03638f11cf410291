"""A failure or a stall of some time does nothing exactly where every flow ends when it would without it."""

from __future__ import annotations

from typing import Any

import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog

# 16 chips that all meet at one switch, so that every chip's port is used whenever the job runs
FABRIC = {"on": "clos", "chips": 16, "bandwidth": "400 Gb/s", "latency": "500ns"}
LATE = {"collective": "all-reduce", "size": "8MB", "start": "5ms"}  # takes less than a millisecond
TWICE = {"collective": "all-reduce", "size": "8MB", "repeat": 2, "pause": "5ms"}
SHELF = Catalog(user=False)


def simulated(job: dict[str, Any], **more: Any) -> Answer:
    return answer_of(ask("simulate fabric", {**FABRIC, "job": job, **more}, catalog=SHELF))


def is_said(answer: Answer, name: str) -> bool:
    return any(note.startswith(f"{name} does nothing here") for note in answer.notes)


TIMES = [
    ("before the job begins", LATE, "0 s", "1ms"),
    ("until just before it begins", LATE, "4ms", "900us"),
    ("until it is under way", LATE, "4ms", "1100us"),
    ("while it runs", LATE, "5100us", "100us"),
    ("after the end", LATE, "50ms", "1ms"),
    ("for good, after the end", LATE, "50ms", None),
    ("between two runs", TWICE, "3ms", "1ms"),
    ("from the pause into the second run", TWICE, "3ms", "3ms"),
    ("while the first runs", TWICE, "100us", "100us"),
]


@pytest.mark.parametrize("detail", ["symmetric", "full"])
@pytest.mark.parametrize(
    ("job", "start", "duration"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES]
)
@pytest.mark.parametrize("table", ["failure", "stall"])
def test_it_is_said_to_do_nothing_where_nothing_ends_later(
    table: str, job: dict[str, Any], start: str, duration: str | None, detail: str
) -> None:
    part = {"nics": "3", "left": "50 %"} if table == "failure" else {"chip": 3}
    row = {key: value for key, value in {**part, "start": start, "duration": duration}.items() if value}
    plain, beside = simulated(job, detail=detail), simulated(job, detail=detail, **{table: row})
    same = plain.results["makespan_s"] == beside.results["makespan_s"]
    assert is_said(beside, table) is same


def test_of_several_failures_one_that_acts_is_enough() -> None:
    gone = {"nics": "3", "left": "50 %", "start": "50ms"}
    acting = {**gone, "start": "5100us", "duration": "100us"}
    assert is_said(simulated(LATE, failure=[gone]), "failure")
    assert not is_said(simulated(LATE, failure=[gone, acting]), "failure")


def test_a_repaired_part_that_fails_again_is_weighed_each_time() -> None:
    early = {"nics": "3", "left": "50 %", "start": "1ms", "duration": "1ms"}
    assert is_said(simulated(LATE, failure=[early, {**early, "start": "3ms"}]), "failure")
    assert not is_said(simulated(LATE, failure=[early, {**early, "start": "5100us"}]), "failure")
