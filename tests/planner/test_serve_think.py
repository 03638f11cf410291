"""What a plan says of other think times: worked by hand, and beside plans that were asked with them."""

from __future__ import annotations

from math import ceil

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer, Table
from datahall.catalog import Catalog

SHELF = Catalog(user=False)
SAID = {"isl": 300, "osl": 200, "tpot": "50 ms", "chips": "h100-sxm", "precision": "fp8", "catalog": SHELF}


def plan(users: int = 4000, **more: object) -> Answer:
    return dh.plan_serve("llama-3.1-8b", users=users, **{**SAID, **more})


def table(answer: Answer) -> Table:
    (found,) = [one for one in answer.tables if "think" in one.title]
    return found


def test_users_read_at_the_pace_of_the_limit_and_then_think() -> None:
    """200 tokens at 50 ms are 10 s: 4,000 users ask 400 times a second, and 100 where they think for 30 s."""
    found = table(plan())
    assert [row[:2] for row in found.rows] == [
        (0.0, 400.0),
        (10.0, 200.0),
        (30.0, 100.0),
        (60.0, pytest.approx(400 / 7)),
    ]
    assert found.marked == 0


def test_the_row_that_was_asked_is_the_plan() -> None:
    for think, place in (("0s", 0), ("30s", 2), ("45s", 3), ("1h", 4)):
        answer = plan(think=think)
        found = table(answer)
        assert found.marked == place
        assert found.rows[place][2:] == (answer.results["num_replicas"], answer.results["num_chips"])


def test_replicas_follow_from_what_one_of_them_keeps() -> None:
    answer = plan(headroom="20 %")
    kept = number(answer, "replica_requests_per_s")
    for _, rate, replicas, chips in table(answer).rows[1:]:
        assert isinstance(rate, float)
        assert replicas == chips == ceil(rate / (kept * 0.8))


def test_more_thought_never_takes_more_chips_and_more_users_never_fewer() -> None:
    columns = [[row[3] for row in table(plan(users)).rows] for users in (1, 10, 500, 4000, 40_000)]
    for column in columns:
        assert column == sorted(column, reverse=True)
    for row in zip(*columns, strict=True):
        assert list(row) == sorted(row)


@pytest.mark.parametrize("think", ["10s", "30s", "60s"])
def test_a_plan_that_is_asked_with_it_comes_near(think: str) -> None:
    """A plan of few replicas is confirmed anew: within a tenth, or one replica."""
    row = next(row for row in table(plan()).rows if f"{row[0]:g}s" == think)
    asked = number(plan(think=think), "num_replicas")
    assert row[2] == pytest.approx(asked, rel=0.1, abs=1)


def test_conversations_find_less_in_caches_after_a_longer_pause() -> None:
    """At half of the requests a replica holds fewer than before of them: more than half of the chips are needed."""
    rows = table(plan(turns=4, think="10s", system=2000)).rows
    by_think = {row[0]: row for row in rows}
    ratio = by_think[60.0][1] / by_think[10.0][1]  # type: ignore[operator]
    assert by_think[60.0][2] > ratio * by_think[10.0][2]  # type: ignore[operator]


def test_spare_replicas_are_in_every_row() -> None:
    plain, spare = table(plan()).rows, table(plan(spare=2)).rows
    assert [row[2] for row in spare] == [row[2] + 2 for row in plain]  # type: ignore[operator]


def test_think_time_stands_in_the_headline() -> None:
    assert "4,000 users at 20 tokens/s each and no pause between answers" in plan().headline
    assert "and 30 s between answers" in plan(think="30s").headline


def test_a_rate_has_no_users_who_think() -> None:
    answer = dh.plan_serve("llama-3.1-8b", rate=5, **SAID)
    assert not [one for one in answer.tables if "think" in one.title]
