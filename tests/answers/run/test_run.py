"""What `simulate run` and `show checkpoint` say, promise and refuse."""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest
from tests.answers.claims import garbled, unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.errors import DatahallError, InfeasibleError

LLAMA: dict[str, Any] = {"model": "llama-3.1-405b", "chips": 16_384}
SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "chips": 512, "days": 30, "runs": 50}


@pytest.fixture(scope="module")
def run() -> Answer:
    return dh.simulate_run(**LLAMA, days=54)


def test_llama_3_comes_out_as_published(run: Answer) -> None:
    """419 ± 15 % interruptions in 54 days, effective time of 90 to 92 % with the usual restart and checkpoints."""
    assert number(run, "num_interruptions") == pytest.approx(419, rel=0.15)
    assert 0.90 < number(run, "ettr_fraction") < 0.92
    assert number(run, "ettr_fraction") == pytest.approx(number(run, "closed_form_fraction"), abs=0.01)
    assert 9.5 * 60 < number(run, "restart_s") < 10.5 * 60
    assert number(run, "remote_blocking_s") < 6.0
    causes = {row["cause"]: row["mean"] for row in run.tables[1].records()}
    for name, count in {"Faulty GPU": 148, "GPU HBM3 memory": 72, "Software bug": 54, "NIC": 7}.items():
        assert causes[name] == pytest.approx(count, rel=0.15)


def test_where_the_time_goes_adds_up(run: Answer) -> None:
    rows = run.tables[0].records()
    assert sum(float(row["mean_s"]) for row in rows) == pytest.approx(number(run, "elapsed_s"), rel=1e-9)  # type: ignore[arg-type]
    assert sum(float(row["share_fraction"]) for row in rows) == pytest.approx(1.0, abs=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"tier": "peer,remote"},
        {"spares": 0},
        {"spares": 1, "hot_spares": True, "failure_rate": 0.1},
        {"elastic": "kept"},
        {"elastic": "sqrt", "stall": "30s"},
        {"sdc": "replay", "sdc_every": 50},
        {"sdc": "none"},
        {"restart": "10min", "blocking": "6s", "ettr": "99.99 %"},
        {"interval": "1h", "synchronous": True},
        {"days": None, "tokens": "1T"},
        {"days": None, "tokens": "1T", "deadline": "2d"},
        {"preempted_every": "30d", "capacity_back": "20min", "notice": "2min"},
        {"node_age": "0 s"},
        {"slow_hosts": "5 %", "slow_by": "20 %"},
        {"jitter": "2 %"},
        {"planned_every": "1d", "planned": "1h"},
        {"failures_like": "rsc-1", "job_failures": "2.2/day"},
        {"layout": None, "tp": 2, "pp": 2},
        {"chip": "tpu-v5p"},
        {"on": "nvl72", "chips": 576},
        {"seed": 5, "runs": 1},
    ],
)
def test_what_it_says_follows_from_what_is_under_it(said: dict[str, Any]) -> None:
    asked = {name: value for name, value in {**SMALL, **said}.items() if value is not None}
    answer = dh.simulate_run(**asked)
    assert unfounded(answer) == []
    assert not garbled(f"{answer.headline} {answer.binding} {' '.join(answer.notes)}")
    assert all(len(table.columns) <= 7 for table in answer.tables)
    assert all(len(chart.title) < 80 for chart in answer.charts)


def test_long_checkpoints_put_ninety_percent_out_of_reach() -> None:
    """Stops of 60 s at 3.1 h between failures: 85 to 88 %, at any interval."""
    for restart, ettr in (("5min", 0.875), ("10min", 0.852)):
        answer = dh.simulate_run(
            **LLAMA, days=54, blocking="60s", restart=restart, planned_every="0 s", ettr="90 %", runs=200
        )
        assert answer.verdict == "no"
        assert number(answer, "ettr_fraction") == pytest.approx(ettr, abs=0.004)
        assert "90 % is out of reach at any interval" in answer.binding
        assert "checkpoints that stop it for" in answer.binding


