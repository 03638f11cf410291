"""From how many tokens a month a service of one's own is cheaper than an API: a curve with steps, not a threshold.

    own(V) = S + (⌈⌈V/c⌉ / s⌉ · s + k) · F,   api(V) = p · V
    V*     = (S + (n + k) · F) / p            of the fewest replicas n, s at once, for which that is at most n · c

c are the tokens of a month that a replica serves with room for the peak, F what it costs where all of its server is
used, s as many as share a server that is bought whole, k replicas that stand by, S what is paid whatever comes.
Smooth, it is S + k·F over what each token saves, p − F/c; where a full replica's tokens cost more than the API's there
is none.
"""

from __future__ import annotations

from math import ceil, inf

import msgspec

from datahall.breakdown import Breakdown, derived, product, quotient, total
from datahall.units import MTOK

STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # of the volume that is asked about


def tokens_usd(usd_per_mtok: float, tokens: float) -> float:
    """What so many tokens cost at the price of an API."""
    return usd_per_mtok / MTOK * tokens


def token_price(api: Breakdown) -> Breakdown:
    """What one costs."""
    return quotient("price of a token", api, derived("tokens of a million", MTOK, "tokens"), "usd")


class Dedicated(msgspec.Struct, frozen=True, kw_only=True):
    """A service of one's own: whole replicas, a month."""

    replica: Breakdown  # what one costs a month, of a server that is full [USD]
    replica_tokens: float  # that it serves a month
    num_spare: int = 0  # replicas that stand by
    fixed: Breakdown | None = None  # what is paid whatever comes [USD]
    at_once: int = 1  # replicas of a server, which is bought whole

    def num_replicas(self, tokens: float) -> int:
        """Those that so many tokens need, and those that stand by."""
        return max(1, ceil(tokens / self.replica_tokens - 1e-9)) + self.num_spare

    def num_paid(self, tokens: float) -> int:
        """All that find room on the servers which those take, and those that stand by."""
        needed = self.num_replicas(tokens) - self.num_spare
        return ceil(needed / self.at_once) * self.at_once + self.num_spare

    def month_usd(self, tokens: float) -> float:
        """What so many tokens a month cost."""
        fixed = self.fixed.value if self.fixed is not None else 0.0
        return fixed + self.num_paid(tokens) * self.replica.value

    def token_usd_per_mtok(self, tokens: float) -> float:
        return self.month_usd(tokens) / tokens * MTOK

    @property
    def full_usd_per_mtok(self) -> float:
        """A million tokens of a replica that has all it can serve."""
        return self.replica.value / self.replica_tokens * MTOK


def break_even(own: Dedicated, api: Breakdown) -> Breakdown | None:
    """The tokens a month from which it is cheaper than an API [USD/Mtok]; None where it never is.

    >>> from datahall.breakdown import given
    >>> month = given("an H100 for 730 h", 3.29 * 730, "usd")
    >>> one = Dedicated(replica=month, replica_tokens=1e11)
    >>> round(break_even(one, given("8B", 0.20, "usd_per_mtok")).value / 1e9, 1)
    12.0
    """
    count = _fewest(own, api.value)
    if count is None:
        return None
    return _at(own, api, count)


def _fewest(own: Dedicated, usd_per_mtok: float) -> int | None:
    """The fewest replicas, in whole servers, with which an API would cost as much: n · (p·c − F) ≥ S + k·F."""
    saved = tokens_usd(usd_per_mtok, own.replica_tokens) - own.replica.value
    if saved <= 0.0:
        return None
    fixed = (own.fixed.value if own.fixed is not None else 0.0) + own.num_spare * own.replica.value
    return max(1, ceil(fixed / saved / own.at_once - 1e-9)) * own.at_once


def _at(own: Dedicated, api: Breakdown, count: int) -> Breakdown:
    replicas = derived("replicas, with those that stand by", count + own.num_spare, "count")
    parts = [product("replicas a month", (replicas, own.replica), "usd")]
    if own.fixed is not None and own.fixed.value:
        parts.append(own.fixed)
    return quotient("break-even", total("paid whatever comes", parts), token_price(api), "tokens")


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One volume: what each way costs a month."""

    tokens: float
    num_replicas: int
    own_usd: float
    api_usd: float

    @property
    def own_over_api_ratio(self) -> float:
        return self.own_usd / self.api_usd if self.api_usd else inf

    @property
    def apart_fraction(self) -> float:
        """How far one's own service is from the API's bill, below or above."""
        return abs(1.0 - self.own_over_api_ratio)

    @property
    def builds(self) -> bool:
        """Whether one's own service is the cheaper one."""
        return self.own_usd < self.api_usd


def curve(own: Dedicated, usd_per_mtok: float, tokens: float) -> tuple[Point, ...]:
    """Both ways at volumes around one."""
    return tuple(point(own, usd_per_mtok, step * tokens) for step in STEPS)


def point(own: Dedicated, usd_per_mtok: float, tokens: float) -> Point:
    """Both ways at one volume."""
    return Point(
        tokens=tokens,
        num_replicas=own.num_replicas(tokens),
        own_usd=own.month_usd(tokens),
        api_usd=tokens_usd(usd_per_mtok, tokens),
    )
