"""Caches below the chip against plain dictionaries, one below the other."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.inference.serving_case import poisson, replica, table
from tests.inference.test_prefix_cache import behind

from datahall.catalog import Catalog
from datahall.cluster.host import host_of
from datahall.errors import ScenarioError
from datahall.inference.fleet.fleet import Fleet, Pool, ReplicaOutage
from datahall.inference.fleet.service import Service
from datahall.inference.memory.offload import lower_tiers
from datahall.inference.memory.tiers import count_lifted, shown_time
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.simulation.state import FLEET, POOL, REPLICA, RUN, SLOT, TIER
from datahall.workload.traffic.requests import Requests

BLOCK = 16
BLOCK_BYTES = BLOCK * 131_072.0  # of Llama 8B

Rows = list[tuple[int, int, int, int, int]]
Key = tuple[object, ...]

ROWS = st.lists(
    st.tuples(
        st.integers(-1, 3),
        st.integers(0, 150),
        st.integers(0, 4),
        st.integers(1, 400),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=40,
)
SPEC = settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def tiered_fleet(num_blocks: int, on_host: int, on_drives: int = 0, count: int = 1) -> Fleet:
    engine = msgspec.structs.replace(replica().engine, prefix_caching=True)
    one = msgspec.structs.replace(
        replica(),
        engine=engine,
        host_cache_bytes=on_host * BLOCK_BYTES,
        drive_cache_bytes=on_drives * BLOCK_BYTES,
        drive_bytes_per_s=5e9,
    )
    return Fleet(
        pools=(Pool(replica=one, count=count, table=table(), num_blocks=num_blocks),), routing="round-robin"
    )


def requests_of(rows: Rows) -> Requests:
    group, shared, session, prompt, output = (np.array(column) for column in zip(*rows, strict=True))
    return msgspec.structs.replace(
        Requests.of(np.zeros(len(rows)), prompt, output),
        group=group,
        shared=np.minimum(shared, prompt),
        session=session,
    )


def keys_of(requests: Requests, row: int) -> list[Key]:
    num = int(requests.prompt[row] + requests.output[row] - 1) // BLOCK
    return [
        ("group", int(requests.group[row]), i)
        if requests.group[row] >= 0 and (i + 1) * BLOCK <= requests.shared[row]
        else ("session", *behind(requests, row), i)
        for i in range(num)
    ]


def expected_hits(requests: Requests, sizes: tuple[int, int, int]) -> tuple[list[int], list[int], list[int]]:
    """Tokens found in all tiers by request, tokens by tier, and blocks left in each, when each request is alone."""
    tiers: list[OrderedDict[Key, None]] = [OrderedDict() for _ in sizes]
    found, by_tier = [], [0] * len(sizes)

    def drop(key: Key) -> None:
        for tier in tiers:
            tier.pop(key, None)

    def settle(room: int) -> None:
        while len(tiers[0]) > room:
            key, _ = tiers[0].popitem(last=False)
            for tier, size in zip(tiers[1:], sizes[1:], strict=True):
                if size:
                    tier[key] = None
                    if len(tier) <= size:
                        break
                    key, _ = tier.popitem(last=False)

    for row in range(len(requests)):
        prompt, keys = int(requests.prompt[row]), keys_of(requests, row)
        hits = 0
        while hits < (prompt - 1) // BLOCK and any(keys[hits] in tier for tier in tiers):
            at = next(place for place, tier in enumerate(tiers) if keys[hits] in tier)
            by_tier[at] += BLOCK
            hits += 1
        found.append(hits * BLOCK)
        last = prompt + int(requests.output[row]) - 1
        for used, tokens in ((keys[:hits], prompt), (keys[: prompt // BLOCK], last)):
            for key in used:
                drop(key)
            settle(sizes[0] - -(-tokens // BLOCK))
        for key in reversed(keys):
            drop(key)
            tiers[0][key] = None
    return found, by_tier, [len(tier) for tier in tiers]


@SPEC
@given(ROWS, st.integers(30, 80), st.integers(0, 60), st.integers(0, 60))
def test_hits_of_one_user_are_those_of_plain_caches_below_each_other(
    rows: Rows, num_blocks: int, on_host: int, on_drives: int
) -> None:
    requests = requests_of(rows)
    run = simulate_serving(tiered_fleet(num_blocks, on_host, on_drives), requests, users=1, record=True)
    found, by_tier, left = expected_hits(requests, (num_blocks, on_host, on_drives))
    assert run.records is not None
    assert run.records.hit.tolist() == found
    assert [run.host_hit_tokens, run.drive_hit_tokens] == by_tier[1:]
    assert run.replicas.free_blocks.tolist() == [num_blocks]
    assert [run.replicas.host_blocks.tolist(), run.replicas.drive_blocks.tolist()] == [[left[1]], [left[2]]]


@SPEC
@given(ROWS, st.integers(30, 80), st.integers(0, 60), st.integers(0, 60))
def test_more_of_a_tier_never_finds_less(rows: Rows, num_blocks: int, on_host: int, more: int) -> None:
    requests = requests_of(rows)
    small, large = (
        simulate_serving(tiered_fleet(num_blocks, size), requests, users=1)
        for size in (on_host, on_host + more)
    )
    assert large.hit_tokens >= small.hit_tokens


def conversations(num: int, rate_per_s: float, num_sessions: int = 120) -> Requests:
    requests = poisson(num, rate_per_s, 900, 40, spread=0.3)
    return msgspec.structs.replace(requests, session=np.random.default_rng(4).integers(0, num_sessions, num))


def same(one: ServingRun, other: ServingRun) -> bool:
    assert one.records is not None
    assert other.records is not None
    columns = zip(msgspec.structs.astuple(one.records), msgspec.structs.astuple(other.records), strict=True)
    return all(np.array_equal(a, b) for a, b in columns)


def test_a_cache_below_the_chip_finds_what_the_chip_has_lost() -> None:
    requests = conversations(2000, 6.0)
    chip, host, both, large = (
        simulate_serving(tiered_fleet(*sizes), requests, record=True)
        for sizes in ((1500, 0), (1500, 4000), (1500, 2000, 6000), (9500, 0))
    )
    assert chip.hit_tokens < host.hit_tokens < both.hit_tokens
    assert chip.host_hit_tokens == chip.drive_hit_tokens == 0
    assert both.drive_hit_tokens > 0
    assert both.hit_tokens == pytest.approx(large.hit_tokens, rel=0.03)
    assert large.mean_s(0) < both.mean_s(0) < chip.mean_s(0)


def test_tiers_that_are_never_reached_change_nothing() -> None:
    requests = conversations(500, 6.0)
    plain, roomy = (simulate_serving(tiered_fleet(27_000, size), requests, record=True) for size in (0, 5000))
    assert same(plain, roomy)
    assert roomy.replicas.host_blocks.tolist() == [0]


@pytest.mark.parametrize("num_blocks", [200, 1500])
def test_blocks_come_back_when_all_is_short(num_blocks: int) -> None:
    run = simulate_serving(tiered_fleet(num_blocks, 500, 300, count=2), conversations(800, 30.0))
    assert run.num_finished == 800
    assert run.replicas.free_blocks.tolist() == [num_blocks] * 2
    assert all(400 < held <= 500 for held in run.replicas.host_blocks)
    assert all(200 < held <= 300 for held in run.replicas.drive_blocks)
    assert (run.num_preempted > 0) == (num_blocks == 200)


def test_a_lost_replica_loses_its_host_too() -> None:
    fleet = msgspec.structs.replace(
        tiered_fleet(1500, 4000), outages=(ReplicaOutage(replica=0, start_s=1e4, duration_s=10.0),)
    )
    late = Requests.of(np.array([1.5e4]), np.array([10]), np.array([2]))  # after it is back
    run = simulate_serving(fleet, [conversations(300, 6.0), late], until_s=2e4)
    assert run.num_finished == 301
    assert run.replicas.host_blocks.tolist() == [0]


def test_the_step_waits_for_what_its_compute_does_not_hide() -> None:
    """A prompt of 64 blocks, then another that pushes it off the chip, then the first again from a slow host."""
    rows = Requests.of(np.array([0.0, 10.0, 20.0]), np.full(3, 1025), np.full(3, 2))
    rows = msgspec.structs.replace(rows, session=np.array([0, 1, 0]))
    slow, fast = 64 * BLOCK_BYTES / 0.5, 64 * BLOCK_BYTES / 1e-6
    runs = []
    for rate in (slow, fast):
        fleet = tiered_fleet(65, 200)
        one = msgspec.structs.replace(fleet.pools[0].replica, host_bytes_per_s=rate)
        pool = msgspec.structs.replace(fleet.pools[0], replica=one)
        runs.append(simulate_serving(msgspec.structs.replace(fleet, pools=(pool,)), rows, record=True))
    assert all(run.host_hit_tokens == 1024 for run in runs)
    slow_s, fast_s = (run.records.ttft_s[2] for run in runs if run.records is not None)
    assert slow_s == pytest.approx(0.5)
    assert fast_s == pytest.approx(7e-3 + 2.2e-5 + 2e-4, rel=0.05)


def test_sizes_and_rates_are_those_of_all_chips_of_a_rank() -> None:
    one = msgspec.structs.replace(replica(), host_cache_bytes=1e9, tp=4)
    host, drives = lower_tiers(one)
    assert host.num_blocks == int(1e9 / BLOCK_BYTES)
    assert host.block_s == pytest.approx(BLOCK_BYTES / 4 / host_of(one.chip).link_bytes_per_s)
    assert drives == (0, 0.0)


def test_drives_need_a_rate_and_sizes_are_not_negative() -> None:
    with pytest.raises(ScenarioError, match="without their rate"):
        lower_tiers(msgspec.structs.replace(replica(), drive_cache_bytes=1e9))
    with pytest.raises(ScenarioError, match="on the host"):
        lower_tiers(msgspec.structs.replace(replica(), host_cache_bytes=-1.0))


def test_a_scenario_says_them_by_deployment(read: Callable[[str], Service], shelf: Catalog) -> None:
    text = (
        'version = 1\nmodel = "llama-3.1-8b"\n'
        '[[deployment]]\nchip = "h100-sxm"\nhost_cache = "64 GB"\ndrive_cache = "1 TB"\n'
        '[[deployment]]\nchip = "h100-sxm"\nhost_cache = "1 GB"\nhost_link = "20 GB/s"\n'
        "[traffic]\nisl = 200\nosl = 40\nrate = 5\nrequests = 300\n"
    )
    first, second = (pool.replica for pool in read(text).fleet.pools)
    assert (first.host_cache_bytes, first.drive_cache_bytes) == (64e9, 1e12)
    assert first.drive_bytes_per_s == host_of(first.chip, shelf.servers()).nvme_bytes_per_s
    assert lower_tiers(second)[0].block_s == pytest.approx(BLOCK_BYTES / 20e9)


def lifted(lanes: int, layer_share: float = 0.25) -> Any:
    """A replica between two others whose prompts have lifted 4 s and 2 s of blocks."""
    state: Any = SimpleNamespace(
        replicas=np.zeros(3, REPLICA), pools=np.zeros(1, POOL), slots=np.zeros(3, SLOT),
        cache=SimpleNamespace(runs=np.zeros(4, RUN), tiers=np.zeros(9, TIER)), fleet=np.zeros(1, FLEET),
    )  # fmt: skip
    state.pools["lanes"], state.pools["layer_share"], state.pools["block_tokens"] = lanes, layer_share, 16
    state.cache.tiers["lifting"] = -1
    state.cache.tiers["block_s"] = [99.0, 99.0, 99.0, 99.0, 1.0, 2.0, 99.0, 99.0, 99.0]
    state.fleet["warmup_s"], state.fleet["measure_until_s"], state.fleet["measure_rows"] = 5.0, 9.0, 1
    state.slots["arrival_s"] = 5.0
    state.cache.runs["users"] = -1  # in the host's memory
    state.cache.runs["last"] = 1
    state.cache.runs[1]["last"] = 2
    for slot, num in ((0, 4), (1, 2)):
        for _ in range(num - 2):
            count_lifted(state, 1, slot, 0)
        count_lifted(state, 1, slot, 1)
    return state


@pytest.mark.parametrize(
    ("lanes", "step_s", "shown_s"),
    [
        (1, 1.0, 5.0),  # of 6 s, one is hidden behind the step
        (1, 9.0, 1.5),  # but never the first layer's
        (2, 1.0, 3.0),  # each rank lifts its own: the longest prompt's 4 s
        (2, 9.0, 1.0),
    ],
)
def test_what_the_step_does_not_hide_shows(lanes: int, step_s: float, shown_s: float) -> None:
    state = lifted(lanes)
    assert shown_time(state, 1, step_s) == pytest.approx(shown_s)
    assert shown_time(state, 1, step_s) == 0.0  # once
    count_lifted(state, 1, 1, 0)
    assert shown_time(state, 1, 0.0) == pytest.approx(1.0)


def test_many_ranks_wait_for_their_mean_at_least() -> None:
    state = lifted(2)
    for slot in (0, 1, 2):
        for _ in range(3):
            count_lifted(state, 1, slot, 0)
    assert shown_time(state, 1, 0.0) == pytest.approx(7.5)  # 15 s on two ranks, none longer than 4


def test_tokens_found_below_are_counted_once_and_after_the_warm_up() -> None:
    state = lifted(1)
    assert state.cache.tiers["hit_tokens"].tolist() == [0, 0, 0, 0, 6 * 16, 0, 0, 0, 0]
    state.cache.runs["users"] = -2  # on drives
    count_lifted(state, 1, 2, 0)
    assert state.cache.tiers["hit_tokens"].tolist() == [0, 0, 0, 0, 96, 16, 0, 0, 0]
    state.slots[2]["preempted"] = 1
    count_lifted(state, 1, 2, 0)
    state.slots[2]["preempted"], state.slots[2]["arrival_s"] = 0, 4.9
    count_lifted(state, 1, 2, 0)
    state.slots[2]["arrival_s"], state.slots[2]["number"] = 9.0, 0  # when the fleet drains
    count_lifted(state, 1, 2, 0)
    state.slots[2]["arrival_s"], state.slots[2]["number"] = 5.0, 1  # of the last rows
    count_lifted(state, 1, 2, 0)
    assert state.cache.tiers["hit_tokens"].tolist() == [0, 0, 0, 0, 96, 16, 0, 0, 0]
    assert shown_time(state, 1, 0.0) == pytest.approx(6.0 + 5 * 2.0)
