"""What a key, or a customer by all of its keys, has used and holds: the one set of counters that refuses, and that
headers, lists and bills show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from datahall.serve.ledger.key import Key, Limits
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

    @property
    def budget_left(self) -> int:
        """Nano-dollars that are neither spent nor held."""
        return max(0, (self.budget_nano_usd or NO_LIMIT) - self.spent_nano_usd - self.reserved_nano_usd)

    def narrowed(self, other: Standing) -> Standing:
        """Of two that both bind, whatever has less left."""
        found = self
        if other.requests_left < self.requests_left:
            found = msgspec.structs.replace(
                found,
                request_limit=other.request_limit,
                requests_left=other.requests_left,
                request_reset_s=other.request_reset_s,
            )
        if other.tokens_left < self.tokens_left:
            found = msgspec.structs.replace(
                found,
                token_limit=other.token_limit,
                tokens_left=other.tokens_left,
                token_reset_s=other.token_reset_s,
            )
        if other.budget_nano_usd is not None and other.budget_left < self.budget_left:
            found = msgspec.structs.replace(
                found,
                budget_nano_usd=other.budget_nano_usd,
                spent_nano_usd=other.spent_nano_usd,
                reserved_nano_usd=other.reserved_nano_usd,
            )
        return found

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
            found += (("x-budget-remaining-usd", f"{usd(self.budget_left):.9f}"),)
        return found


class Account:
    """The windows, the budget and the open requests of a key, or of a customer by all of its keys."""

    __slots__ = (
        "budget", "end_ns", "limits", "num_open", "parallel", "requests", "reserved", "spent", "start_ns", "tokens",
        "whose",
    )  # fmt: skip

    def __init__(self, whose: Literal["key", "customer"], limits: Limits, spent: int, now_ns: int) -> None:
        self.whose = whose
        self.requests, self.tokens = Window(NO_LIMIT), Window(NO_LIMIT)
        self.num_open = 0
        self.reserved = 0  # nano-dollars of open requests of this period
        self.limit(limits, spent, now_ns)

    def limit(self, limits: Limits, spent: int, now_ns: int) -> None:
        """Take other limits; what is open and used stays."""
        self.limits = limits
        self.requests.limit = limits.requests_per_minute or NO_LIMIT
        self.tokens.limit = limits.tokens_per_minute or NO_LIMIT
        self.parallel = limits.parallel or NO_LIMIT
        self.budget = limits.budget_nano_usd or NO_LIMIT
        self.start_ns, self.end_ns = span_of(limits.period, now_ns)
        self.spent = spent  # nano-dollars of this period

    def open_again(self, held: Sequence[tuple[int, int]]) -> None:
        """Know what is open, as when it was admitted and what is held for it."""
        self.num_open = len(held)
        self.reserved = sum(nano_usd for admitted_ns, nano_usd in held if admitted_ns >= self.start_ns)

    def hold(self, tokens: int, nano_usd: int) -> int:
        """A request is let in; the turn of the windows says when."""
        self.num_open += 1
        self.reserved += nano_usd
        self.tokens.take(tokens)
        return self.requests.take(1)

    def charge(self, admitted_ns: int, held_nano_usd: int, nano_usd: int) -> None:
        """A request is over, and what was held for it is what it cost."""
        self.num_open -= 1
        if admitted_ns >= self.start_ns:
            self.reserved -= held_nano_usd
            self.spent += nano_usd

    def give_back(self, turn: int, tokens: int, requests: int) -> None:
        """Tokens, and the request itself, that were not taken."""
        self.tokens.change(turn, -tokens)
        if requests:
            self.requests.change(turn, -requests)

    def roll(self, now_ns: int) -> None:
        """Let what is past be past."""
        second = now_ns // SECOND_NS
        self.requests.roll(second)
        self.tokens.roll(second)
        if now_ns >= self.end_ns:
            self.start_ns, self.end_ns = span_of(self.limits.period, now_ns)
            self.spent = self.reserved = 0

    def refusal(self, tokens: int, nano_usd: int, now_ns: int) -> Refusal | None:
        """Why a request of so many tokens and so much money cannot be let in now, if it cannot."""
        if self.num_open >= self.parallel:
            return self._slow_down(f"{self.parallel} requests at once", 1)
        requests, window = self.requests, self.tokens
        if requests.total >= requests.limit:
            return self._slow_down(f"{requests.limit} requests a minute", requests.wait_s(1) or 1)
        if window.total + tokens > window.limit and tokens:
            wait_s = window.wait_s(tokens)
            if wait_s is None:
                return Refusal(
                    status=429,
                    code="request_too_large",
                    message=f"the request may take {tokens} tokens, more than the {self.whose}'s {window.limit} "
                    "a minute",
                )
            return self._slow_down(f"{window.limit} tokens a minute", wait_s)
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
            message=f"the request may cost ${usd(nano_usd):.6f}, of the {self.whose}'s ${usd(self.budget):.2f} "
            f"({self.limits.period}) ${usd(left):.6f} is left",
            retry_after_s=wait_s if frees else None,
        )

    def standing(self, now_ns: int) -> Standing:
        """The counters, to be shown."""
        self.roll(now_ns)
        limits = self.limits
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

    def _slow_down(self, limit: str, wait_s: int) -> Refusal:
        return Refusal(
            status=429,
            code="rate_limit_exceeded",
            message=f"the {self.whose}'s limit of {limit} is reached; try again in {wait_s} s",
            retry_after_s=wait_s,
        )


class KeyAccount(Account):
    """The account of a key; `payer` is that of its customer, where the customer has limits of its own."""

    __slots__ = ("_models", "key", "payer")

    def __init__(self, key: Key, payer: Account | None, spent: int, now_ns: int) -> None:
        super().__init__("key", key.limits, spent, now_ns)
        self.payer = payer
        self._know(key)

    def become(self, key: Key, spent: int, now_ns: int) -> None:
        """Take the terms of a key that was changed; what is open and used stays."""
        self.limit(key.limits, spent, now_ns)
        self._know(key)

    def may_use(self, model: str) -> bool:
        """As the key says it, remembered for models of the gateway, which are few."""
        known = self._models.get(model)
        if known is None:
            known = self._models[model] = self.key.may_use(model)
        return known

    def _know(self, key: Key) -> None:
        self.key = key
        self._models: dict[str, bool] = {}
