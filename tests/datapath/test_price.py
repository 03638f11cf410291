"""What keeping and reading a data set costs a month, by hand."""

from __future__ import annotations

import pytest

from datahall.catalog import Catalog
from datahall.datapath.price import egress_usd_per_month, kept_usd_per_month

S3 = Catalog(user=False).storage("s3")


def test_a_terabyte_is_kept_for_23_dollars_and_read_at_a_gigabyte_a_second_for_a_month() -> None:
    """1,000 GB at $0.023; 1 GB/s for 365.25 / 12 days of 86,400 s at $0.02: $52,596."""
    assert kept_usd_per_month(S3, 1e12) == pytest.approx(23.0)
    assert egress_usd_per_month(S3, 1e9) == pytest.approx(52_596.0)
