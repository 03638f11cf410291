"""Offers of `show datapath` of which no part can be left out, what its prices are of, and what a store holds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer


def price(answer: Answer) -> float:
    usd = answer.tables[0].records()[0]["month_usd"]
    assert isinstance(usd, float)
    return usd


def test_what_is_cached_does_not_leave_its_region() -> None:
    """1 TB is kept for 23 USD; with half of it in each host half of the reading leaves, and is paid for."""
    said: dict[str, Any] = {
        "workload": "resnet50", "chips": 64, "storage": ["object"], "dataset": "1 TB", "away": "60 ms", "readers": 64,
    }  # fmt: skip
    none, half, all_of_it = (
        price(dh.show_datapath(**said, **cached))
        for cached in (
            {},
            {"cache": "500 GB", "keeping": "pinned"},
            {"cache": "1 TB", "keeping": "pinned"},
        )
    )
    assert none > 600_000
    assert half - 23.0 == pytest.approx((none - 23.0) / 2)
    assert all_of_it == pytest.approx(23.0)


@pytest.mark.parametrize(("units", "holds"), [(1, False), (3, False), (4, True), (8, True)])
def test_drives_hold_together(units: int, holds: bool) -> None:
    """100 TB on drives of 30.72 TB: three hold 92 TB, four 123."""
    answer = dh.show_datapath("resnet50", chips=64, storage=["nvme"], units=units, dataset="100 TB")
    assert any("does not hold all 100 TB" in note for note in answer.notes) is not holds


SLOW: dict[str, Any] = {"workload": "unet3d", "chips": 64, "prefetch_depth": 0, "stored_as": "shards"}


@pytest.mark.parametrize(
    ("storage", "changes", "before"),
    [
        ("nvme", {"units": 4, "prefetch_depth": 1}, {"units": 1, "prefetch_depth": 0}),
        ("lustre", {"units": 2, "prefetch_depth": 1}, {"units": 1, "prefetch_depth": 0}),
        ("object", {"readers": 64, "prefetch_depth": 1}, {"readers": 32, "prefetch_depth": 0}),
    ],
)
def test_of_changes_taken_together_none_is_more_than_the_others_leave_it(
    storage: str, changes: dict[str, int], before: dict[str, int]
) -> None:
    """Together they are enough; with any of them at half, or as it was, they are not."""
    said = {**SLOW, "storage": [storage]}
    answer = dh.show_datapath(**said)
    (line, *_) = answer.next_commands
    for name, value in changes.items():
        assert f"--{name.replace('_', '-')} {value} " in f"{line} "
    assert "--cache" not in line
    assert dh.show_datapath(**{**said, **changes}).verdict == "yes"
    for name, value in changes.items():
        for less in {value // 2, before[name]}:
            fewer = dh.show_datapath(**{**said, **changes, name: less})
            assert fewer.verdict == "no"
            assert number(fewer, "utilisation_fraction") < 0.9
