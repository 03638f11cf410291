"""A model that the gateway offers: who answers for it, how long that may take, and who answers if nobody does."""

from __future__ import annotations

import msgspec

from datahall.serve.ledger.money import FREE, Price
from datahall.serve.upstreams.pool import Pool


class Model(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One name that may be asked for."""

    name: str
    pool: Pool
    price: Price = FREE
    fallbacks: tuple[str, ...] = ()  # models that answer in its place when none of its upstreams does
    relief: str = ""  # a smaller model that answers in its place while too many wait for it
    relief_at: int = 0  # how many those are
    num_retries: int = 2
    hedge_s: float = 0.0  # after which a second upstream is asked as well; 0: never
    deadline_s: float = 600.0
    longest_tokens: int = 4096  # of an answer whose length a request leaves to the model
    queue_s: float = 30.0  # that a request may wait for room

    @property
    def others(self) -> tuple[str, ...]:
        """Models that may answer in its place."""
        return (*self.fallbacks, *((self.relief,) if self.relief else ()))
