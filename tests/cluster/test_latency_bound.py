"""A collective is bound by latency where that is at least half of its time, and by its wires below."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.cluster.collective import time_collective
from datahall.scenario.sections.fabric import FabricDesign

CATALOG = Catalog(user=False)


@pytest.mark.parametrize("num_chips", [8, 64])
def test_latency_binds_from_half_of_the_time_on(num_chips: int) -> None:
    cluster = cluster_from(FabricDesign(chips=num_chips), CATALOG)
    shares = {"latency": [], "wires": []}  # type: dict[str, list[float]]
    for size_bytes in np.geomspace(1e3, 1e9, 240):
        found = time_collective(cluster, "all-gather", float(size_bytes))
        kind = "latency" if found.bound.kind == "latency" else "wires"
        shares[kind].append(found.choice.latency_s / found.choice.time_s)
    assert min(shares["latency"]) >= 0.5 > max(shares["wires"])
    assert min(shares["latency"]) < 0.55  # sizes lie close enough to tell
    assert max(shares["wires"]) > 0.45
