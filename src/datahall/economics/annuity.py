"""What capital costs by the hour: even payments over a life, or the value that the market takes off meanwhile.

    annuity   a = i / (1 − (1+i)^−n),  1/n without interest;   hour = (C − R·C·(1+i)^−n) · a / hours of a year
    market    V(t) = C · (1 − d)^t;                            a span of u costs V(t) · (1 − (1 − d)^u)

References: Brealey, Myers and Allen, Principles of corporate finance, equivalent annual cost; Cottier et al. (2024),
The rising costs of training frontier AI models, section 2, for the second: newer chips do more for the money.
"""

from __future__ import annotations

from datahall.breakdown import Breakdown, derived, difference, power, product, quotient, total
from datahall.units import HOUR_S, YEAR_S

YEAR_HOURS = YEAR_S / HOUR_S
NO_INTEREST = 1e-8  # below it 1 − (1+i)^−n has no digits left, and the payments are those without


def annuity(interest: Breakdown, life_years: float) -> Breakdown:
    """Even payments a year over what they pay off: i / (1 − (1+i)^−n).

    >>> from datahall.breakdown import given
    >>> [round(annuity(given("interest", share, "fraction"), 4.0).value, 4) for share in (0.08, 0.0)]
    [0.3019, 0.25]
    """
    years = derived("years of life", life_years, "count")
    one = derived("the whole", 1.0, "fraction")
    if interest.value < NO_INTEREST:
        return quotient("annuity", one, years, "fraction")
    return quotient(
        "annuity",
        interest,
        difference("less what is paid later", one, later(interest, life_years)),
        "fraction",
    )


def later(interest: Breakdown, years: float) -> Breakdown:
    """What a dollar after some years is worth today: (1+i)^−n."""
    growth = total("growth of a year", (derived("the whole", 1.0, "fraction"), interest))
    return power("worth today", growth, derived("years, backwards", -years, "count"), "fraction")


def even_usd_per_hour(
    name: str, capex: Breakdown, interest: Breakdown, life_years: float, residual: Breakdown | None = None
) -> Breakdown:
    """Even payments for what costs so much and leaves a share of it at the end [USD/h].

    >>> from datahall.breakdown import given
    >>> round(even_usd_per_hour("", given("price", 31250.0, "usd"), given("interest", 0.08, "fraction"), 4.0).value, 3)
    1.076
    """
    paid = capex
    if residual is not None and residual.value:
        left = product("what is left, today", (residual, capex, later(interest, life_years)), "usd")
        paid = difference("what is paid off", capex, left)
    hours = derived("hours of a year", YEAR_HOURS, "count")
    yearly = product("a year", (paid, annuity(interest, life_years)), "usd")
    return quotient(name, yearly, hours, "usd_per_hour")


def worth(capex: Breakdown, lost: Breakdown, age_years: float) -> Breakdown:
    """What hardware of some age is worth: C · (1 − d)^t."""
    return product("worth at the start", (capex, _kept(lost, age_years, "value kept until then")), "usd")


def _kept(lost: Breakdown, years: float, name: str) -> Breakdown:
    """What is left of a value after some years: (1 − d)^t."""
    kept = difference("value kept in a year", derived("the whole", 1.0, "fraction"), lost)
    return power(name, kept, derived("years", years, "count"), "fraction")


def market_loss(
    capex: Breakdown, lost: Breakdown, age_years: float, span_years: float, name: str
) -> Breakdown:
    """What hardware of some age loses over a span [USD].

    >>> from datahall.breakdown import given
    >>> cost, lost = given("price", 100.0, "usd"), given("lost", 0.5, "fraction")
    >>> market_loss(cost, lost, 1.0, 1.0, "loss").value
    25.0
    """
    one = derived("the whole", 1.0, "fraction")
    left = _kept(lost, span_years, "kept over the span")
    return product(name, (worth(capex, lost, age_years), difference("lost over the span", one, left)), "usd")


def market_usd_per_hour(
    name: str, capex: Breakdown, lost: Breakdown, age_years: float, span_years: float
) -> Breakdown:
    """The same for each hour of the span, in the mean [USD/h]."""
    hours = derived("hours of the span", span_years * YEAR_HOURS, "count")
    return quotient(
        name, market_loss(capex, lost, age_years, span_years, "value lost"), hours, "usd_per_hour"
    )
