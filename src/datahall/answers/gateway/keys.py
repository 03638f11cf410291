"""Making, listing, limiting, renewing and revoking the keys of a gateway."""

from __future__ import annotations

from collections.abc import Mapping

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.follow import follow
from datahall.answers.gateway.limits import COLUMNS, SEEN, limits_asked, shown
from datahall.counted import counted
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.gateway import GatewayState, KeyTerms
from datahall.serve.ledger.desk import desk
from datahall.serve.ledger.key import UNLIMITED, Key
from datahall.serve.ledger.keys import create, end_ns, limit, revoke, rotate, spent_usd
from datahall.serve.ledger.period import day_of

SAID_ONCE = "the key is said this once: what is kept of it lets nobody in"


def gateway_keys_create(scenario: Scenario) -> Answer:
    """A new key; its secret is said once, and kept nowhere."""
    asked = scenario.one(KeyTerms)
    with desk(scenario.one(GatewayState).state) as open_desk:
        key, secret = create(
            open_desk.store,
            open_desk.pepper,
            name=asked.name,
            customer=asked.customer,
            models=asked.models,
            routes=asked.routes,
            limits=limits_asked(asked, UNLIMITED),
            now_ns=open_desk.now_ns,
            expires_ns=end_ns(open_desk.now_ns, asked.expires_s),
        )
    return Answer(
        kind="key",
        headline=f"{key.name}: {secret}",
        results={"name": key.name, "customer": key.customer, "key": secret},
        tables=(_table([key], {}),),
        notes=(SAID_ONCE,),
        next_commands=(follow(scenario, "gateway keys list"),),
    )


def gateway_keys_list(scenario: Scenario) -> Answer:
    """Every key with its terms and what it has spent of its budget."""
    with desk(scenario.one(GatewayState).state) as open_desk:
        keys, _ = open_desk.store.keys()
        states = {key.id: key.state(open_desk.now_ns) for key in keys}
        spent = spent_usd(open_desk.store, keys, open_desk.now_ns)
    active = [key for key in keys if states[key.id] == "active"]
    return Answer(
        kind="keys",
        headline=f"{counted(len(keys), 'key')}, {len(active)} active.",
        results={"num_keys": len(keys), "num_active": len(active)},
        tables=(_table(keys, spent, states),) if keys else (),
        next_commands=(follow(scenario, "gateway bill"),)
        if keys
        else (follow(scenario, "gateway keys create", {"name": "acme"}),),
    )


def gateway_keys_limit(scenario: Scenario) -> Answer:
    """Other limits for a key; those that are not named stay."""
    asked = scenario.one(KeyTerms)
    with desk(scenario.one(GatewayState).state) as open_desk:
        key = limit(open_desk.store, asked.name, lambda was: limits_asked(asked, was))
    return Answer(
        kind="key",
        headline=f"{key.name} has these limits from now on.",
        results={"name": key.name},
        tables=(_table([key], {}),),
        notes=(SEEN,),
        next_commands=(follow(scenario, "gateway keys list"),),
    )


def gateway_keys_rotate(scenario: Scenario) -> Answer:
    """Another secret for a key: the one before lets nobody in any more, and all else stays."""
    with desk(scenario.one(GatewayState).state) as open_desk:
        key, secret = rotate(open_desk.store, open_desk.pepper, scenario.one(KeyTerms).name)
    return Answer(
        kind="key",
        headline=f"{key.name}: {secret}",
        results={"name": key.name, "customer": key.customer, "key": secret},
        notes=(SAID_ONCE, SEEN),
        next_commands=(follow(scenario, "gateway keys list"),),
    )


def gateway_keys_revoke(scenario: Scenario) -> Answer:
    """The end of a key."""
    with desk(scenario.one(GatewayState).state) as open_desk:
        key = revoke(open_desk.store, scenario.one(KeyTerms).name, open_desk.now_ns)
    return Answer(
        kind="key",
        headline=f"{key.name} is revoked.",
        results={"name": key.name},
        notes=(SEEN, "what it has used stays in the books"),
        next_commands=(follow(scenario, "gateway keys list"),),
    )


def _table(keys: list[Key], spent: dict[int, float], states: Mapping[int, str] | None = None) -> Table:
    columns = (
        Column("name"), Column("customer"), Column("begins"), Column("state"), Column("models"), Column("routes"),
        *COLUMNS, Column("spent", "usd"), Column("made"), Column("until"),
    )  # fmt: skip
    return Table(
        title="keys",
        columns=columns,
        rows=tuple(_row(key, spent.get(key.id), (states or {}).get(key.id, "active")) for key in keys),
        note="Money over the span of its budget.",
    )


def _row(key: Key, spent: float | None, state: str) -> tuple[Cell, ...]:
    return (
        key.name, key.customer, f"{key.shown}…", state, ", ".join(key.models) or "all", ", ".join(key.routes) or "all",
        *shown(key.limits), spent, day_of(key.created_ns), day_of(key.expires_ns),
    )  # fmt: skip
