"""A choice between serving oneself and buying tokens, refused before anything heavy is loaded."""

from __future__ import annotations

import msgspec

from datahall.errors import ScenarioError, option
from datahall.planner.buying.growth import asked_model, volume
from datahall.planner.serving.early import check_service
from datahall.scenario.idle import does_nothing
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.hosted import MOST_TOKENS, Business
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.traffic import Traffic

SPOT = ("spot_price", "preempted_every", "restart")


def check_choice(scenario: Scenario) -> None:
    """Refuse ways that leave nothing to build, terms of ways that are not weighed, and what no service is made of."""
    ways = scenario.one(Purchase).buy
    if set(ways) == {"api"}:
        raise ScenarioError(
            f"{option('buy', 'api')} leaves nothing to build",
            field="buy",
            hint=f"an API stands beside it anyway; {option('buy', 'rent,own')}",
        )
    for name in SPOT:
        if scenario.given(name) and "spot" not in ways:
            raise ScenarioError(
                does_nothing(name, "spot is not weighed"), field=name, hint=option("buy", "rent,spot")
            )
    asked = scenario.one(Ownership)
    if asked.depreciation != "market" and asked.age_s is not None:
        raise ScenarioError(
            does_nothing("hardware_age", "an annuity costs the same every year"),
            field="hardware_age",
            hint=option("depreciation", "market"),
        )
    check_service(scenario.having(msgspec.structs.replace(scenario.one(Traffic), rate_per_s=1.0)))


def check_stage(scenario: Scenario) -> None:
    """The same of a firm, whose customers use no more tokens than can be counted."""
    said = scenario.one(Business)
    if volume(said) > MOST_TOKENS:
        raise ScenarioError(
            f"{said.customers:,} customers of so many tokens use more than anybody serves",
            field="tokens_per_customer",
            hint=f"e.g. {option('tokens_per_customer', '3M')}",
        )
    check_choice(asked_model(scenario))
