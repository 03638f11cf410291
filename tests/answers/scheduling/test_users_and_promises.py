"""Queues worked out by hand: what users waited, what load is, and promises that jobs which began again do not delay."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer, GanttChart

HOUR = 3600


def job(name: str, chips: int, run: str, **more: str | int) -> dict[str, Any]:
    return {"name": name, "chips": chips, "run": run, **more}


def asked(chips: int, *jobs: dict[str, Any], **more: Any) -> Answer:
    return dh.simulate_cluster(**{"chips": chips, "policy": "backfill", "cluster_job": list(jobs), **more})


def starts(answer: Answer, name: str) -> list[float]:
    """When the attempts of a job began."""
    (nodes,) = (one for one in answer.charts if isinstance(one, GanttChart))
    return sorted({bar.start for bar in nodes.bars if bar.label == name})


def users(answer: Answer) -> dict[str, dict[str, Any]]:
    (table,) = (one for one in answer.tables if one.title.startswith("users"))
    return {str(row["user"]): dict(row) for row in table.records()}


def test_a_job_that_began_again_has_only_the_rest_of_its_limit() -> None:
    """a loses its node at 50 and goes on beside it until 100; c, till 113, would hold b up."""
    answer = asked(
        16,
        job("a", 8, "100s"),
        job("b", 16, "50s", submit="52s"),
        job("c", 8, "60s", submit="53s"),
        on="fat-tree",
        checkpoint_every="10s",
        restart="0s",
        failure=[{"domains": [0], "start": "50s", "duration": "1s"}],
    )
    assert starts(answer, "a") == [0, 50]
    assert starts(answer, "b") == [100]
    assert starts(answer, "c") == [150]


@pytest.mark.parametrize(("restart", "again_s"), [("60s", 150), ("30s", 21)])
def test_a_job_that_begins_again_counts_its_restart_before_a_promise(restart: str, again_s: float) -> None:
    """b is promised 100. c, cut off at 20 with 30 s to do, ends before that after a restart of 30 s and not of 60."""
    answer = asked(
        16,
        job("a", 8, "100s"),
        job("b", 16, "50s", submit="1s"),
        job("c", 8, "40s", submit="2s"),
        on="fat-tree",
        checkpoint_every="10s",
        restart=restart,
        failure=[{"domains": [1], "start": "20s", "duration": "1s"}],
    )
    assert starts(answer, "b") == [100]
    assert starts(answer, "c") == [2, again_s]


def test_a_job_is_work_up_to_its_limit() -> None:
    """Ten hours with a limit of one, and one hour an hour later, each on all chips: two hours of work in one."""
    answer = asked(16, job("a", 16, "10h", limit="1h"), job("b", 16, "1h", submit="1h"))
    assert answer.results["load_fraction"] == pytest.approx(2.0)
    assert answer.results["makespan_s"] == pytest.approx(2 * HOUR)


def test_a_user_waits_the_mean_of_their_jobs() -> None:
    """On all chips one after the other: ann's wait 0 and 20 h, bob's 10 h."""
    answer = asked(
        16, job("a", 16, "10h", user="ann"), job("b", 16, "10h", user="bob"), job("c", 16, "2h", user="ann"),
        policy="fifo",
    )  # fmt: skip
    found = users(answer)
    assert found["ann"]["mean_wait_s"] == pytest.approx(10 * HOUR)
    assert found["bob"]["mean_wait_s"] == pytest.approx(10 * HOUR)
    assert found["ann"]["chip_time_s"] == pytest.approx(16 * 12 * HOUR)
    assert found["ann"]["share_fraction"] == pytest.approx(12 / 22)
    assert answer.results["mean_wait_s"] == pytest.approx((0 + 10 + 20) * HOUR / 3)


def test_a_job_that_never_starts_is_no_wait_of_nothing() -> None:
    """56 chips are left. carl's 64 never start; of bob's jobs one waits for ever and one for the hour of ann's."""
    answer = asked(
        64,
        job("a", 56, "2h", user="ann"),
        job("b", 64, "10h", submit="1h", user="bob"),
        job("b2", 56, "1h", submit="1h", user="bob"),
        job("c", 64, "1h", submit="1h", user="carl"),
        on="fat-tree",
        failure=[{"domains": [0], "start": "0s"}],
    )
    found = users(answer)
    assert answer.results["num_never_done"] == 2
    assert found["bob"]["jobs"] == 2
    assert found["bob"]["mean_wait_s"] == pytest.approx(HOUR)
    assert found["carl"]["mean_wait_s"] is None
    assert found["ann"]["mean_wait_s"] == pytest.approx(0.0)
    assert answer.results["mean_wait_s"] == pytest.approx(HOUR / 2)
