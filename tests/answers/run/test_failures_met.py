"""What a run says of its failures, causes, restarts and spares is what it then meets, on new nodes too."""

from __future__ import annotations

from typing import Any

import pytest
from tests.answers.claims import unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.errors import ScenarioError

SMALL: dict[str, Any] = {"chips": 4096, "tp": 8, "pp": 4, "node_age": "0d", "runs": 200}


def run(model: str = "llama-3.1-70b", **said: Any) -> Answer:
    return dh.simulate_run(model, **said)


def shares(answer: Answer) -> dict[str, float]:
    """The part of the time of a run that each loss takes."""
    return {str(row["what"]): float(row["share_fraction"]) for row in answer.tables[0].records()}  # type: ignore[arg-type]


def spares(answer: Answer) -> int:
    """Those that suffice, by the table of causes."""
    return int(answer.tables[1].note.partition(" spares suffice")[0].rpartition(" ")[2])


@pytest.mark.parametrize(
    "said",
    [
        {"model": "llama-3.1-405b", "chips": 16_384, "tokens": "15T", "node_age": "0d", "runs": 100},
        {"model": "llama-3.1-70b", "chips": 2048, "tokens": "2T", "node_age": "10d", "runs": 200},
        {**SMALL, "days": 20},
        {**SMALL, "days": 20, "job_failures": "5/day"},
        {**SMALL, "days": 20, "preempted_every": "3000h"},
    ],
)
def test_failures_come_as_often_as_is_said_whether_a_run_is_so_long_or_has_so_many_tokens(
    said: dict[str, Any],
) -> None:
    answer = run(**said)
    met_s = number(answer, "elapsed_s") / number(answer, "num_interruptions")
    assert number(answer, "mttf_s") == pytest.approx(met_s, rel=0.03)
    assert number(answer, "closed_form_fraction") == pytest.approx(number(answer, "ettr_fraction"), abs=0.01)
    assert unfounded(answer) == []
    assert answer.figure is not None
    (every,) = [one for _, one in answer.figure.walk() if one.name == "time between failures"]
    assert every.value == pytest.approx(number(answer, "mttf_s"))


def test_tokens_and_the_days_that_they_take_meet_the_same_failures() -> None:
    by_tokens = run(**SMALL, tokens="5T")
    days = number(by_tokens, "elapsed_s") / 86_400.0
    assert number(run(**SMALL, days=days), "mttf_s") == pytest.approx(number(by_tokens, "mttf_s"), rel=0.005)


def test_the_spares_that_suffice_are_enough_of_them() -> None:
    """Who holds as many as are said waits for as little of the time as they do not suffice, and less with one less."""
    free = run(**SMALL, days=20)
    num = spares(free)
    assert num > spares(run(**{**SMALL, "node_age": "1000d"}, days=20))
    held, fewer = (shares(run(**SMALL, days=20, spares=some)) for some in (num, num - 4))
    assert held.get("waiting for nodes", 0.0) < 0.01 < fewer["waiting for nodes"]


def test_the_causes_add_up_to_the_interruptions_however_many_there_are() -> None:
    answer = run(
        **SMALL,
        days=20,
        preempted_every="3000h",
        shock_rate="0.01/day",
        job_failures="5/day",
        tier="peer,remote",
    )
    rows = answer.tables[1].records()
    assert len(rows) == 21, "18 of Llama 3, and three on top"
    assert sum(float(row["mean"]) for row in rows) == pytest.approx(number(answer, "num_interruptions"))  # type: ignore[arg-type]


def test_an_interval_of_checkpoints_that_no_run_is_said_for_takes_no_age() -> None:
    with pytest.raises(ScenarioError, match="node_age"):
        dh.show_checkpoint("llama-3.1-405b", chips=16_384, node_age="0d")
    (shown,) = [one for one in run(**SMALL, days=20).next_commands if "show checkpoint" in one]
    assert "--node-age" not in shown


def test_a_restart_that_is_said_whole_has_no_parts() -> None:
    whole = run(chips=4096, tp=8, pp=4, days=20, runs=20, restart="10min")
    assert "restarts" in shares(whole)
    assert "warming up" not in shares(whole)
    assert "restarts" in whole.binding
    assert {row["load_s"] for row in whole.tables[2].records()} == {None}
    parts = run(chips=4096, tp=8, pp=4, days=20, runs=20)
    assert {"warming up", "loading checkpoints"} <= shares(parts).keys()
    bare = run(chips=4096, tp=8, pp=4, days=20, runs=20, detect="0s", reschedule="0s")
    assert {"warming up", "loading checkpoints"} <= shares(bare).keys()
    assert bare.figure is not None
    (restart,) = [one for _, one in bare.figure.walk() if one.name == "restart"]
    assert restart.value == pytest.approx(number(bare, "restart_s"))


@pytest.mark.parametrize("spares", [0, 6, 8, 200])
def test_who_waits_for_a_repair_does_so_a_number_of_times(spares: int) -> None:
    note = run(chips=4096, tp=8, pp=4, days=20, runs=300, spares=spares).tables[1].note
    assert "0.0 times" not in note
    assert ("never waits" in note) == (spares == 200)
