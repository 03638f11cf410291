"""A way to buy whose least term is longer than the run says what it binds."""

import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.units import YEAR_S

SHELF = Catalog(user=False)


def test_a_reservation_of_three_years_for_hours_says_what_is_bound() -> None:
    def headline(way: str) -> str:
        return dh.plan_train("llama-3.1-8b", tokens="20G", chips=64, buy=[way], catalog=SHELF).headline

    by_hand = 64 * 1.30 * 3 * YEAR_S / 3600.0
    assert by_hand == pytest.approx(2_187_994, rel=1e-6)
    assert "$2,187,994 are bound" in headline("reserved")
    assert "$2,000,000 are bound" in headline("own")
    assert "bound" not in headline("rent")
