"""Nodes in step, and servers that are bought whole."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import load
from datahall.power.site import lone_machines
from datahall.power.swing.trace import Trace, together

CATALOG = load()


@pytest.mark.parametrize(("rho", "shrunk"), [(1.0, 1.0), (0.0, 0.25), (0.2, 0.5)])
def test_nodes_swing_about_their_mean_the_same_way_up(rho: float, shrunk: float) -> None:
    """Of 16 nodes √(ρ + (1 − ρ)/16) of the swing are left; a dip stays a dip."""
    dip = Trace(period_s=1.0, power_w=np.array([100.0, 100.0, 100.0, 20.0]))
    found = together(dip, coherence_fraction=rho, num_nodes=16)
    assert found.mean_w == pytest.approx(80.0)
    assert found.peak_w == pytest.approx(80.0 + 20.0 * shrunk)
    assert found.low_w == pytest.approx(80.0 - 60.0 * shrunk)


@pytest.mark.parametrize(("chips", "servers"), [(1, 1), (8, 1), (9, 2), (1025, 129)])
def test_chips_that_no_network_joins_come_in_whole_servers(chips: int, servers: int) -> None:
    assert lone_machines(CATALOG.chip("h100-sxm"), CATALOG, chips).num_servers == servers
