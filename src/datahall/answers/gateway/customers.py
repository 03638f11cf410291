"""Customers of a gateway: what all keys of one share."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answer import Answer, Column, Table
from datahall.answers.follow import follow
from datahall.answers.gateway.limits import COLUMNS, SEEN, limits_asked, shown
from datahall.counted import counted
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.gateway import GatewayState, KeyTerms
from datahall.serve.ledger.desk import desk
from datahall.serve.ledger.keys import Customer, customers, limit_customer


def gateway_customers_list(scenario: Scenario) -> Answer:
    """Every customer with the limits that its keys share, and what they have spent of its budget."""
    with desk(scenario.one(GatewayState).state) as open_desk:
        found = customers(open_desk.store, open_desk.now_ns)
    return Answer(
        kind="customers",
        headline=f"{counted(len(found), 'customer')}.",
        results={"num_customers": len(found)},
        tables=(_table(found),) if found else (),
        next_commands=(follow(scenario, "gateway keys list"),)
        if found
        else (follow(scenario, "gateway keys create", {"name": "acme"}),),
    )


def gateway_customers_limit(scenario: Scenario) -> Answer:
    """Other limits for all keys of a customer together; those that are not named stay."""
    asked = scenario.one(KeyTerms)
    with desk(scenario.one(GatewayState).state) as open_desk:
        customer = limit_customer(
            open_desk.store, asked.customer, lambda was: limits_asked(asked, was), open_desk.now_ns
        )
    nobody = f"no key is of {customer.name} yet: gateway keys create names its customer"
    return Answer(
        kind="customer",
        headline=f"The keys of {customer.name} share these limits from now on.",
        results={"name": customer.name, "num_keys": customer.num_keys},
        tables=(_table([customer]),),
        notes=(SEEN,) if customer.num_keys else (nobody, SEEN),
        next_commands=(follow(scenario, "gateway customers list"),),
    )


def _table(found: Sequence[Customer]) -> Table:
    return Table(
        title="customers",
        columns=(Column("customer"), Column("keys", "count"), *COLUMNS, Column("spent", "usd")),
        rows=tuple((one.name, one.num_keys, *shown(one.limits), one.spent_usd) for one in found),
        note="Money of all keys over the span of the budget.",
    )
