"""What the admin API says of itself, and the structs that it answers with."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeAlias

import msgspec

from datahall import __version__
from datahall.scenario.words import BudgetPeriod
from datahall.serve.gateway.admin.inputs import LIMITS, NEW_KEY, NOTHING, schema
from datahall.serve.gateway.described import Refusal
from datahall.serve.ledger.bill import Line
from datahall.serve.ledger.key import Key, State
from datahall.serve.ledger.key import Limits as KeyLimits
from datahall.serve.ledger.keys import Customer
from datahall.serve.ledger.money import usd
from datahall.serve.ledger.period import day_of
from datahall.serve.openapi import PATH, Operation, described

By: TypeAlias = Literal["key", "model", "customer"]


class LimitsSaid(msgspec.Struct, frozen=True, kw_only=True):
    """What a key or a customer may use; nothing where there is no such limit."""

    rpm: int | None
    tpm: int | None
    parallel: int | None
    budget_usd: float | None
    over: BudgetPeriod

    @classmethod
    def of(cls, limits: KeyLimits) -> LimitsSaid:
        return cls(
            rpm=limits.requests_per_minute or None,
            tpm=limits.tokens_per_minute or None,
            parallel=limits.parallel or None,
            budget_usd=usd(limits.budget_nano_usd) if limits.budget_nano_usd else None,
            over=limits.period,
        )


class KeySaid(msgspec.Struct, frozen=True, kw_only=True):
    """A key; its secret is said where it is made, and nowhere else."""

    name: str
    customer: str
    begins: str
    state: State
    models: tuple[str, ...]
    routes: tuple[str, ...]
    limits: LimitsSaid
    made: str
    until: str
    spent_usd: float | None = None
    key: str | None = None

    @classmethod
    def of(
        cls, key: Key, now_ns: int, *, spent_usd: float | None = None, secret: str | None = None
    ) -> KeySaid:
        return cls(
            name=key.name,
            customer=key.customer,
            begins=key.shown,
            state=key.state(now_ns),
            models=key.models,
            routes=key.routes,
            limits=LimitsSaid.of(key.limits),
            made=day_of(key.created_ns),
            until=day_of(key.expires_ns),
            spent_usd=spent_usd,
            key=secret,
        )


class CustomerSaid(msgspec.Struct, frozen=True, kw_only=True):
    """A customer, and what its keys share."""

    name: str
    num_keys: int
    limits: LimitsSaid
    spent_usd: float

    @classmethod
    def of(cls, customer: Customer) -> CustomerSaid:
        return cls(
            name=customer.name,
            num_keys=customer.num_keys,
            limits=LimitsSaid.of(customer.limits),
            spent_usd=customer.spent_usd,
        )


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What was used in a month, the dearest first."""

    by: By
    month: str
    lines: tuple[Line, ...]


class UpstreamSaid(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream, and how it is."""

    name: str
    is_ready: bool
    is_drained: bool
    num_open: int
    num_waiting: float
    num_failed: int
    latency_s: float
    models: tuple[str, ...]


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """What is new, other or gone since the file was read before."""

    upstreams: tuple[str, ...]
    models: tuple[str, ...]
    customers: tuple[str, ...]


KEY, CUSTOMER, UPSTREAM = "/keys/{name}", "/customers/{name}", "/upstreams/{name}"
REFUSALS = (400, 401, 403, 404, 405, 503)


def _asked(path: str, about: str, answer: Any, inputs: Any = None) -> Operation:
    return Operation(
        path=path, method="POST", about=about, inputs=inputs or NOTHING, answer=answer, refusal=Refusal,
        statuses=REFUSALS, has_key=True,
    )  # fmt: skip


def _shown(path: str, about: str, answer: Any, **query: Any) -> Operation:
    return Operation(
        path=path, about=about, answer=answer, refusal=Refusal, statuses=REFUSALS, has_key=True, query=query
    )


OPERATIONS = (
    _shown("/keys", "every key with its limits, and what it has spent of its budget", list[KeySaid]),
    _asked("/keys", "a new key; its secret is said this once", KeySaid, schema(NEW_KEY)),
    _asked(f"{KEY}/limits", "other limits for a key; those that are not named stay", KeySaid, schema(LIMITS)),
    _asked(f"{KEY}/rotate", "another secret for a key; the one before lets nobody in any more", KeySaid),
    _asked(f"{KEY}/revoke", "the end of a key, at once and for good", KeySaid),
    _shown("/customers", "customers, with the limits that their keys share", list[CustomerSaid]),
    _asked(f"{CUSTOMER}/limits", "other limits for all keys of a customer together", CustomerSaid, schema(LIMITS)),
    _shown(
        "/usage", "requests, tokens and money of a month", Used,
        by={"enum": ["key", "model", "customer"], "default": "key"},
        month={"type": "string", "description": "2026-11; nothing: this one"},
    ),
    _shown("/upstreams", "upstreams, and how each is", list[UpstreamSaid]),
    _asked(f"{UPSTREAM}/drain", "send nothing new there; what has begun ends", UpstreamSaid),
    _asked(f"{UPSTREAM}/enable", "send there again", UpstreamSaid),
    _asked("/reload", "the gateway's file read anew, without dropping a request", Reloaded),
    Operation(path=PATH, about="this description", answer=dict[str, Any]),
)  # fmt: skip


@cache
def description() -> bytes:
    """The admin API as OpenAPI describes it."""
    return described("Datahall gateway admin", __version__, OPERATIONS)
