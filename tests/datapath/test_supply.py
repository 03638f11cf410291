"""What comes through a data path: worked out by hand, in its limits, and never less of it for more of anything."""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.datapath.cases import job, storage, store

from datahall.catalog import load
from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.supply import reader_time_s, supply


def test_half_of_what_is_needed_keeps_chips_at_work_half_the_time() -> None:
    """1.6 GB/s are needed; a unit reads 0.8 GB/s."""
    found = supply(job(), store(read_bytes_per_s=0.8e9))
    assert found.needed_bytes_per_s == pytest.approx(1.6e9)
    assert found.available_bytes_per_s == pytest.approx(0.8e9)
    assert found.utilisation_fraction == pytest.approx(0.5)
    assert found.delivered_bytes_per_s == pytest.approx(0.8e9)
    assert found.binding == "bandwidth"


def test_two_units_bring_twice_as_much_and_a_host_has_its_own() -> None:
    assert supply(job(), store(2, read_bytes_per_s=0.4e9)).utilisation_fraction == pytest.approx(0.5)
    own = supply(
        job(), store(2, read_bytes_per_s=0.4e9, place="host")
    )  # 0.8 of the 0.8 GB/s that 8 chips need
    assert own.utilisation_fraction == pytest.approx(1.0)


def test_small_files_are_two_requests_each() -> None:
    """1,600 samples/s are 3,200 requests; 800 are answered: a quarter."""
    found = supply(
        job(format="files", shuffle="random", num_readers=64),
        store(num_reads_per_s=800, read_bytes_per_s=inf),
    )
    assert found.binding == "requests"
    assert found.utilisation_fraction == pytest.approx(0.25)


def test_readers_wait_for_one_request_after_the_other() -> None:
    """A file takes a reader 2 × 20 ms and 1 ms to copy: 4 readers bring 97.6 of the 100 samples/s that a chip needs."""
    found = supply(
        job(format="files", shuffle="random", num_prefetch=64),
        store(latency_s=0.020, read_bytes_per_s=inf, num_reads_per_s=0, stream_bytes_per_s=inf),
    )
    assert found.binding == "readers"
    assert found.utilisation_fraction == pytest.approx(4 / (0.040 + 1.003520e-3) / 100, rel=1e-9)


def test_a_region_away_adds_its_round_trip_to_every_request() -> None:
    here, there = (
        supply(job(format="files", shuffle="random"), store(100, away_s=away_s)).limits_bytes_per_s["readers"]
        for away_s in (0.0, 0.060)
    )
    per_sample = 1e6
    assert per_sample / there * 64 - per_sample / here * 64 == pytest.approx(2 * 0.060)


def test_the_network_of_a_host_feeds_its_chips() -> None:
    found = supply(job(nic_bytes_per_s=0.4e9), store(100))
    assert (found.binding, found.utilisation_fraction) == ("network", pytest.approx(0.5))
    assert supply(job(nic_bytes_per_s=0.4e9), store(100, place="host")).utilisation_fraction == 1.0


def test_cores_prepare_samples() -> None:
    """8 chips need 800 samples/s; 64 cores that take 160 ms each make 400."""
    found = supply(job(prepare_s=0.160, num_readers=1000), store(100))
    assert (found.binding, found.utilisation_fraction) == ("processors", pytest.approx(0.5))


def test_what_the_cache_has_is_not_read() -> None:
    half = supply(job(cache_bytes=0.5e12, keeping="pinned"), store(read_bytes_per_s=0.4e9))
    assert half.hit_fraction == 0.5
    assert half.limits_bytes_per_s["bandwidth"] == pytest.approx(0.8e9)
    whole = supply(job(cache_bytes=1e12), store(read_bytes_per_s=1e3, latency_s=9.0))
    assert (whole.hit_fraction, whole.utilisation_fraction) == (1.0, 1.0)


def test_columns_need_and_read_less() -> None:
    found = supply(job(format="columnar", columns_fraction=0.25), store(read_bytes_per_s=0.4e9))
    assert found.needed_bytes_per_s == pytest.approx(0.4e9)
    assert found.utilisation_fraction == pytest.approx(1.0)


