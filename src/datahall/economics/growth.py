"""What a customer costs and leaves as a firm grows, and at how many customers which way becomes the cheapest.

cost of a customer = infrastructure / customers,   gross margin = 1 − cost / revenue
flips at V* / tokens of a customer,  V* of `break_even.py`
"""

from __future__ import annotations

from math import floor, inf

import msgspec

from datahall.breakdown import Breakdown, derived, given, product, quotient, total
from datahall.catalog.entries.bought.stage import Stage
from datahall.economics.break_even import Dedicated, break_even, token_price, tokens_usd


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """A firm with so many customers that each use so many tokens a month."""

    num_customers: int
    customer_tokens: float
    api: Breakdown | None  # a million tokens of an API [USD/Mtok]
    own: Dedicated | None  # a service of one's own
    stages: tuple[Stage, ...]
    revenue_usd: float | None  # of a customer, a month

    @property
    def tokens(self) -> float:
        return self.num_customers * self.customer_tokens

    @property
    def api_usd(self) -> float:
        """The month by an API; inf where nobody hosts the model."""
        return inf if self.api is None else tokens_usd(self.api.value, self.tokens)

    @property
    def own_usd(self) -> float:
        """The month on one's own replicas; inf where none can serve it."""
        return inf if self.own is None else self.own.month_usd(self.tokens)

    @property
    def is_own(self) -> bool:
        """Whether one's own replicas are the cheaper way."""
        return self.own_usd < self.api_usd

    @property
    def month_usd(self) -> float:
        return min(self.own_usd, self.api_usd)

    @property
    def customer_usd(self) -> float:
        return self.month_usd / self.num_customers

    @property
    def margin_fraction(self) -> float | None:
        """What is left of revenue after infrastructure; None where nobody says the revenue."""
        return None if self.revenue_usd is None else 1.0 - self.customer_usd / self.revenue_usd

    @property
    def infrastructure_fraction(self) -> float | None:
        """Of revenue."""
        return None if self.revenue_usd is None else self.customer_usd / self.revenue_usd

    def needed_usd(self, share_fraction: float) -> float:
        """What a customer must pay so that infrastructure takes such a share of it."""
        return self.customer_usd / share_fraction

    @property
    def stage(self) -> Stage:
        """The stage that so many customers are in."""
        return next(one for one in reversed(self.stages) if self.num_customers >= one.num_customers)

    @property
    def next_stage(self) -> Stage | None:
        return next((one for one in self.stages if one.num_customers > self.num_customers), None)

    @property
    def flips(self) -> Breakdown | None:
        """Customers from which one's own replicas are cheaper; None where they never are."""
        found = break_even(self.own, self.api) if self.own is not None and self.api is not None else None
        if found is None:
            return None
        return quotient(
            "customers at break-even",
            found,
            derived("tokens of a customer", self.customer_tokens, "tokens"),
            "count",
        )

    @property
    def num_flips(self) -> int | None:
        """The first whole number of customers at which they are."""
        return None if self.flips is None else floor(self.flips.value) + 1

    @property
    def figure(self) -> Breakdown | None:
        """What a customer costs a month: of replicas and staff, or of the API's tokens."""
        if self.is_own and self.own is not None:
            count = derived("replicas that are paid", self.own.num_paid(self.tokens), "count")
            bill = product("replicas a month", (count, self.own.replica), "usd")
            if self.own.fixed is not None:
                bill = total("a month", (bill, self.own.fixed))
            customers = given("customers", self.num_customers, "count", field="customers")
            return quotient("a customer, a month", bill, customers, "usd")
        if self.api is None:
            return None
        tokens = given("tokens per customer", self.customer_tokens, "tokens", field="tokens_per_customer")
        return product("a customer, a month", (tokens, token_price(self.api)), "usd")

    def at(self, num_customers: int) -> Growth:
        """The same with other customers."""
        return msgspec.structs.replace(self, num_customers=num_customers)


def sizes(growth: Growth) -> tuple[int, ...]:
    """Customers that are worth a row: where stages begin, now, and where the cheapest way changes."""
    flips = growth.num_flips
    found = {stage.num_customers for stage in growth.stages} | {growth.num_customers}
    if flips is not None:
        found.add(flips)
    return tuple(sorted(found))
