"""What is asked of a queue: which policies an input is for, and what none of them uses."""

from __future__ import annotations

import pytest

from datahall.scenario.sections.operations import scheduling as section
from datahall.scenario.sections.operations.scheduling import Scheduler


def test_time_in_which_use_decays_is_for_every_policy_that_orders_by_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Scheduler(policies=("gang",), half_life_s=3600.0)
    assert len(list(asked.problems())) == 1
    assert "half_life_s" not in asked.usual()
    monkeypatch.setattr(section, "BY_USE", ("fair-share", "gang"))
    assert list(asked.problems()) == []
    assert "half_life_s" in asked.usual()
