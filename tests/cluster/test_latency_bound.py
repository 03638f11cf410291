"""A collective is said to be bound by latency where waiting takes half of its time or more."""

from __future__ import annotations

import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.cluster.collective import time_collective
from datahall.scenario.sections.fabric import FabricDesign

SHELF = Catalog(user=False)


@pytest.mark.parametrize(("share", "kind"), [(0.49, "links"), (0.5001, "latency"), (0.51, "latency")])
def test_half_of_the_time_is_the_bound(share: float, kind: str) -> None:
    """On a torus one algorithm runs at every size, and its hops run beside its bytes, so
    the size at which waiting has a share of the time follows from two times."""
    machine = cluster_from(FabricDesign(topology="torus", chip="tpu-v5p", chips=64), SHELF)
    empty_s, large_s = (time_collective(machine, "all-gather", size).choice.time_s for size in (1e-6, 1e9))
    found = time_collective(machine, "all-gather", empty_s / share / (large_s / 1e9))
    assert found.choice.time_s == pytest.approx(empty_s / share, rel=1e-6)
    assert found.bound.kind == kind
