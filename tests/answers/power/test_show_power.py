"""What `show power` answers: verdicts, figures against each other, and offers that are enough and no more."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from typing import Any

import pytest
from tests.answers.claims import garbled, unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer, LineChart

PLAIN: dict[str, Any] = {"model": "llama-3.1-8b", "chips": 16_384, "tp": 2, "pp": 1}


@pytest.fixture(scope="module")
def plain() -> Answer:
    return dh.show_power(**PLAIN, tokens="1T")


@pytest.mark.parametrize(
    ("said", "verdict", "words"),
    [
        (PLAIN, "yes", "16,384 ×"),
        ({"model": "llama-3.1-8b", "chips": 144, "chip": "gb200"}, "yes", "144 ×"),
        # 120 kW, and air carries 40 kW away
        ({"model": "llama-3.1-8b", "chips": 144, "chip": "gb200", "cooling": "air"}, "no", "No: air does not cool"),
        # 405e9 weights on tensor parallel 8 alone: some 50 GB of them in bf16, with gradients and states far above 80
        ({"model": "llama-3.1-405b", "chips": 64, "tp": 8, "pp": 1}, "no", "do not run"),
        ({**PLAIN, "swing_limit": "1MW"}, "no", "No for"),
        ({**PLAIN, "site_limit": "15MW"}, "no", "No for"),
        ({**PLAIN, "ramp_limit": "10kW/s"}, "no", "No for"),
        ({**PLAIN, "swing_limit": "20MW", "site_limit": "30MW"}, "yes", "16,384 ×"),
    ],
)  # fmt: skip
def test_a_site_that_cannot_be_is_a_no_in_words_and_in_the_verdict(
    said: dict[str, Any], verdict: str, words: str
) -> None:
    answer = dh.show_power(**said)
    assert answer.verdict == verdict
    assert words in answer.headline
    assert answer.headline.startswith("No") == (verdict == "no")
    assert unfounded(answer) == []
    assert not garbled(f"{answer.headline} {answer.binding} {' '.join(answer.notes)}")


def test_a_store_is_emptied_as_often_as_its_power_empties_its_energy(plain: Answer) -> None:
    per_s = number(plain, "even_power_w") / number(plain, "even_energy_j")
    assert number(plain, "even_rate_per_hour") == pytest.approx(3600 * per_s)


def test_a_run_takes_its_tokens_over_their_rate(plain: Answer) -> None:
    """1 T tokens in whole steps; what it draws so long is its energy, and a day's carbon in proportion its carbon."""
    run_s, step_s = number(plain, "run_s"), number(plain, "step_s")
    num_steps = round(run_s / step_s)
    assert run_s == pytest.approx(num_steps * step_s)
    tokens = number(plain, "tokens_per_s") * step_s
    assert (num_steps - 1) * tokens < 1e12 <= num_steps * tokens * (1 + 1e-9)
    assert number(plain, "run_j") == pytest.approx(number(plain, "site_w") * run_s)
    days = run_s / 86_400
    assert number(plain, "run_kg") == pytest.approx(days * number(plain, "day_kg"))
    assert number(plain, "step_j") / number(plain, "step_s") == pytest.approx(number(plain, "site_w"))


def test_a_kilowatt_hour_emits_what_its_grid_does(plain: Answer) -> None:
    """369 g/kWh in the United States, over a day of 24 hours."""
    kwh = number(plain, "site_w") / 1000 * 24
    assert number(plain, "day_kg") == pytest.approx(0.369 * kwh, rel=0.002)


def test_a_battery_slows_the_ramps_that_are_said(plain: Answer) -> None:
    stored = dh.show_power(**PLAIN, battery=int(number(plain, "even_batteries")))
    assert number(stored, "fastest_w_per_s") < 0.01 * number(plain, "fastest_w_per_s")
    assert number(stored, "swing_w") < 0.01 * number(plain, "swing_w")
    assert number(stored, "raw_swing_w") == pytest.approx(number(plain, "swing_w"))
    as_asked = stored.tables[2].records()[-1]
    assert as_asked["remedy"] == "as asked"
    assert as_asked["swing_w"] == number(stored, "swing_w")
    assert as_asked["fastest_ramp_w_per_s"] == number(stored, "fastest_w_per_s")


