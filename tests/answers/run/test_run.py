"""What `simulate run` and `show checkpoint` say, promise and refuse."""

from __future__ import annotations

from typing import Any

import pytest
from tests.answers.claims import garbled, unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.errors import DatahallError, InfeasibleError, ScenarioError

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
        {"failure_rate": 1e-2, "job_failures": "2.2/day", "preempted_every": "200d"},
        {"failure_rate": 1e-2, "shock_rate": "0.1/day"},
        {"days": None, "tokens": "1T", "spares": 0, "runs": 20, "deadline": "1d"},
        {"interval": "3h", "blocking": "1h", "failure_rate": 0.3, "days": 2},
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


def asked_again(line: str, said: dict[str, Any], *names: str) -> Answer:
    """The question changed as a command under "next" says."""
    words = line.split()
    changes = {name: words[words.index(f"--{name}") + 1] for name in names}
    return dh.simulate_run(**{**said, **changes})


@pytest.mark.parametrize(
    ("more", "ettr", "change"),
    [
        ({"restart": "10min", "blocking": "60s", "planned_every": "0 s"}, "90 %", "blocking"),
        ({}, "92.5 %", "blocking"),
        ({"tier": "peer,remote"}, "95 %", "restart"),
        ({}, "95 %", "restart"),
        ({"interval": "1h"}, "90.8 %", "interval"),
    ],
)
def test_the_way_out_keeps_the_promise_in_nine_of_ten_runs(
    more: dict[str, Any], ettr: str, change: str
) -> None:
    said = {**LLAMA, "days": 54, "runs": 100, "ettr": ettr, **more}
    answer = dh.simulate_run(**said)
    assert answer.verdict == "no"
    assert "It takes" in answer.binding
    line = answer.next_commands[0]
    if change == "interval":
        said.pop("interval")
        assert "checkpoint every" in answer.binding
        assert dh.simulate_run(**said).verdict == "yes"
    else:
        assert asked_again(line, said, change).verdict == "yes"


def test_the_way_out_is_no_shorter_than_it_must_be() -> None:
    """Stops of 60 s: the longest that nine of ten runs keep 90 % with lies within a tenth."""
    said = {**LLAMA, "days": 54, "restart": "10min", "planned_every": "0 s", "runs": 100, "ettr": "90 %"}
    line = dh.simulate_run(**said, blocking="60s").next_commands[0].split()
    longest_s = float(line[line.index("--blocking") + 1].removesuffix("s"))
    assert 10 <= longest_s <= 14, "in the mean 14 s would do"
    assert dh.simulate_run(**said, blocking=1.15 * longest_s).verdict == "no"


def test_where_nothing_helps_it_says_what_the_time_goes_to() -> None:
    answer = dh.simulate_run(**SMALL, sdc="vote", ettr="90 %")
    assert answer.verdict == "no"
    assert "most is lost to looking for corruption" in answer.binding


def test_a_promise_is_kept_by_nine_of_ten_runs() -> None:
    kept, broken = (dh.simulate_run(**LLAMA, days=54, ettr=one, runs=200) for one in ("91 %", "91.5 %"))
    assert (kept.verdict, broken.verdict) == ("yes", "no")
    assert "91.5 % are promised" in broken.headline


@pytest.mark.parametrize(
    "said",
    [
        {"model": "llama-3.1-8b", "chips": 64, "tokens": "1T", "deadline": "10d"},
        {"model": "llama-3.1-70b", "chips": 1024, "tokens": "1T", "deadline": "2d"},
        {"model": "llama-3.1-70b", "chips": 256, "tp": 8, "pp": 2, "tokens": "100B", "deadline": "2d"},
    ],
)
def test_a_missed_deadline_names_chips_that_keep_it(said: dict[str, Any]) -> None:
    late = dh.simulate_run(**said, runs=50)
    assert late.verdict == "no"
    assert "Nine of ten runs are done after" in late.binding
    in_time = asked_again(late.next_commands[0], {**said, "runs": 50}, "chips")
    assert in_time.verdict == "yes"
    assert f"{in_time.inputs['chips']:,} chips" in late.binding


