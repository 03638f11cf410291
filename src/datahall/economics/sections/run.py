"""What a training run costs: its chip-hours by each way to have the chips, and the hardware bought outright."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.offer import PRICE_KINDS
from datahall.economics.ways import Way, not_priced


class Paid(NamedTuple):
    """A run on chips that are had one way."""

    way: Way
    chip_hours: Breakdown  # of all chips that there are, with what failures add, and on spot preemptions
    elapsed_s: float
    cost: Breakdown

    @property
    def bound_usd(self) -> float:
        """What a reservation costs whose term is longer than the run, all of it [USD]; 0 where none is."""
        market = self.way.market
        term_s = 0.0 if market is None else PRICE_KINDS[market.kind].term_s
        return self.cost.value * term_s / self.elapsed_s if term_s > self.elapsed_s else 0.0


class TrainingCost(msgspec.Struct, frozen=True, kw_only=True):
    """The chips of a run as they are paid, the cheapest way first; none where nobody prices them."""

    chip: str
    chip_hours: Breakdown  # of all chips that there are, the cheapest way, with what failures add
    paid: tuple[Paid, ...]
    unpriced: tuple[Way, ...]  # ways that are allowed and have no price
    upfront: Breakdown | None  # of all hardware, bought outright; None where nobody sells it
    num_tokens: float

    @property
    def had(self) -> Paid | None:
        """The cheapest way."""
        return next(iter(self.paid), None)

    @property
    def cost_usd(self) -> float | None:
        return None if self.had is None else self.had.cost.value

    @property
    def bound_usd(self) -> float:
        """What has to be paid the cheapest way for more than the run: its whole term, or the hardware [USD]."""
        if self.had is not None and self.had.way.buying == "own":
            return 0.0 if self.upfront is None else self.upfront.value
        return 0.0 if self.had is None else self.had.bound_usd

    @property
    def why_not(self) -> str:
        """What has no price, and why."""
        return "; ".join(not_priced(self.unpriced))

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return tuple(one.cost for one in self.paid)
