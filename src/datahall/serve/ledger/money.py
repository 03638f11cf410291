"""Tokens of a request and what they cost, in whole nano-dollars.

    cost = (prompt − cached) · P_in + cached · P_cached + completion · P_out   over 10⁶ tokens, rounded once,   + P_call

Prices are whole nano-dollars per million tokens, in which every price that is listed anywhere is exact; a sum of costs
is then exact too, whatever its order.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

NANO = 10**9  # nano-dollars of a dollar
MTOK = 10**6
MOST_TOKENS = 2**40  # of one request; what an upstream says beyond it is a slip


class Usage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Tokens of one request; `cached` are those of the prompt that a prefix cache had."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt + self.completion

    def bounded(self) -> Usage:
        """Counts that an upstream may have said: none below 0 or beyond all reason.

        >>> Usage(-5, 9, 2).bounded()
        Usage(prompt=0, cached=0, completion=2)
        """
        if 0 <= self.cached <= self.prompt <= MOST_TOKENS and 0 <= self.completion <= MOST_TOKENS:
            return self
        prompt, cached, completion = (
            min(max(0, count), MOST_TOKENS) for count in (self.prompt, self.cached, self.completion)
        )
        return Usage(prompt, min(cached, prompt), completion)


NOTHING = Usage()


class Price(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a model costs: nano-dollars per million tokens, and per call."""

    input_nano_usd: int = 0
    cached_nano_usd: int = 0
    output_nano_usd: int = 0
    call_nano_usd: int = 0

    def cost_nano_usd(self, usage: Usage) -> int:
        """What so many tokens cost, rounded to the next nano-dollar, halves up.

        >>> Price(input_nano_usd=2_500_000_000, output_nano_usd=10_000_000_000).cost_nano_usd(Usage(1000, 0, 100))
        3500000
        """
        cached = min(usage.cached, usage.prompt)
        tokens = (
            (usage.prompt - cached) * self.input_nano_usd
            + cached * self.cached_nano_usd
            + usage.completion * self.output_nano_usd
        )
        return (tokens + MTOK // 2) // MTOK + self.call_nano_usd


FREE = Price()


def nano_usd(dollars: float | str) -> int:
    """Whole nano-dollars of what a person wrote: 0.075 is 75,000,000, and not a float's neighbour of it."""
    return int((Decimal(str(dollars)) * NANO).to_integral_value())


def usd(nano: int) -> float:
    """Dollars, to be shown."""
    return nano / NANO
