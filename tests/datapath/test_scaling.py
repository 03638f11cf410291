"""How many chips a store feeds."""

from __future__ import annotations

import pytest
from tests.datapath.cases import job, store

from datahall.datapath.scaling import MOST_CHIPS, curve, drawn_to, most_chips, utilisation_at


def test_one_gigabyte_a_second_feeds_eleven_chips_at_nine_tenths() -> None:
    """A chip needs 100 MB/s: 1 GB/s is 90 % of what 11.1 of them need."""
    assert most_chips(job(), store(), 0.9) == 11
    assert utilisation_at(job(), store(), 11) >= 0.9 > utilisation_at(job(), store(), 12)


def test_every_host_with_drives_of_its_own_feeds_its_chips_however_many_there_are() -> None:
    assert most_chips(job(), store(place="host"), 0.9) == MOST_CHIPS
    assert most_chips(job(), store(place="host", read_bytes_per_s=1e6), 0.9) == 0


def test_a_curve_falls_and_has_the_asked_point() -> None:
    chips, shares = curve(job(), store(), drawn_to(job(), [11, None]))
    assert chips[0] == 1.0
    assert chips[-1] == 32.0
    assert 16.0 in chips
    assert list(shares) == sorted(shares, reverse=True)
    assert shares[chips.index(16.0)] == pytest.approx(10 / 16)
