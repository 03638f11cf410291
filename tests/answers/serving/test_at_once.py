"""Requests that all come at once: no warm-up is taken of them, nothing shapes how they come, and what follows runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.cli.main import main
from datahall.errors import ScenarioError, spelled
from datahall.inference.fleet.span import expected_s
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.traffic import Traffic

SHELF = Catalog(user=False)
ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "chip": "h200-sxm",
    "rate": "inf",
    "requests": 60,
    "isl": 300,
    "osl": 100,
}
SHAPING: dict[str, dict[str, Any]] = {
    "burstiness": {"burstiness": 2},
    "hourly": {"hourly": [1.0] * 23 + [2.0]},
    "swing": {"swing": "50 %"},
    "busy": {"busy": "10 s"},
    "lull": {"lull": "10 s"},
    "duration": {"duration": "10 s"},
}


def simulated(**said: Any) -> dh.Answer:
    return dh.simulate_serve(**{**ASKED, **said}, catalog=SHELF)


def runs(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints that is not refused."""
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line)[1:])
    printed = capsys.readouterr()
    assert ended.value.code in (0, 1), printed.err
    return printed.out


@pytest.mark.parametrize("name", SHAPING)
@pytest.mark.parametrize("requests", [60, None])
def test_what_shapes_arrivals_is_refused_where_all_come_at_once(name: str, requests: int | None) -> None:
    with pytest.raises(ScenarioError) as refused:
        simulated(requests=requests, **SHAPING[name])
    assert refused.value.field == name
    assert f"{name} does nothing here: all requests come at once" in spelled(refused.value.message)


def test_the_same_inputs_stand_beside_a_finite_rate() -> None:
    for name, said in SHAPING.items():
        if name not in ("busy", "lull"):  # which stand together
            assert simulated(rate=20, **said).results["num_arrived"], name
    assert simulated(rate=20, **SHAPING["busy"], **SHAPING["lull"]).results["num_arrived"]


def test_no_time_passes_in_which_they_come() -> None:
    """Whatever a duration would be, none of it is left out as a warm-up."""
    burst = Traffic(
        arrivals=Arrivals(rate_per_s=float("inf"), gaps="at-once"), num_requests=5, duration_s=60.0
    )
    assert expected_s(burst) == 0.0


def test_a_warm_up_that_leaves_nobody_is_to_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """More requests would come before its end as well."""
    found = simulated(warmup="1 s")
    assert found.headline.startswith("No request was")
    assert "warmup" in found.binding
    assert "requests=" not in found.binding
    assert "more requests" not in found.binding
    assert "No request was" not in runs(found.next_commands[0], capsys)


def test_a_run_that_ends_before_the_burst_does_is_followed_by_the_whole_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What ended by then, over that time, is no rate to plan for."""
    whole = simulated()
    half_s = float(whole.results["duration_s"]) / 2
    found = simulated(osl={"shape": "uniform", "low": 10, "high": 190}, until=f"{half_s} s")
    assert found.results["num_unfinished"]
    assert found.results["num_finished"]
    assert not any("plan serve" in line for line in found.next_commands)
    assert "had not ended" not in runs(found.next_commands[0], capsys)
    assert any("plan serve" in line for line in whole.next_commands)


def test_a_trace_that_ends_in_its_warm_up_is_followed_by_a_run_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "\n".join(f"2023-11-16 18:17:0{second}.0,300,20" for second in range(3))
    trace = tmp_path / "trace.csv"
    trace.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}\n", encoding="utf-8")
    found = dh.simulate_serve(
        "llama-3.1-8b", chip="h200-sxm", trace=str(trace), requests=3, duration="1 h", catalog=SHELF
    )
    assert found.headline.startswith("No request was")
    assert "No request was" not in runs(found.next_commands[0], capsys)


@pytest.mark.parametrize("rate", ["inf", 5])
def test_nothing_that_is_refused_follows_a_run_that_served_nobody(
    rate: str | int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = simulated(rate=rate, chip="l4", isl=100_000, osl=100)
    assert found.headline.startswith("No request was")
    for line in found.next_commands:
        if "validate" not in line:
            runs(line, capsys)
    assert not any("rate 0.0" in line for line in found.next_commands)
