"""A figure that a constant was fitted on is counted and never scored: in every domain, metric by metric."""

from __future__ import annotations

import pytest

from datahall.validation.ledger import LEDGER, outcomes, shipped_files
from datahall.validation.measurement import Row, read_rows
from datahall.validation.scorecard import Fitted, Replayed, Unsupported, scorecard
from datahall.validation.training.rows import MEMORY, STEP

UNFITTED = {"scheduling": "a queue has no constants: it is played"}
TRAINING = [row for path in shipped_files("training") for row in read_rows(path)[1]]


@pytest.mark.parametrize("domain", LEDGER)
def test_marked_figures_are_those_that_are_not_scored(domain: str) -> None:
    files = shipped_files(domain)
    rows = {row.where: row for path in files for row in read_rows(path)[1]}
    found = [one for path in files for one in outcomes(path, LEDGER[domain])]
    figures = [one for one in found if not isinstance(one, Unsupported | Replayed)]
    marked = [one for one in figures if rows[one.where].fitted_on(one.metric)]
    assert [one for one in figures if isinstance(one, Fitted)] == marked
    card = scorecard(domain, found)
    assert card.fitted == len(marked)
    assert bool(marked) is (domain not in UNFITTED)
    assert card.scored == len(figures) - len(marked) > 0


def test_a_mark_names_metrics_or_stands_for_all() -> None:
    said = {row.text("fitted") for row in TRAINING}
    assert said == {"0", "1", STEP, MEMORY, f"{STEP}; {MEMORY}"}
    row = Row("x:2", {"fitted": f"{STEP}; {MEMORY}"})
    assert row.fitted_on(STEP)
    assert row.fitted_on(MEMORY)
    assert not row.fitted_on("TTFT")
    assert not row.fitted_on()
    assert not Row("x:2", {"fitted": MEMORY}).fitted_on(STEP)
    assert not Row("x:2", {}).fitted_on()
    assert Row("x:2", {"fitted": "1"}).fitted_on(STEP)


def test_rows_that_the_bookkeeping_of_memory_was_read_off_are_marked() -> None:
    """`training/memory/bookkeeping.py` names them: SimuMax's logs of the allocator, and our own first run."""
    marked = {row.text("source") for row in TRAINING if row.fitted_on(MEMORY)}
    assert {"SimuMax v1.2 B200 real runs"} < marked
    logged = [row for row in TRAINING if row.text("source").startswith("SimuMax")]
    assert len(logged) == 30
    assert all(row.fitted_on(MEMORY) for row in logged)
    assert sum(row.fitted_on(STEP) for row in logged) == 7
