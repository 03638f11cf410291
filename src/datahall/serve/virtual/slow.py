"""A fleet in which some replicas take longer for every step: a throttled chip, a noisy neighbour."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from datahall.errors import ScenarioError
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import StepTable


def slowed(fleet: Fleet, ratios: Mapping[int, float]) -> Fleet:
    """The same replicas in the same order, those that are named with steps that take so many times as long."""
    beyond = [replica for replica in ratios if not 0 <= replica < fleet.num_replicas]
    if beyond:
        raise ScenarioError(f"replica {beyond[0]} is not there", hint=f"0 to {fleet.num_replicas - 1}")
    pools: list[Pool] = []
    first = 0
    for pool in fleet.pools:
        whole = msgspec.structs.replace(pool, table=pool.table or price_steps(pool.replica).table)
        pools += [_one(whole, ratios.get(replica, 1.0)) for replica in range(first, first + pool.count)]
        first += pool.count
    return msgspec.structs.replace(fleet, pools=tuple(pools)) if ratios else fleet


def _one(pool: Pool, ratio: float) -> Pool:
    assert pool.table is not None
    times = {name: getattr(pool.table, name) * ratio for name in StepTable._fields if name != "num_verified"}
    return msgspec.structs.replace(pool, count=1, table=pool.table._replace(**times))
