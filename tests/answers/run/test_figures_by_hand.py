"""Figures of `simulate run` and `show checkpoint` worked out from the others that they print."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer

SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "chips": 512, "runs": 20}
LLAMA: dict[str, Any] = {"model": "llama-3.1-405b", "chips": 16_384}


def rows(answer: Answer, title: str) -> list[dict[str, Any]]:
    (table,) = (one for one in answer.tables if one.title.startswith(title))
    return [dict(row) for row in table.records()]


def test_a_promise_turns_where_nine_of_ten_runs_keep_it() -> None:
    """Nine of ten lie above their P10: a hair below it is kept, a hair above is not; a deadline likewise at P90."""
    said = {**SMALL, "runs": 200, "failure_rate": 0.05}
    days = dh.simulate_run(**said, days=20)
    low = number(days, "ettr_low_fraction")
    at = [dh.simulate_run(**said, days=20, ettr=low * ratio).verdict for ratio in (0.9995, 1.0005)]
    assert at == ["yes", "no"]
    tokens = dh.simulate_run(**said, tokens="5T")
    high_s = number(tokens, "elapsed_high_s")
    at = [
        dh.simulate_run(**said, tokens="5T", deadline=f"{high_s * ratio:.6f} s").verdict
        for ratio in (1.0005, 0.9995)
    ]
    assert at == ["yes", "no"]


def test_planned_stops_come_whole() -> None:
    """A run of 36 h with a stop of 1 h every 24 h has one of them."""
    none, some = (
        dh.simulate_run(**SMALL, days=1.5, **planned)
        for planned in ({"planned_every": "0s"}, {"planned_every": "1d", "planned": "1h"})
    )
    kept = number(some, "closed_form_fraction") / number(none, "closed_form_fraction")
    assert kept == pytest.approx(1 - 1 / 36)


@pytest.mark.parametrize(("sdc", "longer"), [("none", 0.0), ("replay", 0.01), ("checksum", 0.02)])
def test_looking_for_corruption_makes_a_step_longer_by_what_its_table_says(sdc: str, longer: float) -> None:
    plain, looked = dh.simulate_run(**SMALL, days=2), dh.simulate_run(**SMALL, days=2, sdc=sdc)
    (row,) = (one for one in rows(looked, "silent corruption") if one["by"] == sdc)
    assert row["of_each_step_fraction"] == longer
    assert number(looked, "slowed_step_s") == pytest.approx(number(plain, "step_s") * (1 + longer))
    assert number(looked, "tokens_per_s") == number(plain, "tokens_per_s")


def test_a_lost_replica_costs_its_share_for_a_restart_and_two_stalls() -> None:
    """A group of 8 of 64: away for as long as a restart with its loading takes; membership changes twice."""
    answer = dh.simulate_run(**SMALL, tp=8, shard=8, days=2, elastic="kept", stall="30s", storage="1GB/s")
    away_s = number(answer, "restart_s")
    found = rows(answer, "while 8 replicas are away")
    assert [row["batch"] for row in found] == ["kept", "linear", "sqrt"]
    for row in found:
        by_hand = 2 * 30 + (1 - row["tokens_a_second_fraction"]) * away_s
        assert row["a_failure_costs_s"] == pytest.approx(by_hand)
    assert found[1]["tokens_a_second_fraction"] == pytest.approx(7 / 8)
    assert found[2]["learning_rate_fraction"] == pytest.approx(sqrt(7 / 8))


@pytest.mark.parametrize("storage", ["50GB/s", "2TB/s"])
def test_a_failure_loses_half_an_interval_and_the_copy_that_was_leaving(storage: str) -> None:
    """5.68 TB at 50 GB/s are 114 s that no failure may fall into, at 2 TB/s 3 s."""
    answer = dh.show_checkpoint(**LLAMA, tier="remote", storage=storage)
    (row,) = rows(answer, "the plan")
    drain_s = number(answer, "checkpoint_bytes") / {"50GB/s": 50e9, "2TB/s": 2e12}[storage]
    assert number(answer, "remote_drain_s") == pytest.approx(drain_s)
    lost_s = row["interval_s"] / 2 + drain_s
    # shares of all the time, in some of which nothing runs that could be lost or stopped
    of_work = row["lost_fraction"] / (lost_s / number(answer, "mttf_s"))
    assert 0.9 < of_work < 1.0
    stopped = number(answer, "remote_blocking_s") / number(answer, "remote_interval_s")
    assert 0.9 < row["blocking_fraction"] / stopped < 1.0
    alone = rows(answer, "tiers")[-1]
    assert alone["failure_s"] == pytest.approx(number(answer, "restart_s") + lost_s)


@pytest.mark.parametrize(
    ("blocking", "restart", "most"),
    [
        ("60s", "2min", "Checkpoints and lost work"),
        ("30s", "5min", "Checkpoints and lost work"),
        ("30s", "20min", "Restarts"),
        ("1s", "10min", "Restarts"),
    ],
)
def test_what_costs_most_leads(blocking: str, restart: str, most: str) -> None:
    """Restarts take R of every M, checkpoints and lost work what the rows of the plan say."""
    answer = dh.show_checkpoint(**LLAMA, tier="remote", blocking=blocking, restart=restart)
    restarts = number(answer, "restart_s") / number(answer, "mttf_s")
    others = sum(row["blocking_fraction"] + row["lost_fraction"] for row in rows(answer, "the plan"))
    assert (most == "Restarts") == (restarts > others)
    assert answer.binding.startswith(f"{most} cost more")
