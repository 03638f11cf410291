"""What a training run costs: its chip-hours by each way to have the chips, and the hardware bought outright."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown
from datahall.economics.ways import Way, not_priced


class Paid(NamedTuple):
    """A run on chips that are had one way."""

    way: Way
    chip_hours: Breakdown  # of all chips that there are, with what failures add, and on spot preemptions
    elapsed_s: float
    cost: Breakdown


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
    def why_not(self) -> str:
        """What has no price, and why."""
        return "; ".join(not_priced(self.unpriced))

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return tuple(one.cost for one in self.paid)
