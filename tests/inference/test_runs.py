"""The prefix cache by runs against one that goes block by block, call by call, in simulations of random traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.inference.block_cache import BlockCache, Key, block_keys
from tests.inference.serving_case import replica, table

from datahall.inference.fleet.fleet import Fleet, Pool, ReplicaOutage
from datahall.inference.memory import prefix_cache, tiers
from datahall.inference.simulation import admission, lifecycle, loop, replica_queue, scheduler
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.simulation.state import NONE, NUM_TIERS
from datahall.workload.traffic.requests import Requests

BLOCK = 16
BLOCK_BYTES = BLOCK * 131_072.0  # of Llama 8B
SPEC = settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


class Shadow:
    """Plays every call on a cache that goes block by block, and compares all that either one knows."""

    def __init__(self) -> None:
        self.caches: dict[int, BlockCache] = {}
        self.names: dict[tuple[int, int], Key] = {}  # of a block by the key of its chain and its place
        self.replica_of: dict[int, int] = {}  # a chain by its key
        self.num_calls = self.num_evicted = self.most_runs = 0

    def cache(self, s: Any, replica: int) -> BlockCache:
        if replica not in self.caches:
            blocks = s.pools[s.replicas[replica]["pool"]]["blocks"]
            sizes = s.cache.tiers["blocks"][NUM_TIERS * replica : NUM_TIERS * (replica + 1)]
            self.caches[replica] = BlockCache(int(blocks), int(sizes[1]), int(sizes[2]))
        self.caches[replica].free = int(s.replicas[replica]["free"])
        return self.caches[replica]

    def keys(self, s: Any, replica: int, slot: int, num: int) -> list[Key]:
        """Keys of a request, and a note of what the runs call them."""
        one = s.slots[slot]
        start, count, each = int(one["key_start"]), int(one["key_count"]), int(s.fleet[0]["explicit_tokens"])
        keys = block_keys(
            num, BLOCK, session=int(one["session"]), group=int(one["group"]), shared=int(one["shared"]),
            given=s.keys[start : start + count].tolist(), each=each,
        )  # fmt: skip
        for block, key in enumerate(keys):
            chain, first, end = prefix_cache.chain_of(s, replica, slot, block, BLOCK)
            assert first <= block < end
            assert self.names.setdefault((chain, block), key) == key
            assert self.replica_of.setdefault(chain, replica) == replica
        return keys

    def num_hits(self, s: Any, replica: int, slot: int, size: int, most: int) -> tuple[int, int]:
        found = prefix_cache.num_hits(s, replica, slot, size, most)
        assert found == self.cache(s, replica).hits(self.keys(s, replica, slot, most))
        return found

    def share(
        self, s: Any, replica: int, slot: int, size: int, first: int, last: int, computed: bool
    ) -> None:
        cache = self.cache(s, replica)
        cache.share(self.keys(s, replica, slot, last)[first:], computed)
        prefix_cache.share_blocks(s, replica, slot, size, first, last, computed)
        assert s.slots[slot]["keyed"] == last
        self.compare(s, replica)

    def release(self, s: Any, replica: int, slot: int, size: int, held: int, num_full: int) -> None:
        cache = self.cache(s, replica)
        cache.release(self.keys(s, replica, slot, num_full), int(s.slots[slot]["keyed"]), int(held))
        prefix_cache.release_blocks(s, replica, slot, size, held, num_full)
        self.compare(s, replica)

    def make(self, s: Any, replica: int) -> None:
        cache = self.cache(s, replica)
        before = len(cache.unused[0])
        cache.settle()
        self.num_evicted += before - len(cache.unused[0])
        tiers.make_blocks(s, replica)
        self.compare(s, replica)

    def clear(self, s: Any, replica: int) -> None:
        cache = self.cache(s, replica)
        cache.clear()
        tiers.clear_tiers(s, replica)
        self.compare(s, replica)

    def compare(self, s: Any, replica: int) -> None:
        """Free blocks, the users of each block, and what nobody uses in the order in which it will be forgotten."""
        cache = self.caches[replica]
        self.num_calls += 1
        assert int(s.replicas[replica]["free"]) == cache.free
        users: dict[Key, int] = {}
        for head in s.cache.chains[s.cache.chains > 0]:
            key, run, runs = int(s.cache.runs[head]["key"]), int(head), 0
            while run != NONE:
                one, runs = s.cache.runs[run], runs + 1
                if one["users"] > 0 and self.replica_of[key] == replica:
                    blocks = range(int(one["first"]), int(one["last"]))
                    users |= {self.names[key, block]: int(one["users"]) for block in blocks}
                run = int(one["after"])
            self.most_runs = max(self.most_runs, runs)
        assert users == cache.users
        for tier in range(NUM_TIERS):
            row = s.cache.tiers[NUM_TIERS * replica + tier]
            assert self.listed(s, row) == list(cache.unused[tier])
            assert row["held"] == len(cache.unused[tier])

    def listed(self, s: Any, row: Any) -> list[Key]:
        """The blocks of a tier, oldest first."""
        found, run = [], int(row["oldest"])
        while run != NONE:
            head = run
            while s.cache.runs[head]["before"] != NONE:
                head = int(s.cache.runs[head]["before"])
            blocks = range(int(s.cache.runs[run]["last"]) - 1, int(s.cache.runs[run]["first"]) - 1, -1)
            found += [self.names[int(s.cache.runs[head]["key"]), block] for block in blocks]
            run = int(s.cache.runs[run]["newer"])
        return found


@contextmanager
def shadowed() -> Iterator[Shadow]:
    """Every call of the cache goes by a shadow."""
    shadow = Shadow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admission, "num_hits", shadow.num_hits)
        for module in (admission, loop):
            patch.setattr(module, "share_blocks", shadow.share)
        for module in (admission, scheduler):
            patch.setattr(module, "make_blocks", shadow.make)
        patch.setattr(replica_queue, "release_blocks", shadow.release)
        patch.setattr(lifecycle, "clear_tiers", shadow.clear)
        yield shadow


def caching_fleet(blocks: int, host: int = 0, drives: int = 0, count: int = 1, **options: object) -> Fleet:
    engine = msgspec.structs.replace(replica().engine, prefix_caching=True, **options)
    one = msgspec.structs.replace(
        replica(), engine=engine, host_cache_bytes=host * BLOCK_BYTES, drive_cache_bytes=drives * BLOCK_BYTES,
        drive_bytes_per_s=5e9,
    )  # fmt: skip
    return Fleet(
        pools=(Pool(replica=one, count=count, table=table(), num_blocks=blocks),), routing="round-robin"
    )


def compared(fleet: Fleet, requests: Requests, **options: Any) -> tuple[ServingRun, Shadow]:
    """A run in which both caches agreed at every call."""
    with shadowed() as shadow:
        run = simulate_serving(fleet, requests, record=True, compiled=False, **options)
    assert run.num_finished == len(requests)
    assert run.replicas.free_blocks.tolist() == run.replicas.blocks.tolist()
    return run, shadow


@st.composite
def conversations(draw: st.DrawFn) -> Requests:
    """Sessions of several turns over a few groups; some turns are asked twice at once, with another end."""
    rows: list[tuple[float, int, int, int, int, int, int]] = []
    for session in range(draw(st.integers(1, 6))):
        group = draw(st.integers(-1, 2))
        shared = (0, 40, 160, 75)[group + 1]
        start_s, before, prompt = draw(st.floats(0.0, 2.0)), -1, shared
        for _ in range(draw(st.integers(1, 4))):
            prompt, output = prompt + draw(st.integers(1, 150)), draw(st.integers(1, 60))
            pause_s = start_s if before < 0 else draw(st.floats(0.0, 0.5))
            turn = len(rows)
            rows.append((pause_s, prompt, output, before, group, shared, session))
            if draw(st.booleans()):
                more = draw(st.integers(0, 40))
                rows.append(
                    (pause_s, prompt + more, draw(st.integers(1, 60)), before, group, shared, session)
                )
            before, prompt = turn, prompt + output
    opening = [row for row in rows if row[3] < 0]
    order = {id(row): place for place, row in enumerate(rows)}
    opening.sort(key=lambda row: row[0])
    ordered = opening + [row for row in rows if row[3] >= 0]
    place = {order[id(row)]: new for new, row in enumerate(ordered)}
    arrival, prompt_, output_, after, group_, shared_, session_ = (
        np.array(column) for column in zip(*ordered, strict=True)
    )
    after = np.array([place[int(old)] if old >= 0 else -1 for old in after])
    return msgspec.structs.replace(
        Requests.of(arrival.astype(float), prompt_, output_),
        after=after, group=group_, shared=shared_, session=session_,
    )  # fmt: skip


@st.composite
def traces(draw: st.DrawFn) -> Requests:
    """Requests with the keys of a tree: each key always stands behind the same ones."""
    each = draw(st.sampled_from([8, 16, 24, 64, 100]))
    paths: list[list[int]] = [[]]
    rows, starts, keys = [], [0], []
    for number in range(draw(st.integers(1, 12))):
        base = draw(st.sampled_from(paths))
        own = base[: draw(st.integers(0, len(base)))]
        own = own + [100 * number + place for place in range(draw(st.integers(1, 4)))]
        paths.append(own)
        keys += own
        starts.append(len(keys))
        prompt = len(own) * each - draw(st.integers(0, each - 1))
        rows.append((draw(st.floats(0.0, 2.0)), prompt, draw(st.integers(1, 60))))
    arrival, prompts, outputs = (np.array(column) for column in zip(*rows, strict=True))
    return msgspec.structs.replace(
        Requests.of(np.sort(arrival.astype(float)), prompts, outputs),
        blocks=np.array(keys), block_start=np.array(starts), block_tokens=each,
    )  # fmt: skip


TRAFFIC = st.one_of(conversations(), traces())
# The longest request has at most four turns of 210 tokens and more: 60 blocks hold it.
SIZES = st.tuples(st.integers(70, 130), st.sampled_from([0, 10, 60]), st.sampled_from([0, 15, 60]))


@SPEC
@given(TRAFFIC, SIZES, st.integers(1, 2))
def test_runs_know_what_blocks_would(requests: Requests, sizes: tuple[int, int, int], count: int) -> None:
    compared(caching_fleet(*sizes, count=count), requests)


@SPEC
@given(
    TRAFFIC,
    SIZES,
    st.sampled_from(["recompute", "swap"]),
    st.booleans(),
    st.integers(30, 300),
)
def test_they_do_when_prompts_are_cut_and_requests_give_way(
    requests: Requests, sizes: tuple[int, int, int], preemption: str, whole: bool, budget: int
) -> None:
    at_once = msgspec.structs.replace(
        requests, arrival_s=np.where(requests.after < 0, 0.0, requests.arrival_s)
    )
    fleet = caching_fleet(*sizes, preemption=preemption, whole_prompt_blocks=whole, token_budget=budget)
    compared(fleet, at_once)


@SPEC
@given(TRAFFIC, SIZES, st.floats(0.1, 2.0))
def test_they_do_when_a_replica_is_lost(requests: Requests, sizes: tuple[int, int, int], at_s: float) -> None:
    outage = ReplicaOutage(replica=0, start_s=at_s, duration_s=0.5)
    compared(msgspec.structs.replace(caching_fleet(*sizes, count=2), outages=(outage,)), requests)


def talks(num: int, turns: int, seed: int) -> Requests:
    """Sessions of equal length that begin together."""
    random = np.random.default_rng(seed)
    new, output = random.integers(20, 90, (turns, num)), random.integers(5, 60, (turns, num))
    prompt = 100 + np.cumsum(new + output, axis=0) - output
    after = np.arange(num * turns).reshape(turns, num) - num
    return msgspec.structs.replace(
        Requests.of(random.exponential(0.2, num * turns), prompt.ravel(), output.ravel()),
        after=np.where(after < 0, -1, after).ravel(), arrival_s=np.where(after < 0, 0.0, 0.3).ravel(),
        group=np.tile(np.arange(num) % 2, turns), shared=np.full(num * turns, 100),
        session=np.tile(np.arange(num), turns),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "happens"),
    [
        ((4000, 0, 0), lambda _, shadow: shadow.num_evicted == 0),
        ((150, 0, 0), lambda run, shadow: run.num_preempted > 0 and shadow.num_evicted > 0),
        ((150, 60, 100), lambda run, _: run.host_hit_tokens > 0 and run.drive_hit_tokens > 0),
        ((150, 0, 200), lambda run, _: run.host_hit_tokens == 0 and run.drive_hit_tokens > 0),
    ],
)
def test_what_the_random_cases_are_for_does_happen(
    sizes: tuple[int, int, int], happens: Callable[[ServingRun, Shadow], bool]
) -> None:
    run, shadow = compared(caching_fleet(*sizes), talks(16, 5, 1))
    assert shadow.num_calls > 100
    assert happens(run, shadow)
    lifted = shadow.caches[0].lifted
    assert run.num_preempted or [run.host_hit_tokens, run.drive_hit_tokens] == [
        BLOCK * num for num in lifted[1:]
    ]


def test_a_conversation_stays_a_few_runs_however_long_it_is() -> None:
    """What makes it fast: work is by run, and of these a chain has no more than its users and its tiers need."""
    run, shadow = compared(caching_fleet(4000), talks(4, 12, 2))
    assert run.hit_tokens > 0.6 * run.prompt_tokens
    assert shadow.most_runs <= 3


def test_a_block_is_another_one_behind_another_prompt() -> None:
    """A session behind another system prompt finds that prompt, and nothing of what it had behind the first."""
    requests = msgspec.structs.replace(
        Requests.of(np.array([0.0, 5.0, 10.0, 15.0]), np.full(4, 320), np.full(4, 4)),
        session=np.array([0, 1, 0, 0]), group=np.array([0, 1, 1, 0]), shared=np.full(4, 160),
    )  # fmt: skip
    run, _ = compared(caching_fleet(1000), requests)
    assert run.records is not None
    assert run.records.hit.tolist() == [0, 0, 160, 304]
