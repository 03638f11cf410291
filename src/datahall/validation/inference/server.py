"""The greatest rate that a replica holds under limits on its latencies: what an MLPerf Server run is tuned to.

Near that rate the latencies themselves say little: a few per cent of capacity make 30 ms per token into 150 ms.
"""

from __future__ import annotations

import numpy as np

from datahall.events import stream
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.simulation.simulate import simulate_serving
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.requests import Requests

BISECTIONS = 6
LOWEST = 0.3  # of what the replica does when nobody minds waiting


def held_rate(pool: Pool, requests: Requests, most_per_s: float, limits: Promise, seed: int) -> float:
    """Requests per second of one replica at which the limits are still kept, found by bisection in simulations."""
    gaps = -np.log1p(-stream(seed, "arrival").random(len(requests)))
    low, high = LOWEST * most_per_s, 1.1 * most_per_s
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        sent = Requests.of(np.cumsum(gaps / middle), requests.prompt, requests.output)
        if _keeps(pool, sent, limits, seed):
            low = middle
        else:
            high = middle
    return low


def _keeps(pool: Pool, requests: Requests, limits: Promise, seed: int) -> bool:
    """Whether the limits are kept; the first third only fills the replica."""
    records = simulate_serving(Fleet(pools=(pool,)), requests, record=True, seed=seed).records
    assert records is not None
    settled = records.row >= len(requests) // 3
    return bool(
        np.quantile(records.ttft_s[settled], limits.percentile) <= limits.ttft_s
        and np.nanquantile(records.tpot_s[settled], limits.percentile) <= limits.tpot_s
    )