def test_the_way_out_is_enough_and_no_more_than_that() -> None:
    """Stops of 14 s keep 90 % with restarts of 10 min, and longer ones do not."""
    said = {**LLAMA, "days": 54, "restart": "10min", "planned_every": "0 s", "runs": 20}
    answer = dh.simulate_run(**said, blocking="60s", ettr="90 %")
    assert "checkpoints that stop it for 14 s instead of 60 s" in answer.binding
    kept = [number(dh.simulate_run(**said, blocking=one), "closed_form_fraction") for one in ("13s", "15s")]
    assert kept[0] > 0.9 > kept[1]


def test_a_promise_is_kept_by_nine_of_ten_runs() -> None:
    kept, broken = (dh.simulate_run(**LLAMA, days=54, ettr=one, runs=200) for one in ("91 %", "91.5 %"))
    assert (kept.verdict, broken.verdict) == ("yes", "no")
    assert "91.5 % are promised" in broken.headline


def test_a_deadline_names_when_it_is_done_and_with_how_many_chips() -> None:
    late = dh.simulate_run(**LLAMA, tokens="15T", deadline="60d", runs=100)
    assert late.verdict == "no"
    assert "Nine of ten runs are done after" in late.binding
    needed = ceil(16_384 * number(late, "elapsed_high_s") / (60 * 86_400.0))
    assert f"or about {needed:,} chips" in late.binding
    assert dh.simulate_run(**LLAMA, tokens="15T", deadline="70d", runs=100).verdict == "yes"


def test_tokens_take_the_time_that_days_train_them_in() -> None:
    by_days = dh.simulate_run(**SMALL)
    trained = number(by_days, "trained_tokens")
    by_tokens = dh.simulate_run(model="llama-3.1-8b", chips=512, tokens=trained, runs=50)
    assert number(by_tokens, "elapsed_s") == pytest.approx(30 * 86_400.0, rel=0.01)


def test_other_tiers_are_offered_and_keep_what_is_said(run: Answer) -> None:
    (line,) = (one for one in run.next_commands if "--tier" in one and "simulate run" in one)
    assert "--tier peer,remote" in line
    tiered = dh.simulate_run(**LLAMA, days=54, tier="peer,remote", runs=200)
    (note,) = (one for one in run.notes if "would keep" in one)
    assert "94.1 %, planned stops aside" in note
    assert number(tiered, "ettr_fraction") == pytest.approx(0.9415 * (1 - 423 / 99_268), abs=0.002)


