"""Which rows of interruptions are scored: words are read whole, so that a part of one leaves no row out."""

from __future__ import annotations

import pytest

from datahall.validation.ledger import shipped_files
from datahall.validation.measurement import Row, read_rows
from datahall.validation.reliability.rows import predict
from datahall.validation.scorecard import Prediction, Unsupported

(SHIPPED,) = shipped_files("reliability")
COLUMNS, ROWS = read_rows(SHIPPED)
LLAMA = next(one for one in ROWS if one.text("cause_or_metric") == "unexpected interruptions")


def outcome(words: str) -> Prediction | Unsupported:
    """How often Llama 3 405B was interrupted, had that been named so."""
    found, *_ = predict([Row(LLAMA.where, {**LLAMA.cells, "cause_or_metric": words})])
    assert isinstance(found, Prediction | Unsupported)
    return found


@pytest.mark.parametrize(
    "words",
    [
        "unexpected interruptions, wall-clock days",
        "unexpected interruptions of a small run",
        "installed-base failures",
        "unplanned interruptions",
        "un-planned interruptions",
        "Unplanned interruptions, overall",
        "hardware failures (wall time)",
        "all unexpected interruptions",
        "all unplanned interruptions",
        "failures of installed nodes, manually recovered or not",
    ],
)
def test_a_part_of_a_word_leaves_no_row_out(words: str) -> None:
    found, plain = outcome(words), outcome("unexpected interruptions")
    assert isinstance(found, Prediction)
    assert isinstance(plain, Prediction)
    assert (found.measured, found.predicted) == (plain.measured, plain.predicted)


@pytest.mark.parametrize(
    "words",
    ["all interruptions", "All interruptions", "planned interruptions", "Planned stops", "planned and unplanned stops"],
)  # fmt: skip
def test_planned_stops_are_decided_and_not_met(words: str) -> None:
    found = outcome(words)
    assert isinstance(found, Unsupported)
    assert found.reason == "planned stops are decided, not met"
