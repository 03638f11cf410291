"""The training ledger: our error on public runs, and rows that cannot be expressed are counted."""

from __future__ import annotations

import pytest

from datahall.validation import validate
from datahall.validation.scorecard import Scorecard


@pytest.fixture(scope="module")
def card() -> Scorecard:
    return validate("training")


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ("Korthikanti", 3.5),
        ("vTrain", 10.0),
        ("llama31_405b", 8.0),
        ("BLOOM", 15.0),
        ("llm-foundry", 10.0),
        ("v25.04.02", 6.0),
    ],
)
def test_mean_error_on_rows_nothing_was_fitted_on(card: Scorecard, words: str, limit: float) -> None:
    found = [score for name, score in card.by_source.items() if words in name]
    assert len(found) == 1
    assert found[0].mean_ape <= limit, f"{words}: {found[0].mean_ape:.1f} %"


def test_no_row_is_lost(card: Scorecard) -> None:
    assert card.rows == card.scored + card.fitted + sum(reason.rows for reason in card.unsupported)


def test_at_most_a_quarter_is_fitted(card: Scorecard) -> None:
    assert card.fitted < 0.25 * card.rows
