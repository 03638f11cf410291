"""A firm that grows: what its customers' tokens cost on the cheapest way, now and at other sizes."""

from __future__ import annotations

import msgspec

from datahall.economics.growth import Growth
from datahall.planner.buying.service import Choice, choice_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.hosted import Business
from datahall.scenario.usual import USUAL_MODEL


def asked_model(scenario: Scenario) -> Scenario:
    """The same question about a usual model, where nobody names one."""
    if scenario.root.model:
        return scenario
    return scenario.having(msgspec.structs.replace(scenario.root, model=USUAL_MODEL))


def volume(said: Business) -> float:
    """Tokens of all customers a month."""
    assert said.customers is not None
    assert said.customer_tokens is not None
    return said.customers * said.customer_tokens


def growth_of(scenario: Scenario) -> tuple[Growth, Choice]:
    """The firm as it is, and the choice between its ways at its volume."""
    said = scenario.one(Business)
    found = choice_of(asked_model(scenario), volume(said))
    assert said.customers is not None
    assert said.customer_tokens is not None
    growth = Growth(
        num_customers=said.customers,
        customer_tokens=said.customer_tokens,
        api=None if found.api is None or found.api_is_late else found.api.blended,
        own=None if found.best is None else found.best.own,
        stages=scenario.catalog.stages(),
        revenue_usd=said.revenue_usd,
    )
    return growth, found
