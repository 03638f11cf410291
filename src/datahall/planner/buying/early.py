"""A choice between serving oneself and buying tokens, refused before anything heavy is loaded."""

from __future__ import annotations

import msgspec

from datahall.economics.early import check_buying
from datahall.errors import ScenarioError, option
from datahall.planner.buying.growth import asked_model, volume
from datahall.planner.serving.early import check_service
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.hosted import MOST_TOKENS, Business
from datahall.scenario.sections.traffic import Traffic


def check_choice(scenario: Scenario) -> None:
    """Refuse ways that leave nothing to build, terms of ways that are not weighed, and what no service is made of."""
    check_buying(scenario, "choice")
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