def test_chips_that_cannot_be_had_are_not_named() -> None:
    """A fabric that was built has its chips and no more, and four replicas that were said are four."""
    built = dh.simulate_run(
        model="llama-3.1-405b", on="dgx-superpod-h100", tokens="1T", deadline="1d", runs=20
    )
    laid = dh.simulate_run(model="llama-3.1-8b", chips=16, tp=4, dp=4, tokens="1T", deadline="10d", runs=20)
    for answer in (built, laid):
        assert answer.verdict == "no"
        assert " chips" not in answer.binding
        assert "which is the deadline that they keep" in answer.binding


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
        ({"days": 10, "interval": "11d", "planned_every": "0 s"}, 2, "no checkpoint is taken"),
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
        ({"days": 10, "chips": 1}, 1, "in none of"),
        ({"days": 10, "chips": 8, "tp": 8, "model": "llama-3.1-70b"}, 1, "192 GB of 85.5 GB"),
        ({"days": 20, "planned_every": "1s"}, 1, "planned stops of"),
        ({"days": 10, "chips": 10_000_000}, 2, "too large"),
        ({"days": 10, "chips": 1000, "tp": 32}, 2, "not 1,000"),
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
    assert number(checkpoint, "checkpoint_ettr_fraction") > number(checkpoint, "remote_alone_fraction") + 0.02
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
    needed = number(slow, "checkpoint_bytes_per_s")
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
    with pytest.raises(InfeasibleError, match="in none of"):
        dh.show_checkpoint(model="llama-3.1-8b", chips=1)
    with pytest.raises(InfeasibleError, match=r"192 GB of 85\.5 GB"):
        dh.show_checkpoint(model="llama-3.1-70b", chips=8, tp=8)


BUILT = ("meta-24k-roce", "dgx-superpod-h100", "tpu-v4-pod", "gb200-nvl72-superpod")


@pytest.mark.parametrize("fabric", BUILT)
def test_a_fabric_that_was_built_needs_no_number_of_chips(fabric: str) -> None:
    assert dh.show_checkpoint(model="llama-3.1-70b", on=fabric).verdict == "yes"


def test_a_run_on_a_fabric_that_was_built_may_have_a_deadline() -> None:
    fabric = "dgx-superpod-h100"
    days = dh.simulate_run(model="llama-3.1-70b", on=fabric, days=2, runs=10)
    tokens = dh.simulate_run(model="llama-3.1-70b", on=fabric, tokens="10B", deadline="30d", runs=10)
    assert days.results["num_nodes"] == tokens.results["num_nodes"] == 128


@pytest.mark.parametrize(
    "said",
    [
        {"model": "llama-3.1-405b", "chips": 16_384},
        {"model": "llama-3.1-405b", "chips": 100_000},
        {"model": "llama-3.1-70b", "chips": 1024, "tp": 8, "pp": 4},
        {"model": "llama-3.1-8b", "chips": 1000},
    ],
)
def test_a_run_its_checkpoints_and_its_power_are_of_one_step(said: dict[str, Any]) -> None:
    power = dh.show_power(**said)
    for answer in (dh.simulate_run(**said, days=1, runs=10), dh.show_checkpoint(**said)):
        assert number(answer, "step_s") == pytest.approx(number(power, "step_s"), rel=1e-9)
        assert answer.inputs["global_batch"] == power.inputs["global_batch"]
        assert answer.inputs["chips"] == said["chips"]
        assert unfounded(answer) == []


def test_a_hundred_thousand_chips_fail_every_half_hour() -> None:
    """12,500 nodes · 419 / (2,048 · 54 d) a day."""
    answer = dh.simulate_run(model="llama-3.1-405b", chips=100_000, days=2, runs=20)
    assert number(answer, "mttf_s") == pytest.approx(86_400 / (12_500 * 419 / 2048 / 54), rel=0.03)


def test_chips_without_work_are_said() -> None:
    answer = dh.simulate_run(model="llama-3.1-8b", chips=1000, days=2, runs=10)
    working = number(answer, "num_chips")
    assert any(f"{1000 - working:,.0f} of 1,000 chips stay idle" in note for note in answer.notes)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"sdc": "vote"},
        {"sdc": "checksum"},
        {"slow_hosts": "100 %", "slow_by": "300 %"},
        {"jitter": "20 %"},
        {"spares": 0},
        {"elastic": "kept"},
        {"days": None, "tokens": "20T", "planned_every": "6h", "failure_rate": "0.5"},
        {"days": None, "tokens": "20B", "failure_rate": "2", "seed": 3},
    ],
)
def test_the_headline_is_the_share_of_work_that_is_kept(said: dict[str, Any]) -> None:
    asked = {name: value for name, value in {**SMALL, **said}.items() if value is not None}
    answer = dh.simulate_run(**asked)
    kept, *lost = answer.tables[0].records()
    assert kept["share_fraction"] == pytest.approx(number(answer, "ettr_fraction"))
    assert float(kept["mean_s"]) / number(answer, "elapsed_s") == pytest.approx(
        number(answer, "ettr_fraction")
    )  # type: ignore[arg-type]
    assert sum(float(row["share_fraction"]) for row in lost) + number(
        answer, "ettr_fraction"
    ) == pytest.approx(1.0)  # type: ignore[arg-type]


