"""What a plan should have the least of, and what it may cost."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Choice, Quantity
from datahall.scenario.sections.money.purchase import MOST_USD
from datahall.scenario.words import AIMS, Aims


class Goal(Section, frozen=True, kw_only=True):
    """What decides between plans that all keep what is asked."""

    objective: Annotated[
        Aims, Choice(f"What the plan has the least of: {', '.join(AIMS)}.", options=AIMS, metavar="WHAT")
    ] = "cost"
    budget_usd: Annotated[
        float | None,
        Quantity(
            "Most that it may cost, the cheapest way that is allowed.",
            name="budget",
            above=True,
            most=MOST_USD,
            example="80M",
        ),
    ] = None
