"""One figure, one function: what is shown in two places of one answer, or in two answers, is one number."""

from __future__ import annotations

import pytest
from tests.results import number

import datahall as dh

JOB = {"model": "llama-3.1-8b", "chips": 64, "chip": "h100-sxm", "tokens": "1T", "global_batch": 1024}


@pytest.mark.parametrize(
    "more", [{}, {"power_floor": "80 %"}, {"battery": 1, "ramp_cap": "1 kW/s"}, {"capacitors": "60 J"}]
)
def test_what_a_site_draws_with_its_remedies_is_one_figure(more: dict[str, object]) -> None:
    found = dh.show_power(**JOB, **more)  # type: ignore[arg-type]
    site_w = number(found, "site_w")
    assert number(found, "token_j") == site_w / number(found, "tokens_per_s")
    assert number(found, "run_j") == site_w * number(found, "run_s")
    burnt = site_w - number(found, "drawn_w")
    assert burnt >= 0.0
    assert bool(burnt) == (
        "power_floor" in more or "ramp_cap" in more or "battery" in more or "capacitors" in more
    )


def test_the_time_of_all_steps_of_a_plan_is_that_of_its_power() -> None:
    """1T tokens in steps of 1,024 sequences of 8,192 are 119,210 steps, the last of them not full."""
    plan = dh.plan_train(**JOB)
    power = dh.show_power(**JOB)
    assert plan.figure is not None
    steps = plan.figure.at("time of the steps")
    assert steps.at("steps").value == -(-(10**12) // (1024 * 8192)) == 119_210
    assert steps.value == number(power, "run_s")
    assert steps.value == pytest.approx(number(plan, "duration_s"), rel=1e-14)
    assert number(plan, "run_j") == number(plan, "site_w") * steps.value
