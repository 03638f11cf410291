"""What `show power` says, promises and refuses."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.cli.main import run as command
from datahall.power.swing.spectrum import RISKY_HZ
from datahall.scenario.sections.operations.site import Site

SMALL: dict[str, Any] = {"model": "llama-3.1-70b", "chips": 1024}


@pytest.mark.parametrize(
    ("said", "limit_mw"),
    [
        ({"chips": 4096, "tp": 8, "pp": 4, "global_batch": 1024}, 3.9),
        ({"chips": 4096, "tp": 8, "pp": 4, "global_batch": 1024}, 1.0),
        ({"chips": 1024, "tp": 8}, 1.0),
        ({"chips": 1024, "tp": 8, "dp": 128}, 1.0),
        ({"chips": 1024}, 0.8),
    ],
    ids=str,
)
def test_what_keeps_a_limit_of_the_site_is_followed_and_keeps_it(
    said: dict[str, Any], limit_mw: float, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = dh.show_power(model="llama-3.1-70b", **said, site_limit=f"{limit_mw}MW")
    assert broken.verdict == "no"
    line = broken.next_commands[0]
    assert " --chips " in line
    assert command([*shlex.split(line)[1:], "--json"]) == 0, line
    kept = json.loads(capsys.readouterr().out)
    assert kept["results"]["peak_w"] <= limit_mw * 1e6
    assert kept["results"]["num_idle_chips"] == 0 or "tp" not in said


def test_the_command_after_a_swing_that_is_too_large_is_what_burns_the_least() -> None:
    plain = dh.show_power(**SMALL)
    broken = dh.show_power(**SMALL, swing_limit=f"{0.98 * number(plain, 'swing_w')}W")
    (line,) = [note for note in broken.notes if "swing_limit is kept by" in note]
    first = line.split(" is kept by ")[1].split(" of ")[0]
    assert f" --{first.replace('_', '-')} " in broken.next_commands[0]
    costs = [cost.split(")")[0] for cost in line.split("(which costs ")[1:]]
    assert len(costs) >= 2
    assert costs == sorted(costs, key=watts)


def watts(said: str) -> float:
    value, unit = said.split(" ")
    return float(value) * {"W": 1.0, "kW": 1e3, "MW": 1e6}[unit]


def test_a_starving_job_draws_less_and_its_tokens_cost_more() -> None:
    """ZeRO 3 over a slow network: the same work in forty times the time."""
    said: dict[str, Any] = {**SMALL, "tp": 4, "zero": 3, "global_batch": 512}
    fast, slow = (dh.show_power(**said, nic=f"{rate}GB/s") for rate in (50, 1))
    assert number(slow, "step_s") == pytest.approx(40 * number(fast, "step_s"), rel=0.01)
    assert number(fast, "chip_w") > 600
    assert number(slow, "chip_w") < 300
    assert 15 * number(fast, "token_j") < number(slow, "token_j") < 40 * number(fast, "token_j")


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ({"tp": 8}, 1.0),
        ({"tp": 8, "coherence": 0}, 128**-0.5),  # of 128 servers that know nothing of each other
        ({"tp": 8, "coherence": 0.25}, (0.25 + 0.75 / 128) ** 0.5),
    ],
)
def test_chips_that_swing_at_different_times_are_not_said_to_swing_at_once(
    said: dict[str, Any], share: float
) -> None:
    binding = dh.show_power(**SMALL, **said).binding
    assert ("all at the same time." in binding) == (share == 1.0)
    if share < 1.0:
        assert "though not all at the same time" in binding
        assert float(binding.split("swings by ")[1].split(" %")[0]) == pytest.approx(100 * share, rel=0.03)


def test_stages_that_wait_for_each_other_swing_less_than_all_together() -> None:
    """Of 16 stages some always wait: 9.4 MW at the chips would be all of them."""
    answer = dh.show_power("llama-3.1-405b", chips=16_384, tp=8, pp=16)
    assert "though not all at the same time" in answer.binding
    assert 40 < float(answer.binding.split("swings by ")[1].split(" %")[0]) < 60


def test_the_frequencies_that_are_said_are_those_that_are_counted() -> None:
    answer = dh.show_power(**SMALL)
    low, high = RISKY_HZ
    assert f"between {low:g} and {high:g} Hz" in answer.binding
    assert any(f"between {low:g} and {high:g} Hz" in chart.title for chart in answer.charts)
    remedies = next(one for one in answer.tables if one.title.startswith("remedies"))
    assert any(f"{low:g}–{high:g} Hz" in column.name for column in remedies.columns)


def test_defaults_of_help_are_those_that_act(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["show", "power", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"[default: {Site().battery_type}]" in shown


def test_a_site_whose_nameplates_are_above_its_limit_says_so() -> None:
    plain = dh.show_power(**SMALL)
    between = (number(plain, "peak_w") + number(plain, "provisioned_w")) / 2
    kept = dh.show_power(**SMALL, site_limit=f"{between}W")
    assert kept.verdict == "yes"
    assert any("site_limit is kept by what this job draws" in note for note in kept.notes)
    above = dh.show_power(**SMALL, site_limit=f"{1.01 * number(plain, 'provisioned_w')}W")
    assert not any("site_limit is kept" in note for note in above.notes)
    for answer in (plain, kept):
        assert "at its peak" in answer.tables[0].note


def test_a_battery_of_ones_own_is_named_counted_and_cited(tmp_path: Any) -> None:
    (tmp_path / "ours.toml").write_text(
        """
