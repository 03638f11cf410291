"""What one key has used and holds: the one set of counters that refuses, and that headers, lists and bills show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from datahall.serve.ledger.key import Key
from datahall.serve.ledger.money import MTOK, Price, Usage, usd
from datahall.serve.ledger.period import NEVER_NS, SECOND_NS, span_of
from datahall.serve.ledger.window import Window

NO_LIMIT = 2**62

Code = Literal[
    "invalid_api_key", "model_not_found", "not_permitted", "rate_limit_exceeded", "request_too_large",
    "insufficient_quota", "ledger_unavailable",
]  # fmt: skip


class Refusal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a request is not let in, as its answer says it."""

    status: int
    code: Code
    message: str
    retry_after_s: int | None = None  # None: it makes no sense to try again


class Standing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How an account stands; a limit of None is none."""

    request_limit: int | None
    requests_left: int
    request_reset_s: int
    token_limit: int | None
    tokens_left: int
    token_reset_s: int
    num_open: int
    budget_nano_usd: int | None
    spent_nano_usd: int
    reserved_nano_usd: int

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The limits as the answer of a request has them."""
        found: tuple[tuple[str, str], ...] = ()
        if self.request_limit is not None:
            found += (
                ("x-ratelimit-limit-requests", str(self.request_limit)),
                ("x-ratelimit-remaining-requests", str(self.requests_left)),
                ("x-ratelimit-reset-requests", f"{self.request_reset_s}s"),
            )
        if self.token_limit is not None:
            found += (
                ("x-ratelimit-limit-tokens", str(self.token_limit)),
                ("x-ratelimit-remaining-tokens", str(self.tokens_left)),
                ("x-ratelimit-reset-tokens", f"{self.token_reset_s}s"),
            )
        if self.budget_nano_usd is not None:
            left = max(0, self.budget_nano_usd - self.spent_nano_usd - self.reserved_nano_usd)
            found += (("x-budget-remaining-usd", f"{usd(left):.9f}"),)
        return found


class Account:
    """The windows, the budget and the open requests of one key."""

    __slots__ = (
        "_models", "budget", "end_ns", "key", "num_open", "parallel", "requests", "reserved", "spent", "start_ns",
        "tokens",
    )  # fmt: skip

    def __init__(self, key: Key, spent: int, now_ns: int) -> None:
        self.requests, self.tokens = Window(NO_LIMIT), Window(NO_LIMIT)
        self.num_open = 0
        self.reserved = 0  # nano-dollars of open requests of this period
        self.become(key, spent, now_ns)

    def become(self, key: Key, spent: int, now_ns: int) -> None:
        """Take the terms of a key that was changed; what is open and used stays."""
        limits = key.limits
        self.key = key
        self.requests.limit = limits.requests_per_minute or NO_LIMIT
        self.tokens.limit = limits.tokens_per_minute or NO_LIMIT
        self.parallel = limits.parallel or NO_LIMIT
        self.budget = limits.budget_nano_usd or NO_LIMIT
        self.start_ns, self.end_ns = span_of(limits.period, now_ns)
        self.spent = spent  # nano-dollars of this period
        self._models: dict[str, bool] = {}

    def may_use(self, model: str) -> bool:
        """As the key says it, remembered for models of the gateway, which are few."""
        known = self._models.get(model)
        if known is None:
            known = self._models[model] = self.key.may_use(model)
        return known

    def roll(self, now_ns: int) -> None:
        """Let what is past be past."""
        second = now_ns // SECOND_NS
        self.requests.roll(second)
        self.tokens.roll(second)
        if now_ns >= self.end_ns:
            self.start_ns, self.end_ns = span_of(self.key.limits.period, now_ns)
            self.spent = self.reserved = 0

    def refusal(self, tokens: int, nano_usd: int, now_ns: int) -> Refusal | None:
        """Why a request of so many tokens and so much money cannot be let in now, if it cannot."""
        if self.num_open >= self.parallel:
            return _slow_down(f"{self.parallel} requests at once", 1)
        requests, window = self.requests, self.tokens
        if requests.total >= requests.limit:
            return _slow_down(f"{requests.limit} requests a minute", requests.wait_s(1) or 1)
        if window.total + tokens > window.limit and tokens:
            wait_s = window.wait_s(tokens)
            if wait_s is None:
                return Refusal(
                    status=429,
                    code="request_too_large",
                    message=f"the request may take {tokens} tokens, more than the key's {window.limit} a minute",
                )
            return _slow_down(f"{window.limit} tokens a minute", wait_s)
        if self.spent + self.reserved + nano_usd > self.budget:
            return self._unpaid(nano_usd, now_ns)
        return None

    def room(self, prompt: int, prices: Sequence[Price]) -> int | None:
        """Tokens of an answer to a prompt that may be let in now, at the dearest of some prices; None: any number."""
        room = []
        if self.tokens.limit < NO_LIMIT:
            room.append(self.tokens.left - prompt)
        if self.budget < NO_LIMIT:
            left = self.budget - self.spent - self.reserved
            for price in prices:
                for_answer = left - price.cost_nano_usd(Usage(prompt)) - 1  # which rounding may take
                if price.output_nano_usd:
                    room.append(for_answer * MTOK // price.output_nano_usd)
            room.append(NO_LIMIT)
        return min(room, default=None)

    def _unpaid(self, nano_usd: int, now_ns: int) -> Refusal:
        left = max(0, self.budget - self.spent - self.reserved)
        frees = self.reserved > 0 or self.end_ns < NEVER_NS
        wait_s = 1 if self.spent + nano_usd <= self.budget else -(-(self.end_ns - now_ns) // SECOND_NS)
        return Refusal(
            status=402,
            code="insufficient_quota",
            message=f"the request may cost ${usd(nano_usd):.6f}, of ${usd(self.budget):.2f} "
            f"({self.key.limits.period}) ${usd(left):.6f} is left",
            retry_after_s=wait_s if frees else None,
        )

    def standing(self, now_ns: int) -> Standing:
        """The counters, to be shown."""
        self.roll(now_ns)
        limits = self.key.limits
        return Standing(
            request_limit=limits.requests_per_minute or None,
            requests_left=self.requests.left,
            request_reset_s=self.requests.empty_s,
            token_limit=limits.tokens_per_minute or None,
            tokens_left=self.tokens.left,
            token_reset_s=self.tokens.empty_s,
            num_open=self.num_open,
            budget_nano_usd=limits.budget_nano_usd or None,
            spent_nano_usd=self.spent,
            reserved_nano_usd=self.reserved,
        )


def _slow_down(limit: str, wait_s: int) -> Refusal:
    return Refusal(
        status=429,
        code="rate_limit_exceeded",
        message=f"the key's limit of {limit} is reached; try again in {wait_s} s",
        retry_after_s=wait_s,
    )
