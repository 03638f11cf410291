"""What keeping and reading a data set costs a month, by hand."""

from __future__ import annotations

import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.datapath.price import egress_usd_per_month, kept_usd_per_month
from datahall.datapath.verdict import judged
from datahall.planner.datapath import asked_of
from datahall.scenario.read import read_names

CATALOG = Catalog(user=False)
S3 = CATALOG.storage("s3")


def test_a_terabyte_is_kept_for_23_dollars_and_read_at_a_gigabyte_a_second_for_a_month() -> None:
    """1,000 GB at $0.023; 1 GB/s for 365.25 / 12 days of 86,400 s at $0.02: $52,596."""
    assert kept_usd_per_month(S3, 1e12) == pytest.approx(23.0)
    assert egress_usd_per_month(S3, 1e9) == pytest.approx(52_596.0)


def test_what_hosts_keep_does_not_leave_its_region() -> None:
    """Half of 1 TB is kept in each host: half of what is read leaves S3, for $23 and $0.02 a GB."""
    said = {
        "workload": "unet3d", "chips": 8, "storage": ["s3"], "chip": "h100-sxm", "dataset": "1TB", "away": "1ms",
        "cache": "500GB", "keeping": "pinned", "host_memory": "1TB", "readers": 64, "units": 8,
    }  # fmt: skip
    (row,) = judged(asked_of(read_names(form_of("show datapath"), said, CATALOG)))
    assert row.supply.hit_fraction == pytest.approx(0.5)
    leaves_gb = row.supply.delivered_bytes_per_s / 2 * 2_629_800 / 1e9
    assert row.usd_per_month == pytest.approx(23.0 + 0.02 * leaves_gb)


@pytest.mark.parametrize(("away", "leaves"), [("0ms", False), ("1ms", True)])
def test_what_is_read_in_its_own_region_costs_nothing_to_read(away: str, leaves: bool) -> None:
    said = {
        "workload": "unet3d", "chips": 8, "storage": ["s3"], "chip": "h100-sxm", "dataset": "1TB", "away": away,
    }  # fmt: skip
    (row,) = judged(asked_of(read_names(form_of("show datapath"), said, CATALOG)))
    assert row.usd_per_month is not None
    assert row.usd_per_month >= 23.0 if leaves else row.usd_per_month == pytest.approx(23.0)
    assert (row.usd_per_month > 24.0) == leaves
