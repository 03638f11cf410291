"""Services that make no sense are refused with the input at fault; those beside them are served."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError
from datahall.inference.engine.build import engine_of
from datahall.inference.fleet.service import Service
from datahall.inference.fleet.summary import is_scaled
from datahall.scenario.sections.deployment import Deployment

Read = Callable[[str], Service]
ROOT = 'version = 1\nmodel = "llama-3.1-8b"\n'
POOL = '[[deployment]]\nchip = "h100-sxm"\n'
STREAM = "[[traffic]]\nisl = 200\nosl = 40\nrate = 5\nrequests = 300\n"
USERS = "[[traffic]]\nisl = 200\nosl = 40\nusers = 5\nrequests = 300\n"


def refused(read: Read, text: str) -> str:
    with pytest.raises(DatahallError) as caught:
        read(ROOT + text)
    return str(caught.value)


def test_users_come_alone(read: Read) -> None:
    assert "users" in refused(read, POOL + STREAM + USERS)
    assert len(read(ROOT + POOL + USERS).streams) == 1
    assert len(read(ROOT + POOL + STREAM + STREAM).streams) == 2


def test_a_fleet_starts_with_no_more_replicas_than_it_may_have(read: Read) -> None:
    rule = '[router]\nautoscale = "1..3:8"\n'
    assert "more than the 3 allowed" in refused(read, POOL + "replicas = 4\n" + STREAM + rule)
    found = read(ROOT + POOL + "replicas = 3\n" + STREAM + rule).fleet
    assert found.autoscaling is not None
    assert (found.autoscaling.least, found.autoscaling.most, found.autoscaling.target) == (1, 3, 8.0)


def test_a_wait_is_of_dynamic_batching_alone(shelf: Catalog) -> None:
    chip = shelf.chip("h100-sxm")
    with pytest.raises(ScenarioError, match="does nothing here") as caught:
        engine_of(Deployment(chip="h100-sxm", wait_s=0.1), chip)
    assert caught.value.field == "wait"
    made = engine_of(Deployment(chip="h100-sxm", wait_s=0.1, batching="dynamic"), chip)
    assert (made.batching, made.wait_s) == ("dynamic", 0.1)
    assert engine_of(Deployment(chip="h100-sxm", max_sequences=7), chip).max_sequences == 7


@pytest.mark.parametrize(
    ("starting", "active", "scaled"),
    [([0, 0], [2, 2], False), ([0, 1], [2, 2], True), ([0, 0], [2, 3], True), ([0, 0], [3, 2], True)],
)
def test_a_fleet_was_scaled_when_a_replica_started_or_stopped(
    starting: list[int], active: list[int], scaled: bool
) -> None:
    found: Any = SimpleNamespace(num_starting=np.array(starting), num_active=np.array(active))
    assert is_scaled(found) == scaled
