"""Money over a span of time: what a key may spend."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from datahall.errors import ScenarioError
from datahall.scenario.kinds.kind import Raw, Reading, shown
from datahall.scenario.kinds.texts import Text
from datahall.scenario.words import BUDGET_PERIODS, BudgetPeriod

_BUDGET = re.compile(r"\$?\s*(\d{1,12}(?:\.\d{1,9})?)\s*(?:USD)?\s*(?:/\s*(\w+))?", re.IGNORECASE)


class Spending(NamedTuple):
    """So many dollars, over what."""

    usd: Decimal
    period: BudgetPeriod


class Budget(Text, frozen=True):
    """Dollars a day, a month or in all: "50USD/month"."""

    def read(self, raw: Raw, at: Reading) -> str:
        return _written(spending(super().read(raw, at)))


def spending(text: str) -> Spending:
    """What a budget says; without a span it is for good.

    >>> spending("50USD/month"), spending("$0.5")
    (Spending(usd=Decimal('50'), period='month'), Spending(usd=Decimal('0.5'), period='total'))
    """
    found = _BUDGET.fullmatch(text.strip())
    word = (found[2] or "total").lower() if found else ""
    period = next((one for one in BUDGET_PERIODS if one == word), None)
    if found is None or period is None:
        raise ScenarioError(
            f"{shown(text)} is no budget",
            hint="dollars a day, a month or in all: 5USD/day, 50USD/month, 500USD",
        )
    return Spending(Decimal(found[1]), period)


def _written(said: Spending) -> str:
    return f"{said.usd.normalize():f}USD" + (f"/{said.period}" if said.period != "total" else "")
