"""A key: who asks, for whom, which models and routes, until when, and how much.

A secret is a prefix and 256 random bits.  What is kept of it is its HMAC-SHA256 under a pepper that lies apart from the
ledger, so that neither the ledger nor the pepper alone lets anybody in, and that nobody can try secrets offline.
"""

from __future__ import annotations

import hmac
import secrets
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

from datahall.scenario.words import BudgetPeriod

PREFIX = "dh-"
SECRET_BYTES = 32
SHOWN = len(PREFIX) + 6  # characters of a secret by which a person knows it


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a key may use; 0 is no limit."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    parallel: int = 0  # requests at once
    budget_nano_usd: int = 0
    period: BudgetPeriod = "month"


UNLIMITED = Limits()


State: TypeAlias = Literal["active", "expired", "revoked"]


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key as the ledger keeps it; the secret is not among it."""

    id: int
    name: str
    customer: str  # who pays, and whose answers a cache may give again
    shown: str  # how its secret begins
    digest: bytes
    models: tuple[str, ...] = ()  # patterns such as "llama-*"; none: all
    routes: tuple[str, ...] = ()
    limits: Limits = UNLIMITED
    created_ns: int
    expires_ns: int = 0  # 0: never
    revoked_ns: int = 0  # 0: not

    def may_use(self, model: str) -> bool:
        """Whether it is for a model."""
        return not self.models or any(fnmatchcase(model, pattern) for pattern in self.models)

    def may_ask(self, route: str) -> bool:
        """Whether it is for a route; nothing is what every key may ask, as the list of its models."""
        return not self.routes or not route or route in self.routes

    def state(self, now_ns: int) -> State:
        """In a word, for lists."""
        if self.revoked_ns:
            return "revoked"
        return "expired" if self.is_over(now_ns) else "active"

    def is_over(self, now_ns: int) -> bool:
        """Whether it is past its end."""
        return bool(self.expires_ns) and now_ns >= self.expires_ns


def new_secret() -> str:
    """A secret that nobody has had before."""
    return PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def digest_of(secret: bytes, pepper: bytes) -> bytes:
    """What is kept of a secret."""
    return hmac.digest(pepper, secret, "sha256")
