"""Samples of several sizes, columns of them, and how much of a data set memory can keep: by hand."""

from __future__ import annotations

import pytest
from tests.datapath.cases import job, store

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.datapath.reading import reads_of
from datahall.datapath.remedies import remedies
from datahall.datapath.supply import supply
from datahall.planner.datapath import asked_of
from datahall.scenario.read import read_names


@pytest.mark.parametrize(("latency_s", "share"), [(0.0, 1.0), (0.512e-3, 0.5), (1.536e-3, 0.25)])
def test_only_what_goes_with_the_size_varies_with_it(latency_s: float, share: float) -> None:
    """1.024 MB at 1 GB/s are 1.024 ms; two requests are waited for besides, whatever the size.

    Sizes vary by 30 %, so a reader's time by 30 % of the share that is transfer, and a batch of 100 by a tenth of it.
    """
    case = job(
        format="files", shuffle="random", num_samples_per_file=1, sample_bytes=1.024e6, spread_bytes=0.3072e6
    )
    found = supply(case, store(latency_s=latency_s))
    assert found.variation == pytest.approx(0.3 * share / 10)


def test_columns_at_random_are_whole_pages_and_in_a_row_no_more_than_they_are() -> None:
    """Half of 10 kB: two pages of 4,096 bytes and a request each, or 5,000 bytes and a thousandth of a request."""
    apart = reads_of("columnar", "random", 10_000, 1000, 0.5)
    assert (apart.useful_bytes, apart.moved_bytes, apart.requests, apart.waited) == (5000, 8192, 1.0, 1.0)
    for shuffle in ("none", "buffer"):
        row = reads_of("columnar", shuffle, 10_000, 1000, 0.5)  # type: ignore[arg-type]
        assert (row.useful_bytes, row.moved_bytes, row.requests) == (5000, 5000, 0.001)


@pytest.mark.parametrize(("memory_bytes", "most_gb"), [(0.5e12, 500), (5e12, 1000)])
def test_memory_keeps_no_more_than_it_holds_nor_than_there_is(memory_bytes: float, most_gb: int) -> None:
    """1 TB of data on storage that is far too slow: all memory is used that helps, and no more."""
    found = remedies(job(), store(read_bytes_per_s=0.01e9), 1.0, memory_bytes)
    kept = [one.changes["cache"] for one in found if "cache" in one.changes]
    assert kept
    assert all(int(str(size).split()[0]) <= most_gb for size in kept)
    assert f"{most_gb} GB" in kept


def test_changes_that_together_are_not_enough_are_no_larger_than_what_they_reach() -> None:
    """A sample is prepared for 10 s: 256 readers, the most there may be, make 25.6 of 100 samples a second.

    For a host's eight chips that keeps 2,048 cores busy; 4,096, the most there may be, would do no more.
    """
    (one,) = (one for one in remedies(job(prepare_s=10.0), store(2), 0.9, 0.0) if len(one.changes) > 1)
    assert one.changes == {"cores": 2048, "readers": 256}
    assert one.utilisation_fraction == pytest.approx(0.256, rel=1e-3)


def test_samples_of_another_size_differ_by_the_same_share() -> None:
    """Those of unet3d are of 146.6 MB give or take 68.3: of 10 MB they are give or take 4.66."""
    said = {"workload": "unet3d", "chips": 8, "storage": ["object"], "chip": "h100-sxm", "sample": "10MB"}
    found = asked_of(read_names(form_of("show datapath"), said, Catalog(user=False))).job
    assert found.spread_bytes == pytest.approx(68_341_808 / 146_600_628 * 1e7)