def test_checkpoints_take_their_share_of_the_same_storage() -> None:
    """100 GB every 1,000 s at 0.5 GB/s: a fifth of the time; 0.8 GB/s are left of 1."""
    found = supply(job(), store(checkpoint_bytes=100e9, interval_s=1000.0))
    assert found.available_bytes_per_s == pytest.approx(0.8e9)
    never = supply(job(), store(checkpoint_bytes=1e15, interval_s=1000.0))
    assert (never.utilisation_fraction, never.binding) == (0.0, "checkpoints")
    without_limit = supply(
        job(nic_bytes_per_s=1e3),
        store(checkpoint_bytes=1e15, interval_s=1.0, read_bytes_per_s=inf, write_bytes_per_s=inf),
    )
    assert without_limit.utilisation_fraction == 0.0


def test_requests_are_answered_in_the_time_that_checkpoints_leave() -> None:
    """250 GB every 1,000 s at 0.5 GB/s: half of the time is left to answer 3,200 requests/s, as many as are needed."""
    found = supply(
        job(format="files", shuffle="random", num_readers=64),
        store(num_reads_per_s=3200, read_bytes_per_s=inf, checkpoint_bytes=250e9, interval_s=1000.0),
    )
    assert found.binding == "requests"
    assert found.utilisation_fraction == pytest.approx(0.5)


def test_a_reader_copies_what_the_cache_has_and_waits_for_the_rest() -> None:
    """3 ms to prepare; of four samples three are a copy of 1 ms, and one waits 2 × 5 ms for 245 pages at 0.5 GB/s."""
    case = job(format="files", shuffle="random", prepare_s=0.003)
    where = store(latency_s=0.005, read_bytes_per_s=0.5e9, stream_bytes_per_s=inf)
    waits_s = 0.010 + 245 * 4096 / 0.5e9
    assert reader_time_s(case, where, 0.25) == pytest.approx(0.003 + (3 * 0.001 + waits_s) / 4)


def test_latencies_that_differ_are_not_felt_where_the_cache_has_all() -> None:
    """Of an object store the catalogue knows how far its requests lie apart: only those that go there differ."""
    case, where = (
        job(format="files", shuffle="random", batch=1),
        Store(storage=load().storage("s3"), num_units=1),
    )
    assert supply(case, where).variation > 0.1
    assert supply(msgspec.structs.replace(case, cache_bytes=1e12), where).variation == 0.0


def test_nothing_ahead_adds_the_times_up_and_says_so() -> None:
    """A second to make a batch and a second of work."""
    found = supply(job(num_prefetch=0), store(read_bytes_per_s=1.6e9))
    assert found.utilisation_fraction == pytest.approx(0.5)
    assert supply(job(num_prefetch=0), store(read_bytes_per_s=16e9)).binding == "prefetch"


ENDLESS = {"read_bytes_per_s": inf, "num_reads_per_s": 0, "latency_s": 0.0, "stream_bytes_per_s": inf}


def test_storage_without_limits_starves_nobody() -> None:
    found = supply(job(nic_bytes_per_s=inf, cache_stream_bytes_per_s=inf, num_prefetch=0), store(**ENDLESS))
    assert found.utilisation_fraction == 1.0
    assert found.binding == "compute"


MORE: list[tuple[str, str]] = [
    ("job", "num_readers"),
    ("job", "num_prefetch"),
    ("job", "num_cores"),
    ("job", "cache_bytes"),
    ("job", "nic_bytes_per_s"),
    ("job", "step_s"),
    ("job", "cache_stream_bytes_per_s"),
    ("store", "num_units"),
    ("storage", "read_bytes_per_s"),
    ("storage", "write_bytes_per_s"),
    ("storage", "num_reads_per_s"),
    ("storage", "stream_bytes_per_s"),
]
LESS: list[tuple[str, str]] = [
    ("job", "prepare_s"),
    ("job", "sample_bytes"),
    ("job", "batch"),
    ("job", "dataset_bytes"),
    ("store", "away_s"),
    ("store", "checkpoint_bytes"),
    ("storage", "latency_s"),
]


