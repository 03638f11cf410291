"""A replica that was lost comes back with an empty cache, on the chip and below it; one that only drains keeps it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.inference.test_prefix_cache import caching_fleet

from datahall.inference.fleet.fleet import Fleet, ReplicaOutage
from datahall.inference.simulation.simulate import simulate_serving
from datahall.workload.traffic.requests import Requests


def hits(fleet: Fleet, *rows: tuple[float, int, int]) -> list[int]:
    """What each of some requests (arrival, session, prompt) found in the cache."""
    arrival, session, prompt = (np.array(column) for column in zip(*rows, strict=True))
    requests = msgspec.structs.replace(
        Requests.of(arrival.astype(float), prompt, np.ones(len(rows), np.int64)), session=session
    )
    run = simulate_serving(fleet, requests, record=True)
    assert run.records is not None
    assert run.num_finished == len(rows)
    found = np.empty(len(rows), np.int64)
    found[run.records.row] = run.records.hit
    return found.tolist()


TALK = ((0.0, 1, 160), (50.0, 1, 161), (100.0, 1, 161))


def test_what_was_known_is_gone_with_the_replica() -> None:
    whole = caching_fleet(100)
    assert hits(whole, *TALK) == [0, 160, 160]
    lost = msgspec.structs.replace(whole, outages=(ReplicaOutage(replica=0, start_s=60.0, duration_s=10.0),))
    assert hits(lost, *TALK) == [0, 160, 0]


def test_blocks_below_the_chip_are_gone_too() -> None:
    """Twelve blocks on the chip: the second prompt pushes the first one down to the host, from where it comes back."""
    plain = caching_fleet(12)
    pool = plain.pools[0]
    tier = msgspec.structs.replace(pool.replica, host_cache_bytes=1e12)
    hosted = msgspec.structs.replace(plain, pools=(msgspec.structs.replace(pool, replica=tier),))
    rows = ((0.0, 1, 160), (50.0, 2, 160), (100.0, 1, 161))
    assert hits(plain, *rows)[2] < hits(hosted, *rows)[2] == 160
    lost = msgspec.structs.replace(hosted, outages=(ReplicaOutage(replica=0, start_s=60.0, duration_s=10.0),))
    assert hits(lost, *rows)[2] == 0


@pytest.mark.parametrize("num_blocks", [20, 100])
def test_a_replica_that_comes_back_has_all_its_blocks(num_blocks: int) -> None:
    fleet = msgspec.structs.replace(
        caching_fleet(num_blocks), outages=(ReplicaOutage(replica=0, start_s=60.0, duration_s=10.0),)
    )
    requests = Requests.of(np.array([0.0, 80.0]), np.array([160, 300]), np.ones(2, np.int64))
    run = simulate_serving(fleet, requests, record=True)
    assert run.num_finished == 2
    assert run.replicas.free_blocks.tolist() == [num_blocks]