def test_a_promise_counts_steps_that_wait_and_check() -> None:
    """Two replicas that vote do everything twice: no half is promised."""
    for said in ({"sdc": "vote"}, {"slow_hosts": "100 %", "slow_by": "100 %"}):
        assert dh.simulate_run(**{**SMALL, "runs": 10}, **said, ettr="50 %").verdict == "no"
        assert dh.simulate_run(**{**SMALL, "runs": 10}, **said, ettr="45 %").verdict == "yes"


def test_an_interval_that_was_said_is_not_called_the_best() -> None:
    said = dh.show_checkpoint(**LLAMA, interval="10min")
    assert "best is" not in said.headline
    assert "94.1 % is kept by the best: a copy to memory of another host" in said.headline
    assert any("no other is written" in note for note in said.notes)
    assert unfounded(said) == []


def test_the_best_interval_of_rare_failures_is_long() -> None:
    """√(2 · 5.03 s · 125,000 d): 3.8 days, and not every three hours."""
    rare = dh.show_checkpoint(model="llama-3.1-8b", chips=64, failure_rate=1e-6)
    assert number(rare, "remote_interval_s") == pytest.approx(3.8 * 86_400, rel=0.05)


@pytest.mark.parametrize("verb", [dh.show_checkpoint, dh.simulate_run])
def test_a_tier_that_costs_more_than_it_saves_is_left_out_and_said(verb: Any) -> None:
    more = {"days": 20, "runs": 50} if verb is dh.simulate_run else {}
    both, alone = (verb(**LLAMA, storage="2TB/s", tier=tier, **more) for tier in ("local,remote", "remote"))
    key = "ettr_fraction" if verb is dh.simulate_run else "checkpoint_ettr_fraction"
    assert number(both, key) == number(alone, key)
    assert any("a copy to local NVMe is left out" in note for note in both.notes)


def test_copies_that_stop_nothing_are_limited_by_steps_and_not_by_storage() -> None:
    free = dh.show_checkpoint(model="llama-3.1-70b", chips=1024, blocking="0 s")
    assert free.verdict == "yes"
    assert number(free, "best_s") >= number(free, "step_s")
    assert number(free, "checkpoint_bytes_per_s") < 1e12


def test_failures_that_leave_nothing_are_not_blamed_on_storage() -> None:
    answer = dh.show_checkpoint(model="llama-3.1-70b", chips=1024, failure_rate=90)
    assert answer.verdict == "no"
    assert "comes to nothing" in answer.headline
    assert "a failure comes every 7.5 s" in answer.binding


def test_a_run_that_comes_to_nothing_says_what_takes_its_time() -> None:
    said: dict[str, Any] = {"model": "llama-3.1-70b", "chips": 1024, "days": 20, "runs": 20}
    blocked = dh.simulate_run(**said, blocking="19d", planned_every="3h")
    planned = dh.simulate_run(**said, planned_every="1h", planned="1h")
    assert blocked.verdict == planned.verdict == "no"
    assert "stops it for 19 days" in blocked.binding
    assert "Planned stops of 60 min come every 60 min" in planned.binding


def test_planned_stops_write_copies_so_that_a_longer_interval_does_nothing() -> None:
    said: dict[str, Any] = {"model": "llama-3.1-70b", "chips": 1024, "days": 20, "runs": 50}
    long, longer = (dh.simulate_run(**said, interval=one) for one in ("5d", "30d"))
    assert number(long, "ettr_fraction") == number(longer, "ettr_fraction")
    for one in (long, longer):
        assert number(one, "closed_form_fraction") == pytest.approx(number(one, "ettr_fraction"), abs=0.02)
        assert any("planned stops come every" in note for note in one.notes)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {
                "days": None,
                "tokens": "50B",
                "interval": "8h",
                "planned_every": "0 s",
                "failure_rate": "0.03/day",
            },
            "of a run that goes on",
        ),
        ({"spares": 2, "elastic": "linear", "failure_rate": "0.05/day"}, "leaves out that replicas wait"),
        ({"days": None, "tokens": "2T", "spares": 1}, "a few of them, and long ones, decide"),
        (
            {
                "model": "llama-3.1-405b",
                "chips": 16_384,
                "storage": "1GB/s",
                "tier": "peer,remote",
                "preempted_every": "500d",
                "notice": "3h",
                "capacity_back": "0s",
            },
            "off here",
        ),
    ],
)
def test_where_the_closed_form_does_not_apply_it_is_said(said: dict[str, Any], words: str) -> None:
    asked = {"model": "llama-3.1-70b", "chips": 1024, "days": 20, "runs": 50, **said}
    answer = dh.simulate_run(**{name: value for name, value in asked.items() if value is not None})
    assert abs(number(answer, "difference_fraction")) > 0.01
    assert any("the closed form" in note and words in note for note in answer.notes)


