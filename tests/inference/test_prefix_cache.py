"""The prefix cache against a plain dictionary that forgets the least recently used block first."""

from __future__ import annotations

from collections import OrderedDict

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.inference.serving_case import poisson, replica, table

from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.simulation.simulate import simulate_serving
from datahall.workload.traffic.requests import Requests

BLOCK = 16


def caching_fleet(num_blocks: int, count: int = 1, routing: str = "round-robin") -> Fleet:
    engine = msgspec.structs.replace(replica().engine, prefix_caching=True)
    one = msgspec.structs.replace(replica(), engine=engine)
    pool = Pool(replica=one, count=count, table=table(), num_blocks=num_blocks)
    return Fleet(pools=(pool,), routing=routing)  # type: ignore[arg-type]


def behind(requests: Requests, row: int) -> tuple[int, int, int]:
    """The session of a request, and what its blocks stand behind: they are others behind another prefix."""
    group, shared = int(requests.group[row]), int(requests.shared[row]) // BLOCK
    return int(requests.session[row]), group if shared else -1, shared if group >= 0 else 0


def expected_hits(requests: Requests, num_blocks: int) -> list[int]:
    """Hits when each request is alone: blocks of a running request cannot be forgotten, others oldest first."""
    known: OrderedDict[tuple[object, ...], None] = OrderedDict()
    found = []
    for row in range(len(requests)):
        prompt, output = int(requests.prompt[row]), int(requests.output[row])
        last = prompt + output - 1
        keys = [
            ("group", int(requests.group[row]), i)
            if requests.group[row] >= 0 and (i + 1) * BLOCK <= requests.shared[row]
            else ("session", *behind(requests, row), i)
            for i in range(last // BLOCK)
        ]
        hits = 0
        while hits < (prompt - 1) // BLOCK and keys[hits] in known:
            hits += 1
        found.append(hits * BLOCK)
        # blocks are taken when the prompt begins; only when it is computed are those that were known shared
        for used, tokens in ((keys[:hits], prompt), (keys[: prompt // BLOCK], last)):
            for key in used:
                known.pop(key, None)
            while len(known) > num_blocks - -(-tokens // BLOCK):
                known.popitem(last=False)
        for key in reversed(keys):
            known.pop(key, None)
            known[key] = None
    return found


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(
        st.tuples(
            st.integers(-1, 3),
            st.integers(0, 150),
            st.integers(0, 4),
            st.integers(1, 400),
            st.integers(1, 40),
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(30, 200),
)
def test_hits_of_one_user_are_those_of_a_plain_cache(
    rows: list[tuple[int, int, int, int, int]], num_blocks: int
) -> None:
    group, shared, session, prompt, output = (np.array(column) for column in zip(*rows, strict=True))
    requests = msgspec.structs.replace(
        Requests.of(np.zeros(len(rows)), prompt, output),
        group=group,
        shared=np.minimum(shared, prompt),
        session=session,
    )
    run = simulate_serving(caching_fleet(num_blocks), requests, users=1, record=True)
    assert run.records is not None
    assert run.num_preempted == 0
    assert run.records.hit.tolist() == expected_hits(requests, num_blocks)
    assert run.replicas.free_blocks.tolist() == [num_blocks]


def shared_traffic(num: int, rate_per_s: float, num_groups: int = 20) -> Requests:
    requests = poisson(num, rate_per_s, 600, 60, spread=0.4)
    group = np.random.default_rng(3).integers(0, num_groups, num)
    return msgspec.structs.replace(requests, group=group, shared=np.full(num, 320))


def test_a_shared_prefix_is_computed_once_for_each_group() -> None:
    requests = shared_traffic(600, 3.0)
    run = simulate_serving(caching_fleet(27_000), requests, record=True)
    assert run.records is not None
    first = np.unique(requests.group, return_index=True)[1]
    warm = np.delete(run.records.hit, first)
    assert np.all(run.records.hit[first] == 0)
    assert np.mean(warm == 320) > 0.97
    assert run.replicas.free_blocks.tolist() == [27_000]
    cold = simulate_serving(caching_fleet(27_000), msgspec.structs.replace(requests, group=np.full(600, -1)))
    assert run.ttft_s() < cold.ttft_s()


def test_affinity_keeps_groups_together_and_hits_more() -> None:
    requests = shared_traffic(3000, 60.0, 200)
    spread, near = (
        simulate_serving(caching_fleet(700, 4, routing), requests)
        for routing in ("round-robin", "prefix-affinity")
    )
    assert near.hit_tokens > 1.3 * spread.hit_tokens
    assert near.replicas.free_blocks.tolist() == [700] * 4


def test_a_later_turn_finds_the_earlier_one() -> None:
    turns = msgspec.structs.replace(
        Requests.of(np.array([0.0, 1.0, 1.0]), np.array([100, 300, 500]), np.array([60, 60, 60])),
        after=np.array([-1, 0, 1]),
        session=np.zeros(3, np.int64),
    )
    run = simulate_serving(caching_fleet(2000), turns, record=True)
    assert run.records is not None
    assert run.records.hit.tolist() == [0, (100 + 59) // 16 * 16, (300 + 59) // 16 * 16]


def test_keys_of_a_trace_are_taken_as_they_are() -> None:
    requests = msgspec.structs.replace(
        Requests.of(np.arange(3) * 5.0, np.array([1024, 1024, 1200]), np.full(3, 4)),
        blocks=np.array([11, 12, 11, 13, 11, 13, 14]),
        block_start=np.array([0, 2, 4]),
        block_tokens=512,
    )
    run = simulate_serving(caching_fleet(2000), requests, record=True)
    assert run.records is not None
    assert run.records.hit.tolist() == [0, 512, 1024]


@pytest.mark.parametrize("num_blocks", [200, 2000])
def test_blocks_come_back_when_all_is_short_and_requests_are_preempted(num_blocks: int) -> None:
    run = simulate_serving(caching_fleet(num_blocks, 2), shared_traffic(500, 50.0))
    assert run.num_finished == 500
    assert run.replicas.free_blocks.tolist() == [num_blocks] * 2
    assert (run.num_preempted > 0) == (num_blocks == 200)


def test_given_hits_replace_the_cache() -> None:
    requests = poisson(50, 2.0)
    run = simulate_serving(caching_fleet(2000), requests, cached_tokens=np.full(50, 300), record=True)
    assert run.records is not None
    assert set(run.records.hit.tolist()) == {300}
    assert run.replicas.prompt_tokens[0] == 50 * 212