def test_a_hundred_thousand_chips_have_less_than_an_hour_between_failures() -> None:
    answer = dh.simulate_run(model="llama-3.1-405b", chips=98_304, days=2, runs=20, global_batch=6144)
    assert number(answer, "mttf_s") < 3600


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ({"days": -1}, 2, "too small"),
        ({"days": 10, "tokens": "1T"}, 2, "either how many days"),
        ({}, 2, "either how many days"),
        ({"days": 10, "interval": "11d"}, 2, "no checkpoint is taken"),
        ({"days": 10, "interval": "1ms"}, 1, "to reach remote storage"),
        ({"days": 10, "storage": "0 B/s"}, 2, "too small"),
        ({"days": 10, "failure_rate": -1}, 2, "too small"),
        ({"days": 10, "failure_rate": 100, "chips": 4096}, 1, "comes to nothing"),
        ({"days": 3000, "failure_rate": 1, "runs": 1_000_000, "restart": "1s"}, 2, "too many to simulate"),
        ({"days": 10, "spares": -1}, 2, "too small"),
        ({"days": 10, "tier": "host"}, 2, "begin anew"),
        ({"days": 10, "tier": "peer,remote", "blocking": "1s"}, 2, "that of one tier"),
        ({"days": 10, "deadline": "9d"}, 2, "is for tokens"),
        ({"days": 10, "ettr": "100 %"}, 2, "no time for a checkpoint"),
        ({"days": 10, "restart": "1min", "detect": "1s"}, 2, "do not go together"),
        ({"days": 10, "notice": "1s"}, 2, "does nothing here"),
        ({"days": 10, "chips": 1}, 1, "does not fit"),
        ({"days": 10, "chips": 10_000_000}, 2, "too large"),
        ({"days": 10, "chips": 1000}, 2, "divides 1,000 chips"),
        ({"days": 10, "failures_like": "llama-4"}, 2, "llama-3"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(said: dict[str, Any], code: int, words: str) -> None:
    with pytest.raises(DatahallError) as refused:
        dh.simulate_run(**{"model": "llama-3.1-8b", "chips": 512, **said})
    assert refused.value.exit_code == code
    assert words in str(refused.value)
    assert refused.value.hint


@pytest.fixture(scope="module")
def checkpoint() -> Answer:
    return dh.show_checkpoint(**LLAMA, storage="2TB/s")


def test_a_checkpoint_of_405b_by_tier(checkpoint: Answer) -> None:
    assert number(checkpoint, "checkpoint_bytes") == pytest.approx(5.68e12, rel=0.01)
    assert number(checkpoint, "remote_drain_s") == pytest.approx(5.68e12 / 2e12, rel=0.01)
    assert checkpoint.results["plan"] == "peer, remote"
    assert number(checkpoint, "ettr_fraction") > number(checkpoint, "remote_alone_fraction") + 0.02
    rows = checkpoint.tables[0].records()
    assert [row["tier"] for row in rows][-1] == "remote storage"
    survived = [float(row["survived_fraction"]) for row in rows]  # type: ignore[arg-type]
    assert survived[0] < survived[1] < survived[2] < survived[-1] == pytest.approx(1.0)
    assert unfounded(checkpoint) == []


def test_slow_storage_is_a_no_with_what_would_do() -> None:
    slow = dh.show_checkpoint(**LLAMA, storage="1GB/s", tier="remote")
    assert slow.verdict == "no"
    assert "storage is too slow" in slow.headline
    assert unfounded(slow) == []
    needed = number(slow, "needed_bytes_per_s")
    assert dh.show_checkpoint(**LLAMA, storage=1.01 * needed, tier="remote").verdict == "yes"
    assert dh.show_checkpoint(**LLAMA, storage=0.9 * needed, tier="remote").verdict == "no"
    assert dh.show_checkpoint(**LLAMA, storage="5GB/s").verdict == "yes", (
        "memory takes most of the load off it"
    )


@pytest.mark.parametrize(
    "said",
    [
        {"model": "deepseek-v3", "chips": 2048, "chip": "h800"},
        {"model": "llama-3.1-8b", "chips": 8},
        {"model": "smollm2-135m", "chips": 1},
        {"model": "llama-3.1-70b", "chips": 512, "chip": "tpu-v5p"},
        {"model": "llama-3.1-8b", "chips": 64, "tier": "host,remote", "synchronous": True},
        {"model": "llama-3.1-8b", "chips": 64, "interval": "20min", "blocking": "0 s"},
        {"model": "llama-3.1-8b", "chips": 64, "framework": "fsdp", "save": "20s", "copy": "1s"},
    ],
)
def test_other_checkpoints_are_founded_too(said: dict[str, Any]) -> None:
    answer = dh.show_checkpoint(**said)
    assert unfounded(answer) == []
    assert not garbled(f"{answer.headline} {answer.binding} {' '.join(answer.notes)}")


def test_what_does_not_fit_has_no_checkpoint() -> None:
    with pytest.raises(InfeasibleError, match="does not fit on 1 chip"):
        dh.show_checkpoint(model="llama-3.1-8b", chips=1)
