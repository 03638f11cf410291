"""What holds of every price: cheaper input never costs more, a longer life never adds capital, sums add up."""

from __future__ import annotations

from functools import cache
from math import isfinite

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from datahall.breakdown import derived, false_nodes
from datahall.breakdown import given as said
from datahall.catalog import Catalog
from datahall.economics.annuity import annuity, even_usd_per_hour, market_loss
from datahall.economics.break_even import Dedicated, break_even, curve
from datahall.economics.capex import capex_of
from datahall.economics.own import Owned, Place, energy_price, owned_hour, place_of, terms_of
from datahall.economics.scopes import scopes
from datahall.economics.spot import spot_ettr
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.operations.site import Site
from datahall.units import YEAR_S

CATALOG = Catalog(user=False)
usd = st.floats(1e-6, 1e9)
share = st.floats(0.0, 1.0)
years = st.floats(0.1, 100.0)
volumes = st.floats(1.0, 1e15)


CHIP = CATALOG.chip("h100-sxm")


@cache
def standing(num_chips: int) -> Place:
    place = place_of(CHIP, num_chips, Ownership(), Site(), CATALOG)
    assert place is not None
    return place


def owned(asked: Ownership, num_chips: int = 64) -> Owned:
    capex = capex_of(CHIP, num_chips, CATALOG, asked.capex_usd)
    assert capex is not None
    place, energy = standing(num_chips), energy_price(asked, Site(), CATALOG)
    assert energy is not None
    there = msgspec.structs.replace(place, energy=energy)
    return owned_hour(CHIP, num_chips, capex, terms_of(asked, CATALOG), there, CATALOG)


@given(usd, share, years, years)
def test_a_longer_life_never_raises_even_payments(
    price: float, interest: float, one: float, other: float
) -> None:
    """At no interest they are the price over the hours of its life."""
    leaf, rate = said("price", price, "usd"), said("interest", interest, "fraction")
    short, long = (even_usd_per_hour("", leaf, rate, life).value for life in sorted((one, other)))
    assert long <= short * (1.0 + 1e-9)
    free = said("interest", 0.0, "fraction")
    assert even_usd_per_hour("", leaf, free, one).value == pytest.approx(price / (one * 8766.0))


@given(share, share, years)
def test_dearer_capital_never_costs_less(one: float, other: float, life: float) -> None:
    low, high = (annuity(said("interest", rate, "fraction"), life).value for rate in sorted((one, other)))
    assert low <= high * (1.0 + 1e-6)
    assert isfinite(high)


@given(usd, st.floats(0.0, 0.99), st.floats(0.0, 20.0), st.floats(0.01, 20.0), st.floats(0.01, 20.0))
def test_what_the_market_takes_off_two_spans_is_what_it_takes_off_both(
    price: float, lost: float, age: float, first: float, second: float
) -> None:
    leaf, rate = said("price", price, "usd"), said("lost", lost, "fraction")

    def loss(start: float, span: float) -> float:
        return market_loss(leaf, rate, start, span, "loss").value

    whole = loss(age, first + second)
    assert loss(age, first) + loss(age + first, second) == pytest.approx(whole, rel=1e-6, abs=1e-9 * price)
    assert 0.0 <= whole <= price


@given(
    st.floats(1.0, 1e7),
    share,
    st.floats(0.5, 30.0),
    share,
    st.floats(0.0, 1e6),
    st.floats(0.05, 1.0),
    st.sampled_from([1, 8, 64, 1024]),
)
def test_an_hour_that_is_owned_is_the_sum_of_its_parts(
    capex: float, interest: float, life: float, residual: float, staff: float, used: float, num_chips: int
) -> None:  # fmt: skip
    asked = Ownership(
        capex_usd=capex, interest_fraction=interest, life_s=life * YEAR_S, residual_fraction=residual,
        staff_usd_per_month=staff, used_fraction=used,
    )  # fmt: skip
    found = owned(asked, num_chips)
    assert found.hour.value == pytest.approx(sum(part.value for part in found.parts.parts) / used)
    assert all(
        isfinite(node.value) and node.value >= 0.0 for _, node in found.hour.walk() if node.unit != "count"
    )
    assert false_nodes(found.hour) == []


@given(
    st.sampled_from(
        ["capex_usd", "interest_fraction", "colo_usd_per_w_month", "energy_usd_per_j", "repair_fraction"]
    ),
    st.floats(1e-9, 0.5),
    st.floats(1e-9, 0.5),
)
def test_a_cheaper_input_never_costs_more(name: str, one: float, other: float) -> None:
    scale = {"capex_usd": 1e6, "energy_usd_per_j": 1e-6}.get(name, 1.0)
    low, high = sorted((one * scale, other * scale))
    base = Ownership(capex_usd=30_000.0)
    cheap, dear = (owned(msgspec.structs.replace(base, **{name: value})).hour.value for value in (low, high))
    assert cheap <= dear * (1.0 + 1e-9)


@pytest.mark.parametrize("owner", ["hyperscaler", "neocloud"])
@given(capex=st.floats(100.0, 1e6))
def test_scopes_hold_each_other_and_shares_end_at_all(owner: str, capex: float) -> None:
    found = scopes(owned(Ownership(capex_usd=capex, owner=owner)), CATALOG)
    values = [one.figure.value for one in found]
    assert values == sorted(values)
    assert found[-1].share_fraction == 1.0


@given(st.floats(1.0, 1e4), st.floats(60.0, 1e7), st.floats(0.0, 1e5), st.floats(0.0, 1e3))
def test_more_nodes_on_spot_never_keep_more(
    nodes: float, up_s: float, restart_s: float, blocking_s: float
) -> None:
    few, many = (spot_ettr(count, up_s, restart_s, blocking_s) for count in (nodes, 2.0 * nodes))
    assert 0.0 <= many <= few * (1.0 + 1e-9) <= 1.0 + 1e-6


@given(
    st.floats(0.01, 1e6), st.floats(1e3, 1e15), st.integers(0, 5), st.floats(0.0, 1e6), st.floats(1e-3, 1e3)
)
def test_the_break_even_is_where_both_cost_the_same(
    replica: float, capacity: float, spare: int, fixed: float, api: float
) -> None:
    own = Dedicated(
        replica=derived("replica", replica, "usd"), replica_tokens=capacity, num_spare=spare,
        fixed=derived("staff", fixed, "usd"),
    )  # fmt: skip
    found = break_even(own, derived("API", api, "usd_per_mtok"))
    if found is None:
        assert own.full_usd_per_mtok >= api * (1.0 - 1e-9)
        return
    assume(isfinite(found.value) and found.value > 1.0)
    assert own.month_usd(found.value) <= api / 1e6 * found.value * (1.0 + 1e-6)
    assert own.month_usd(found.value * 0.999) > api / 1e6 * found.value * 0.999 * (1.0 - 1e-6)
    assert false_nodes(found) == []


@given(st.floats(0.01, 1e6), st.floats(1e3, 1e15), st.floats(1e-3, 1e3), volumes)
def test_a_curve_never_falls_and_has_no_holes(
    replica: float, capacity: float, api: float, tokens: float
) -> None:
    points = curve(
        Dedicated(replica=derived("replica", replica, "usd"), replica_tokens=capacity), api, tokens
    )
    costs = [one.own_usd for one in points]
    assert costs == sorted(costs)
    assert all(isfinite(one.own_usd) and isfinite(one.api_usd) for one in points)
