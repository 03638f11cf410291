"""Traces played again: waits under our policy, chips held at their own starts as a check, and rows left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scheduling.pods import TRACE, made_pods, needs_trace

from datahall.answers.validation.scorecard import scorecard_answer
from datahall.errors import DocumentError
from datahall.validation.ledger import validate

DATA = Path(__file__).parents[1] / "scheduling" / "data"


@needs_trace
def test_chips_of_a_public_trace_are_held_as_they_were_at_its_own_starts() -> None:
    """Within a tenth in every hundredth of its time, of 6,203 jobs on a cluster no larger than the most it held."""
    card = validate("scheduling", TRACE)
    held, wait = card.checks["chips held"], card.by_metric["mean wait"]
    assert held.rows == 100
    assert held.worst_ape < 10
    assert wait.rows == 10
    assert {one.reason: one.rows for one in card.unsupported} == {"holds no chip": 1052, "never started": 897}


def test_chips_of_a_made_trace_are_held_as_they_were(tmp_path: Path) -> None:
    card = validate("scheduling", made_pods(tmp_path))
    assert card.checks["chips held"].rows == 100
    assert card.checks["chips held"].p90_ape < 10


def test_a_full_cluster_that_ours_cannot_fill_alike_is_off(tmp_path: Path) -> None:
    """Three jobs of 5 chips at once need three of our nodes of 8, where 15 chips are two: one is late, and is seen."""
    rows = [f"x,{job},0,0,100,5" for job in range(3)] + ["x,9,200,200,100,16"]
    path = tmp_path / "trace.csv"
    path.write_text("source,name,submit_s,start_s,run_s,chips\n" + "\n".join(rows) + "\n", encoding="utf-8")
    card = validate("scheduling", path)
    assert card.checks["chips held"].p90_ape == pytest.approx(100 / 3, abs=1)


def test_a_dump_is_scored_as_it_is() -> None:
    card = validate("scheduling", DATA / "gcm_sacct-multiple-multiline.txt")
    assert card.checks["chips held"].rows == 100
    assert sum(one.rows for one in card.unsupported) == 4


def test_shipped_rows_say_where_they_are_from() -> None:
    card = validate("scheduling")
    assert all(source.startswith("gcm, sacct of") for source in card.by_source)
    assert card.checks["chips held"].worst_ape < 1


def test_what_a_trace_says_itself_is_no_prediction_and_not_scored() -> None:
    """Its chips at its own starts come out by construction; only waits are ours, of which two tenths have any."""
    card = validate("scheduling")
    assert set(card.by_metric) == {"mean wait"}
    assert card.scored == card.overall.rows == 2
    assert card.num_replayed == 295
    assert card.rows == card.scored + card.fitted + card.num_replayed + card.num_unsupported
    assert {one.metric for one in card.worst} == {"mean wait"}
    said = scorecard_answer(card)
    error = f"the median error is {card.overall.median_ape:.1f} %"
    assert said.headline.startswith(f"On 2 measured rows of scheduling {error}")
    assert card.overall.median_ape < 60.0
    assert "295 played again as a check" in said.binding
    assert "played again" in {table.title for table in said.tables}


def test_what_is_predicted_of_jobs_that_did_not_wait_is_said(tmp_path: Path) -> None:
    """Three jobs of 5 chips at once need three of our nodes of 8, where 15 chips are two: the last waits 100 s here."""
    rows = [f"x,{job},0,0,100,5" for job in range(3)]
    path = tmp_path / "trace.csv"
    path.write_text("source,name,submit_s,start_s,run_s,chips\n" + "\n".join(rows) + "\n", encoding="utf-8")
    card = validate("scheduling", path)
    assert card.scored == 0
    assert {one.reason: one.rows for one in card.unsupported} == {
        "nobody waited, predicted 0 s: no share of nothing": 2,
        "nobody waited, predicted 100 s: no share of nothing": 1,
    }


def test_a_trace_without_starts_is_counted_and_not_scored(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("submit_s,run_s,chips\n0,10,1\n", encoding="utf-8")
    card = validate("scheduling", path)
    assert card.scored == 0
    assert card.unsupported[0].reason == "the trace does not say when jobs started"


@pytest.mark.parametrize("domain", ["scheduling", "power"])
@pytest.mark.parametrize(
    ("content", "says"), [(b"a\x00|b\n1|2\n", "is no text"), (b"a\x94,b\n", "is no UTF-8 text")]
)
def test_what_is_no_text_is_said_alike_in_every_domain(
    tmp_path: Path, domain: str, content: bytes, says: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=says) as caught:
        validate(domain, path)
    assert "codec" not in str(caught.value)
    assert "sacct" not in str(caught.value)