def test_slow_storage_is_said_of_a_run_too() -> None:
    answer = dh.simulate_run(**LLAMA, days=5, storage="1GB/s", tier="remote", runs=20)
    assert any("storage binds" in note for note in answer.notes)


@pytest.mark.parametrize("also", [{"spares": 0}, {"restart": "10min"}])
def test_hot_spares_that_change_nothing_are_refused(also: dict[str, Any]) -> None:
    with pytest.raises(DatahallError) as caught:
        dh.simulate_run(**SMALL, hot_spares=True, **also)
    assert "hot_spares" in str(caught.value)


def test_a_restart_that_is_said_whole_is_a_loss_of_its_own() -> None:
    found = dh.simulate_run(**SMALL, restart="20min").results
    assert "restarts_s" in found
    assert not {"warmup_s", "detect_s", "reschedule_s", "load_s"} & set(found)
    assert "warmup_s" in dh.simulate_run(**SMALL).results


WEEK: dict[str, Any] = {"model": "llama-3.1-8b", "chips": 64, "days": 3, "runs": 50}


def test_a_copy_that_stops_the_run_for_longer_than_it_lasts_is_refused() -> None:
    with pytest.raises(
        ScenarioError, match="stops the run for 10 days, and it is over after 3 days"
    ) as caught:
        dh.simulate_run(**WEEK, blocking="10d")
    assert caught.value.field == "blocking"
    long = dh.simulate_run(**WEEK, blocking="2d", interval="2d")
    assert number(long, "elapsed_s") == 3 * 86_400.0


def test_a_run_shorter_than_a_step_is_refused_for_that() -> None:
    with pytest.raises(ScenarioError, match="its first step after") as caught:
        dh.simulate_run(**{**WEEK, "days": 1e-9})
    assert caught.value.field == "days"


def test_a_run_that_ends_in_its_first_restart_is_none_for_the_closed_form() -> None:
    notes = dh.simulate_run(**WEEK, detect="10d").notes
    assert any("does not apply: a restart takes 10" in note and "over after 3 days" in note for note in notes)
    assert not any("does not apply" in note for note in dh.simulate_run(**WEEK).notes)


def test_what_is_short_of_all_is_not_said_to_be_all() -> None:
    said = dh.simulate_run(**SMALL, ettr="99.99 %")
    assert "99.99 % are promised" in said.headline
    assert "99.99 % is out of reach" in said.binding
    plan = dh.plan_train(model="llama-3.1-8b", tokens="1T", chips=64, spares_enough="99.9999 %")
    assert "99.9999 % of the time" in str(plan.tables)


def test_less_than_one_interruption_is_not_none() -> None:
    found = dh.simulate_run(**WEEK, restart="0 s")
    mean = number(found, "num_interruptions")
    assert 0.0 < mean < 0.95
    assert f"{mean:.2g} interruptions" in found.headline


@pytest.mark.parametrize("name", ["failure_rate", "job_failures", "shock_rate"])
def test_a_rate_of_next_to_never_is_refused(name: str) -> None:
    with pytest.raises(DatahallError) as caught:
        dh.simulate_run(**WEEK, **{name: 1e-30})
    assert len(str(caught.value)) < 300
    rare = dh.simulate_run(**WEEK, **{name: 1e-9})
    assert all(len(word) < 40 for word in f"{rare.headline} {rare.binding} {' '.join(rare.notes)}".split())


def test_hot_spares_cost_the_share_of_a_move_that_finds_none_free() -> None:
    """Of few spares some are in repair: the closed form counts the rest of the moves, as the simulation does."""
    asked = {**SMALL, "failure_rate": 0.05, "reschedule": "30min"}
    cold, some, all_free = (
        dh.simulate_run(**asked, spares=64),
        dh.simulate_run(**asked, spares=3, hot_spares=True),
        dh.simulate_run(**asked, spares=64, hot_spares=True),
    )
    assert number(all_free, "restart_s") < number(some, "restart_s") < number(cold, "restart_s")
    assert "reschedule_s" not in all_free.results
    assert 0.0 < number(some, "reschedule_s") < number(cold, "reschedule_s")
