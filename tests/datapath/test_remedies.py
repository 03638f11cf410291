"""What mends a starved job: each change is enough or the most there is, and is what the model says of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.datapath.cases import job, store

from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.remedies import Remedy, enough, remedies
from datahall.datapath.supply import supply

FIELDS = {"prefetch_depth": "num_prefetch", "readers": "num_readers", "cores": "num_cores"}


def again(case: Pipeline, where: Store, remedy: Remedy) -> float:
    """Utilisation with the inputs that a remedy says, put in by hand."""
    for name, value in remedy.changes.items():
        if name in FIELDS:
            case = msgspec.structs.replace(case, **{FIELDS[name]: value})
        elif name == "stored_as":
            case = msgspec.structs.replace(case, format="shards", shuffle="buffer")
        elif name in {"shuffle", "keeping"}:
            case = msgspec.structs.replace(case, **{name: value})
        elif name == "cache":
            case = msgspec.structs.replace(case, cache_bytes=float(str(value).split()[0]) * 1e9)
        elif name == "host_nic":
            case = msgspec.structs.replace(case, nic_bytes_per_s=float(str(value).split()[0]) * 1e9 / 8)
        elif name == "units":
            where = msgspec.structs.replace(where, num_units=value)
        else:
            assert name == "checkpoint_every"
            where = msgspec.structs.replace(where, interval_s=float(str(value).split()[0]))
    return supply(case, where).utilisation_fraction


def test_nothing_is_mended_that_works() -> None:
    assert remedies(job(), store(2), 0.9, 1e12) == ()


def test_twice_the_need_by_hand() -> None:
    """0.4 of 1.6 GB/s come through: 4 units are enough for 90 %, or a cache of 12/16 of 1 TB that misses 25 %."""
    found = {tuple(one.changes): one for one in remedies(job(), store(read_bytes_per_s=0.4e9), 0.9, 1e12)}
    assert found["units",].changes == {"units": 4}
    assert found["units",].utilisation_fraction == 1.0
    assert found["cache", "keeping"].changes == {"cache": "750 GB", "keeping": "pinned"}
    assert enough(tuple(found.values()), 0.9) == found["cache", "keeping"]


def test_readers_that_wait_are_mended_by_more_of_them_or_by_shards() -> None:
    case = job(format="files", shuffle="random", num_samples_per_file=1)
    where = store(1000, latency_s=0.1)
    found = remedies(case, where, 0.9, 1e12)
    assert found[0].what == "32 readers for each chip"
    assert {"stored_as": "shards"} in [one.changes for one in found]


def test_a_checkpoint_that_never_drains_is_written_less_often() -> None:
    """It takes 1,000 s at 1 GB/s; 1.44 of 2 GB/s must be left to read: no more than 28 % of the time."""
    found = remedies(job(), store(2, checkpoint_bytes=1e12, interval_s=600.0), 0.9, 1e12)
    assert found[0].changes == {"checkpoint_every": "4096 s"}


def test_of_changes_that_are_taken_together_each_is_needed_and_no_larger_than_it_must_be() -> None:
    """One reader for far files over a thin network to slow storage that writes checkpoints: three of the four help."""
    case = job(
        format="files", shuffle="random", num_samples_per_file=1, num_readers=1, num_prefetch=1, nic_bytes_per_s=0.43e9
    )  # fmt: skip
    where = store(read_bytes_per_s=0.33e9, latency_s=0.019, checkpoint_bytes=1e12, interval_s=3600.0)
    (one,) = (one for one in remedies(case, where, 0.9, 1e10) if len(one.changes) > 2)
    assert one.changes == {"units": 8, "readers": 4, "host_nic": "8 Gb/s"}
    assert one.utilisation_fraction >= 0.9
    for less in ({"units": 4}, {"readers": 2}, {"host_nic": "4 Gb/s"}):
        smaller = msgspec.structs.replace(one, changes={**one.changes, **less})
        assert again(case, where, smaller) < 0.9, less


def test_changes_that_each_help_little_are_taken_where_no_other_does() -> None:
    """Of 1.6 GB/s a unit gives 87 % and the network lets 88 % through: either alone brings 1 % or nothing."""
    case, where = job(nic_bytes_per_s=0.704e9), store(read_bytes_per_s=1.392e9)
    assert supply(case, where).utilisation_fraction == pytest.approx(0.87)
    (both,) = (one for one in remedies(case, where, 0.9, 0.0) if len(one.changes) > 1)
    assert both.changes == {"units": 2, "host_nic": "8 Gb/s"}
    assert both.utilisation_fraction == 1.0


drawn = st.fixed_dictionaries(
    {
        "rate": st.floats(1e7, 2e9),
        "latency": st.floats(1e-4, 0.3),
        "format": st.sampled_from(["files", "shards"]),
        "prefetch": st.integers(0, 3),
        "prepare": st.sampled_from([0.0, 0.05, 0.3]),
        "place": st.sampled_from(["host", "shared"]),
        "cache": st.sampled_from([0.0, 1e11]),
        "checkpoint": st.sampled_from([0.0, 1e12]),
        "nic": st.floats(1e8, 1e10),
    }
)


@settings(max_examples=40, deadline=None)
@given(drawn, st.floats(0.5, 0.99))
def test_a_remedy_is_what_the_model_says_of_its_inputs(case: dict[str, Any], promised: float) -> None:
    reads = job(
        format=case["format"], shuffle="random", num_prefetch=case["prefetch"], prepare_s=case["prepare"],
        cache_bytes=case["cache"], nic_bytes_per_s=case["nic"],
    )  # fmt: skip
    where = store(
        read_bytes_per_s=case["rate"], latency_s=case["latency"], place=case["place"], interval_s=3600.0,
        checkpoint_bytes=case["checkpoint"],
    )  # fmt: skip
    before = supply(reads, where).utilisation_fraction
    for one in remedies(reads, where, promised, 1e12):
        assert again(reads, where, one) == pytest.approx(one.utilisation_fraction, rel=1e-9)
        assert one.gain_fraction == pytest.approx(one.utilisation_fraction - before)
        assert one.gain_fraction > 0.0


@settings(max_examples=30, deadline=None)
@given(drawn)
def test_no_more_is_taken_than_is_needed(case: dict[str, Any]) -> None:
    """Half of what a doubled remedy says is not enough."""
    reads = job(format=case["format"], shuffle="random", num_prefetch=4, nic_bytes_per_s=1e12)
    where = store(read_bytes_per_s=case["rate"], latency_s=case["latency"])
    for one in remedies(reads, where, 0.9, 1e12):
        if set(one.changes) == {"units"} and one.utilisation_fraction >= 0.9:
            half = msgspec.structs.replace(one, changes={"units": max(1, int(one.changes["units"]) // 2)})
            assert again(reads, where, half) < 0.9