[buffer.ours]
source = { title = "its maker", date = "2026-01", kind = "datasheet" }
title = "Our flywheel"
form = "battery"
unit = "wheel"
energy = "1 MWh"
power = "100 kW"
round_trip = "90 %"
depth = "100 %"
""",
        encoding="utf-8",
    )
    catalog = Catalog([tmp_path], user=False)
    answer = dh.show_power(**SMALL, battery_type="ours", catalog=catalog)
    assert "wheels of Our flywheel" in answer.headline
    assert any(one.title == "its maker" for one in answer.sources)
    assert number(answer, "even_batteries") == -(-number(answer, "even_power_w") // 100e3)


def figures(answer: Answer, title: str) -> list[str]:
    chart = next(one for one in answer.charts if one.title.startswith(title))
    return [one.name for one in chart.series]  # type: ignore[union-attr]


def test_pictures_name_what_they_draw() -> None:
    plain, asked = dh.show_power(**SMALL), dh.show_power(**SMALL, ramp_cap="1MW/s")
    assert figures(plain, "power of the site through") == ["as it is", "with capacitors", "with a battery"]
    assert figures(asked, "power of the site through") == ["as it is", "as asked"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"model": "llama-3.1-8b", "chips": 144, "chip": "gb200", "cooling": "air"}, "does not cool"),
        ({"model": "llama-3.1-405b", "chips": 64, "tp": 8, "pp": 1}, "do not run"),
        ({**SMALL, "swing_limit": "1kW"}, "its power swings by"),
    ],
    ids=["too hot", "too large", "too much"],
)
def test_a_site_that_cannot_be_is_a_no(said: dict[str, Any], why: str) -> None:
    answer = dh.show_power(**said)
    assert answer.verdict == "no"
    assert answer.headline.startswith("No")
    assert why in answer.headline


def test_results_are_of_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    plain = dh.show_power(**SMALL, tokens="1T")
    rate = 3600 * number(plain, "even_power_w") / number(plain, "even_energy_j")
    assert number(plain, "even_rate_per_hour") == pytest.approx(rate)
    assert number(plain, "run_s") == pytest.approx(1e12 / number(plain, "tokens_per_s"), rel=1e-4), (
        "whole steps"
    )
    (line, *_) = plain.next_commands
    assert " --battery " in line
    assert command([*shlex.split(line)[1:], "--json"]) == 0
    evened = json.loads(capsys.readouterr().out)["results"]
    assert evened["swing_w"] < 0.001 * number(plain, "swing_w")
    assert evened["fastest_w_per_s"] < 0.001 * number(plain, "fastest_w_per_s")
    assert evened["raw_swing_w"] == pytest.approx(number(plain, "swing_w"))
