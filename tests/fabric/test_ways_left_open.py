"""Flows that choose their way when they start: how many ways each looks at."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.fabric.routing import policies
from datahall.fabric.routing.policies import spread
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Wire


@pytest.mark.parametrize(
    ("steps", "each"), [(10**9, 64), (16 * 10, 10), (16 * 64, 64), (16 * 3 + 15, 3), (5, 2)]
)
def test_many_flows_look_at_fewer_ways_each(steps: int, each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen flows between pods share what may be looked at in all; with one way alone there would be no choice."""
    monkeypatch.setattr(policies, "MOST_STEPS", steps)
    fabric = fat_tree(1024, Wire(50e9), radix=16)
    source = np.arange(16, dtype=np.int32)
    found = spread(fabric, source, 1023 - source, "adaptive", np.random.default_rng(0))
    assert found.ways_offsets is not None
    assert np.diff(found.ways_offsets).tolist() == [each] * 16
