"""A firm that grows, in round numbers: which way it pays, what a customer leaves, and where that flips."""

from __future__ import annotations

from math import inf

import msgspec
import pytest
from tests.economics.priced import CATALOG, dollars

from datahall.breakdown import given
from datahall.economics.break_even import Dedicated
from datahall.economics.growth import Growth, sizes

OWN = Dedicated(replica=dollars(100.0), replica_tokens=1e12)
# ten customers of a billion tokens each: $10,000 by an API of a dollar a million, $100 on one replica
FIRM = Growth(
    num_customers=10, customer_tokens=1e9, api=given("api", 1.0, "usd_per_mtok"), own=OWN,
    stages=CATALOG.stages(), revenue_usd=40.0,
)  # fmt: skip


def test_a_firm_pays_the_cheaper_way() -> None:
    assert (FIRM.tokens, FIRM.api_usd, FIRM.own_usd) == (1e10, 10_000.0, 100.0)
    assert FIRM.is_own
    assert (FIRM.month_usd, FIRM.customer_usd) == (100.0, 10.0)


def test_what_a_customer_pays_and_leaves() -> None:
    """$10 of $40 are a quarter; for a fifth of it a customer must pay $50."""
    assert (FIRM.infrastructure_fraction, FIRM.margin_fraction) == (0.25, 0.75)
    assert FIRM.needed_usd(0.2) == pytest.approx(50.0)
    unknown = msgspec.structs.replace(FIRM, revenue_usd=None)
    assert (unknown.infrastructure_fraction, unknown.margin_fraction) == (None, None)


def test_it_flips_where_a_replica_costs_what_the_api_does() -> None:
    """$100 at a dollar a million are 100M tokens: a tenth of a customer."""
    assert FIRM.flips is not None
    assert FIRM.flips.value == pytest.approx(0.1)


@pytest.mark.parametrize("missing", ["own", "api"])
def test_what_cannot_be_had_costs_more_than_all_the_money(missing: str) -> None:
    alone = msgspec.structs.replace(FIRM, **{missing: None})
    assert getattr(alone, f"{missing}_usd") == inf
    assert alone.is_own == (missing == "api")
    assert alone.month_usd == (100.0 if missing == "api" else 10_000.0)
    assert alone.flips is None


def test_a_firm_is_in_the_last_stage_that_it_has_reached() -> None:
    first, second = FIRM.stages[0].num_customers, FIRM.stages[1].num_customers
    last = FIRM.stages[-1].num_customers
    assert FIRM.at(first).stage is FIRM.stages[0]
    assert FIRM.at(second - 1).stage is FIRM.stages[0]
    assert FIRM.at(second).stage is FIRM.stages[1]
    assert FIRM.at(first).next_stage is FIRM.stages[1]
    assert FIRM.at(last).next_stage is None


def test_sizes_are_where_stages_begin_now_and_where_it_flips() -> None:
    """A customer of 300,000 tokens: 100M are 333.3 of them."""
    firm = msgspec.structs.replace(FIRM, customer_tokens=3e5, num_customers=77)
    assert sizes(firm) == tuple(sorted({*(one.num_customers for one in firm.stages), 77, 334}))
