"""A run has one effective time, and one that is mostly given up is a no."""

from __future__ import annotations

from typing import Any

import pytest
from tests.answers.claims import unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer

SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "chips": 512, "runs": 100}


@pytest.fixture(scope="module")
def given_up() -> Answer:
    """A failure every two and a half minutes, and restarts of ten: of 200 runs of 3 min of work some 31 % are done."""
    return dh.simulate_run(**{**SMALL, "runs": 200}, tokens="1B", failure_rate=9)


def shares(answer: Answer) -> dict[str, float]:
    return {str(row["what"]): float(row["share_fraction"]) for row in answer.tables[0].records()}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "said",
    [
        {"days": 30},
        {"tokens": "100B"},
        {"tokens": "1B", "failure_rate": 9},
        {"tokens": "1B", "failure_rate": 2},
        {"tokens": "1B", "failure_rate": 2, "slow_hosts": "5 %", "slow_by": "20 %"},
        {"tokens": "10B", "failure_rate": 1, "sdc": "checksum"},
        {"tokens": "10B", "failure_rate": 1, "elastic": "kept"},
    ],
)
def test_the_effective_time_is_the_share_of_the_table(said: dict[str, Any]) -> None:
    """One question, one answer: of long runs and of short ones, of which each is another length."""
    answer = dh.simulate_run(**SMALL, **said)
    assert number(answer, "ettr_fraction") == pytest.approx(shares(answer)["work that is kept"])
    trained_s = number(answer, "trained_tokens") / number(answer, "tokens_per_s")
    at_work = trained_s / number(answer, "elapsed_s")
    assert number(answer, "ettr_fraction") == pytest.approx(
        at_work
    )  # the rate is that before slow hosts and checks


def test_a_run_that_is_mostly_given_up_is_a_no(given_up: Answer) -> None:
    assert given_up.verdict == "no"
    assert "is given up too often" in given_up.headline
    assert "takes" not in given_up.headline.split(":")[0]
    assert 0.2 < number(given_up, "finished_fraction") < 0.4
    assert number(given_up, "ettr_fraction") < 0.05
    assert unfounded(given_up) == []


def test_a_run_is_given_up_after_twenty_times_its_work(given_up: Answer) -> None:
    steps = -(-1_000_000_000 // round(number(given_up, "tokens_per_s") * number(given_up, "step_s")))
    work_s = steps * number(given_up, "step_s")
    assert number(given_up, "given_up_s") == pytest.approx(20 * work_s)
    assert number(given_up, "elapsed_high_s") <= 20 * work_s + 1.0
    assert number(given_up, "elapsed_high_s") > 19 * work_s


def test_nine_of_ten_runs_must_be_done() -> None:
    """Rarer failures end more of the runs, and the verdict turns where nine of ten are done."""
    answers = [dh.simulate_run(**SMALL, tokens="1B", failure_rate=rate) for rate in (1, 2, 4, 6, 9)]
    done = [number(one, "finished_fraction") for one in answers]
    assert done == sorted(done, reverse=True)
    assert done[0] >= 0.9 > done[-1]
    assert [one.verdict for one in answers] == ["yes" if share >= 0.9 else "no" for share in done]


def test_a_run_that_is_given_up_is_a_no_whatever_was_promised(given_up: Answer) -> None:
    late = dh.simulate_run(**SMALL, tokens="1B", failure_rate=9, deadline="30d")
    assert late.verdict == "no"
    assert late.binding == given_up.binding


def test_days_are_never_given_up() -> None:
    answer = dh.simulate_run(**SMALL, days=1, failure_rate=4)
    assert "finished_fraction" not in answer.results
    assert number(answer, "elapsed_s") == pytest.approx(86_400)
