"""Making, changing and revoking keys, and limits of customers: written into the tables, where a gateway that runs sees
it within a commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from datahall.errors import ServingError, UnknownNameError
from datahall.scenario.kinds.budgets import spending
from datahall.scenario.words import BudgetPeriod
from datahall.serve.ledger.disk.store import Store
from datahall.serve.ledger.key import SHOWN, UNLIMITED, Key, Limits, digest_of, new_secret
from datahall.serve.ledger.money import nano_usd, usd
from datahall.serve.ledger.period import SECOND_NS, span_of


class Customer(msgspec.Struct, frozen=True, kw_only=True):
    """A customer, what all of its keys share, and what they have spent in the present span of the budget."""

    name: str
    num_keys: int  # that are active
    limits: Limits
    spent_usd: float


def create(
    store: Store, pepper: bytes, *, name: str, customer: str = "", models: Sequence[str] = (),
    routes: Sequence[str] = (), limits: Limits = UNLIMITED, now_ns: int, expires_ns: int = 0,
) -> tuple[Key, str]:  # fmt: skip
    """A new key, and its secret, which is shown this once."""
    secret = new_secret()
    key = Key(
        id=0,
        name=name,
        customer=customer or name,
        shown=secret[:SHOWN],
        digest=digest_of(secret.encode(), pepper),
        models=tuple(models),
        routes=tuple(routes),
        limits=limits,
        created_ns=now_ns,
        expires_ns=expires_ns,
    )
    try:
        return store.add(key), secret
    except sqlite3.IntegrityError as error:
        raise ServingError(
            f'there is a key called "{name}"', field="name", hint="another name, or revoke that one"
        ) from error


def revoke(store: Store, name: str, now_ns: int) -> Key:
    """End a key for good; what it used stays in the books."""
    key = key_named(store, name)
    if not key.revoked_ns:
        store.change(key.id, revoked_ns=now_ns)
    return key


def rotate(store: Store, pepper: bytes, name: str) -> tuple[Key, str]:
    """Another secret for a key; the one before is no longer known, and what it used stays its own."""
    key = key_named(store, name)
    if key.revoked_ns:
        raise ServingError(
            f"{key.name} is revoked for good", field="name", hint="a new key: datahall gateway keys create"
        )
    secret = new_secret()
    shown, digest = secret[:SHOWN], digest_of(secret.encode(), pepper)
    store.change(key.id, shown=shown, digest=digest)
    return msgspec.structs.replace(key, shown=shown, digest=digest), secret


def limit(store: Store, name: str, change: Callable[[Limits], Limits]) -> Key:
    """Give a key other limits; what it has used stays."""
    key = key_named(store, name)
    limits = change(key.limits)
    store.change(key.id, limits=msgspec.json.encode(limits).decode())
    return msgspec.structs.replace(key, limits=limits)


def limit_customer(store: Store, name: str, change: Callable[[Limits], Limits], now_ns: int) -> Customer:
    """Give all keys of a customer other limits to share; what they have used stays."""
    store.limit_customer(name, change(store.customers().get(name, UNLIMITED)))
    return next(one for one in customers(store, now_ns) if one.name == name)


def declare_customers(store: Store, said: Mapping[str, Limits]) -> None:
    """Write down the limits that a file gives to customers, where they are others by now."""
    there = store.customers()
    for name, limits in said.items():
        if there.get(name) != limits:
            store.limit_customer(name, limits)


def customers(store: Store, now_ns: int) -> list[Customer]:
    """Every customer that has a key or limits, by name."""
    keys, _ = store.keys()
    limits = {key.customer: UNLIMITED for key in keys} | store.customers()
    spent = _spent(store, limits.values(), now_ns)
    used, num_keys = dict.fromkeys(limits, 0), dict.fromkeys(limits, 0)
    for key in keys:
        used[key.customer] += spent[limits[key.customer].period].get(key.id, 0)
        num_keys[key.customer] += key.state(now_ns) == "active"
    return [
        Customer(name=name, num_keys=num_keys[name], limits=limits[name], spent_usd=usd(used[name]))
        for name in sorted(limits)
    ]


def after(was: Limits, requests: int | None, tokens: int | None, parallel: int | None, budget: str) -> Limits:
    """Limits of which some were said anew; None and nothing leave one as it was."""
    said = {
        name: value
        for name, value in (
            ("requests_per_minute", requests),
            ("tokens_per_minute", tokens),
            ("parallel", parallel),
        )
        if value is not None
    }
    found = msgspec.structs.replace(was, **said)
    if not budget:
        return found
    dollars, period = spending(budget)
    return msgspec.structs.replace(found, budget_nano_usd=nano_usd(str(dollars)), period=period)


def end_ns(now_ns: int, lasts_s: float | None) -> int:
    """When a key ends that lasts so long from now; 0: never."""
    return now_ns + int(lasts_s * SECOND_NS) if lasts_s is not None else 0


def spent_usd(store: Store, keys: Iterable[Key], now_ns: int) -> dict[int, float]:
    """What each key has spent in the present span of its budget."""
    keys = list(keys)
    spent = _spent(store, (key.limits for key in keys), now_ns)
    return {key.id: usd(spent[key.limits.period].get(key.id, 0)) for key in keys}


def _spent(store: Store, limits: Iterable[Limits], now_ns: int) -> dict[BudgetPeriod, dict[int, int]]:
    """What each key was charged in the present span of some budgets."""
    periods = {one.period for one in limits}
    return {period: store.spent_nano_usd(span_of(period, now_ns).start_ns) for period in periods}


def key_named(store: Store, name: str) -> Key:
    """A key by its name or by how its secret begins."""
    keys, _ = store.keys()
    for key in keys:
        if name in (key.name, key.shown):
            return key
    raise UnknownNameError(
        "key", name, [key.name for key in keys], field="name", hint="all of them: datahall gateway keys list"
    )
