"""What a service costs: its month by each way to have the chips, a million tokens of each kind, an API beside it."""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.breakdown import Breakdown, derived, product, quotient
from datahall.economics.hosted import Hosted
from datahall.economics.service import Bought
from datahall.economics.tokens import TokenCosts
from datahall.economics.ways import Way, not_priced
from datahall.units import MTOK


class ServiceCost(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The chips of a service as they are bought, the cheapest way first; none where nobody prices them."""

    chip: str
    bought: tuple[Bought, ...]
    unpriced: tuple[Way, ...]  # ways that are allowed and have no price
    tokens: float  # of a month
    peak_ratio: float  # of the busiest hour, which the chips are for, over the mean
    costs: TokenCosts | None  # of tokens at the mean load, before overheads; None where nothing is priced
    api: Hosted | None
    asks_api: bool  # whether tokens may be bought

    @property
    def had(self) -> Bought | None:
        """The cheapest way."""
        return next(iter(self.bought), None)

    @property
    def why_not(self) -> str:
        """What has no price, and why."""
        return "; ".join(not_priced(self.unpriced))

    @cached_property
    def million_tokens(self) -> Breakdown:
        return derived("million tokens of a month", self.tokens / MTOK, "count", "at the mean load")

    @cached_property
    def all_in(self) -> Breakdown | None:
        """A million tokens with overheads and staff."""
        if self.had is None:
            return None
        return quotient("a million tokens, all in", self.had.month, self.million_tokens, "usd_per_mtok")

    @cached_property
    def api_month(self) -> Breakdown | None:
        """The same tokens bought of others."""
        if self.api is None:
            return None
        return product("a month by the API", (self.million_tokens, self.api.blended), "usd")

    @property
    def own_over_api_ratio(self) -> float | None:
        """The month over that of the API; None where one of them has no price."""
        if self.had is None or self.api_month is None:
            return None
        return self.had.month.value / self.api_month.value

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        costs = () if self.costs is None else (self.costs.input, self.costs.output, self.costs.blended)
        found = (*(one.month for one in self.bought), *costs, self.all_in, self.api_month)
        return tuple(one for one in found if one is not None)
