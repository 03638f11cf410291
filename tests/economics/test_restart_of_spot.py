"""What a restart on spot capacity takes is what a restart of a run takes: its parts are added up in one place."""

from __future__ import annotations

import pytest

from datahall.breakdown import assumed
from datahall.economics.spot import effective_price
from datahall.reliability.recovery import Recovery, said_recovery
from datahall.scenario.sections.operations.run import Recovering

PRICE = assumed("spot price", 1.0, "usd_per_hour", "a round number")
PARTS = (
    Recovering(),
    Recovering(detect_s=600.0),
    Recovering(reschedule_s=1200.0, warmup_s=0.0),
    Recovering(restart_s=900.0),
)


@pytest.mark.parametrize("back", PARTS)
def test_a_restart_is_that_of_a_run(back: Recovering) -> None:
    restart = effective_price(PRICE, 4, back, None).at("goodput on spot", "restart")
    assert restart.value == said_recovery(back).fixed_s


def test_a_part_that_a_restart_gets_is_paid_for_on_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = effective_price(PRICE, 4, Recovering(), None).value
    monkeypatch.setattr(Recovery, "fixed_s", property(lambda one: one.detect_s + one.back_again_s + 1920.0))
    assert effective_price(PRICE, 4, Recovering(), None).value > plain