def changed(case: Pipeline, where: Store, part: str, name: str, times: float) -> tuple[Pipeline, Store]:
    """One number of a data path made larger."""

    def grown(thing: Any) -> Any:
        value = getattr(thing, name) * times
        return msgspec.structs.replace(
            thing, **{name: round(value) if isinstance(getattr(thing, name), int) else value}
        )

    if part == "job":
        return grown(case), where
    if part == "store":
        return case, grown(where)
    return case, msgspec.structs.replace(where, storage=grown(where.storage))


drawn = st.fixed_dictionaries(
    {
        "rate": st.floats(1e7, 1e11),
        "latency": st.floats(1e-5, 0.2),
        "spread": st.floats(0.0, 1e6),
        "prefetch": st.integers(0, 8),
        "cache": st.floats(0.0, 2e12),
        "format": st.sampled_from(["files", "shards"]),
        "keeping": st.sampled_from(["lru", "pinned"]),
        "place": st.sampled_from(["host", "shared"]),
        "prepare": st.floats(0.0, 0.1),
        "checkpoint": st.floats(0.0, 1e12),
    }
)


def path_of(case: dict[str, Any]) -> tuple[Pipeline, Store]:
    return (
        job(
            spread_bytes=case["spread"], num_prefetch=case["prefetch"], cache_bytes=case["cache"],
            format=case["format"], shuffle="random", keeping=case["keeping"], prepare_s=case["prepare"],
        ),
        store(
            2, read_bytes_per_s=case["rate"], latency_s=case["latency"], stream_bytes_per_s=2e8,
            place=case["place"], checkpoint_bytes=case["checkpoint"], interval_s=4000.0, away_s=1e-3,
        ),
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(case=drawn, change=st.sampled_from(MORE), times=st.floats(1.0, 4.0))
def test_more_of_a_resource_is_never_worse(
    case: dict[str, Any], change: tuple[str, str], times: float
) -> None:
    before = supply(*path_of(case)).utilisation_fraction
    after = supply(*changed(*path_of(case), *change, times)).utilisation_fraction
    assert after >= before - 1e-9


@settings(max_examples=60, deadline=None)
@given(case=drawn, change=st.sampled_from(LESS), times=st.floats(1.0, 4.0))
def test_more_of_a_burden_is_never_better(
    case: dict[str, Any], change: tuple[str, str], times: float
) -> None:
    before = supply(*path_of({**case, "spread": 0.0}))
    after = supply(*changed(*path_of({**case, "spread": 0.0}), *change, times))
    assert after.utilisation_fraction <= before.utilisation_fraction + 1e-9


@settings(max_examples=60, deadline=None)
@given(case=drawn)
def test_chips_get_no_more_than_comes_through_or_they_need(case: dict[str, Any]) -> None:
    found = supply(*path_of(case))
    assert 0.0 <= found.utilisation_fraction <= 1.0
    assert found.delivered_bytes_per_s <= min(found.needed_bytes_per_s, found.available_bytes_per_s) * (
        1 + 1e-9
    )


@settings(max_examples=40, deadline=None)
@given(
    case=drawn,
    change=st.sampled_from(
        [
            one
            for one in MORE + LESS
            if one[1]
            not in {"num_readers", "num_prefetch", "num_cores", "batch", "num_units", "num_reads_per_s"}
        ]
    ),
)
def test_a_little_more_changes_little(case: dict[str, Any], change: tuple[str, str]) -> None:
    before = supply(*path_of(case)).utilisation_fraction
    after = supply(*changed(*path_of(case), *change, 1.0 + 1e-7)).utilisation_fraction
    step = 4096.0 / 1e6 if change[1] == "sample_bytes" else 0.0  # pages are whole
    assert abs(after - before) <= 1e-5 + step


def test_a_tier_of_the_catalogue_that_has_no_limit_of_requests_has_none() -> None:
    assert supply(job(), store(num_reads_per_s=0)).limits_bytes_per_s["requests"] == inf
    assert storage(num_reads_per_s=0).num_reads_per_s == 0