@pytest.mark.parametrize("coherence", [1.0, 0.1, 0.01])
def test_the_battery_that_is_offered_evens_the_step_out_and_one_less_does_not(coherence: float) -> None:
    """Where nodes are not in step a stop of all of them takes many more containers than a step."""
    said = {**PLAIN, "coherence": coherence}
    answer = dh.show_power(**said)
    (line,) = (one for one in answer.next_commands if "--battery" in one)
    words = shlex.split(line)
    num = int(words[words.index("--battery") + 1])
    raw_w = number(answer, "swing_w")
    assert number(dh.show_power(**said, battery=num), "swing_w") < 0.001 * raw_w
    if num > 1:
        assert number(dh.show_power(**said, battery=num - 1), "swing_w") > 0.001 * raw_w


def test_a_stop_takes_more_than_a_step_where_nodes_are_not_in_step() -> None:
    answer = dh.show_power(**PLAIN, coherence=0.01)
    assert number(answer, "even_batteries") < number(answer, "stop_batteries")


@pytest.mark.parametrize("limit_mw", [4, 8])
def test_the_floor_that_is_offered_keeps_the_swing_and_a_point_less_does_not(limit_mw: int) -> None:
    said = {**PLAIN, "swing_limit": f"{limit_mw}MW"}
    notes = " ".join(dh.show_power(**said).notes)
    found = re.search(r"power.floor of ([\d.]+) %", notes)
    assert found is not None
    percent = float(found[1])
    assert dh.show_power(**said, power_floor=f"{percent:g} %").verdict == "yes"
    assert dh.show_power(**said, power_floor=f"{percent - 1:g} %").verdict == "no"


def test_what_all_chips_leave_at_once_goes_from_what_the_site_draws(plain: Answer) -> None:
    rows = plain.tables[3].records()
    assert {row["event"] for row in rows} == {"checkpoint", "stopped"}
    for row in rows:
        fell_w, to_w = row["falls_by_w"], row["to_w"]
        assert isinstance(fell_w, float)
        assert isinstance(to_w, float)
        assert 0 < to_w < number(plain, "drawn_w")
        assert fell_w + to_w == pytest.approx(number(plain, "drawn_w"))


@pytest.mark.parametrize("zero", [1, 2])
def test_without_a_pipeline_nothing_waits_in_one(zero: int) -> None:
    """What follows the last backward is the exchange of its gradients, so a step of one stage has no gaps."""
    answer = dh.show_power(**PLAIN, zero=zero)
    times_s = {row["phase"]: row["time_s"] for row in answer.tables[1].records()}
    assert "waiting in the pipeline" not in times_s
    assert times_s["gradients and parameters"] > 0  # type: ignore[operator]


def test_a_site_is_the_sum_of_its_parts_and_a_chip_its_share(plain: Answer) -> None:
    rows = plain.tables[0].records()
    for column in ("provisioned_w", "drawn_w"):
        *parts_w, site_w = (float(row[column]) for row in rows)  # type: ignore[arg-type]
        assert sum(parts_w) == pytest.approx(site_w) == pytest.approx(number(plain, column))
    assert number(plain, "drawn_w") == pytest.approx(number(plain, "pue_ratio") * number(plain, "it_w"))
    assert number(plain, "chip_site_w") == pytest.approx(number(plain, "site_w") / 16_384)
    assert number(plain, "swing_w") == pytest.approx(number(plain, "peak_w") - number(plain, "low_w"))


def test_the_swing_by_frequency_begins_with_the_step_and_rises(plain: Answer) -> None:
    (chart,) = (one for one in plain.charts if "by frequency" in one.title)
    assert isinstance(chart, LineChart)
    (line,) = chart.series
    assert line.x[0] == pytest.approx(1 / number(plain, "step_s"))
    assert all(low < high for low, high in pairwise(line.x))
    assert max(line.y) == pytest.approx(line.y[line.x.index(number(plain, "dominant_hz"))])


@pytest.mark.parametrize("facility", ["google", "survey-average"])
def test_a_building_that_does_nothing_is_not_named_by_the_pue(facility: str) -> None:
    """Beside a PUE a building says how much of it are electrical losses, or does nothing."""
    notes = dh.show_power(model="llama-3.1-8b", chips=64, facility=facility, pue=1.5).notes
    idle = any("facility does nothing here" in note for note in notes)
    named = any("with electrical losses as of" in note for note in notes)
    assert idle != named
