"""One name is one figure: of checkpoints, of runs with slow hosts, and of plans with idle chips."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results import number

import datahall as dh

SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "chips": 512, "runs": 50, "days": 10}


@pytest.mark.parametrize("interval", ["30s", "20min", "5h"])
def test_the_best_interval_is_not_the_one_that_was_said(interval: str) -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-405b", "chips": 16_384, "tier": "remote", "storage": "2TB/s"}
    plain, said = dh.show_checkpoint(**asked), dh.show_checkpoint(**asked, interval=interval)
    assert number(said, "best_s") == pytest.approx(number(plain, "best_s"))
    assert number(said, "remote_interval_s") != pytest.approx(number(said, "best_s"))
    assert number(said, "checkpoint_ettr_fraction") < number(plain, "checkpoint_ettr_fraction")
    bytes_per_s = number(said, "checkpoint_bytes") / number(said, "remote_interval_s")
    assert number(said, "checkpoint_bytes_per_s") == pytest.approx(bytes_per_s)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"slow_hosts": "1%"},
        {"jitter": "2%"},
        {"sdc": "replay"},
        {"slow_hosts": "5%", "slow_by": "30%", "sdc": "checksum"},
    ],
)
def test_tokens_are_rate_times_effective_time(more: dict[str, str]) -> None:
    """What slows steps is counted once: in the effective time."""
    answer = dh.simulate_run(**SMALL, **more)
    expected = number(answer, "tokens_per_s") * number(answer, "elapsed_s") * number(answer, "ettr_fraction")
    assert number(answer, "trained_tokens") == pytest.approx(expected, rel=1e-9)
    plain = dh.simulate_run(**SMALL)
    for name in ("step_s", "tokens_per_s", "mfu_fraction"):
        assert number(answer, name) == number(plain, name)
    assert (number(answer, "slowed_step_s") > number(answer, "step_s")) == bool(more)


@pytest.mark.parametrize("chips", [100, 130])
def test_a_plan_with_idle_chips_draws_what_its_site_does(chips: int) -> None:
    """Under the names that `show power` of the same chips has."""
    plan = dh.plan_train(model="llama-3.1-8b", chips=chips, tokens="1T")
    site = dh.show_power(model="llama-3.1-8b", chips=chips, tokens="1T")
    assert number(plan, "num_idle_chips") > 0
    for name in ("provisioned_w", "site_w", "peak_w", "swing_w", "token_j", "run_j", "run_kg"):
        assert number(plan, name) == pytest.approx(number(site, name), rel=1e-9), name
    assert 0 < number(plan, "idle_w") < number(plan, "site_w")
    assert number(plan, "run_j") == pytest.approx(
        number(plan, "site_w") * number(plan, "duration_s"), rel=1e-6
    )
    assert number(plan, "token_j") == pytest.approx(number(plan, "run_j") / 1e12, rel=1e-2)
