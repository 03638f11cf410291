"""What a training run costs, by three accountings that differ by a factor of twenty.

    rental      chip-hours × rent of a chip-hour
    amortised   chip-hours × what hardware loses in an hour and the energy of it
    upfront     chips × price of a chip, all in

The first is what a bill says, the second what is used up, the third what has to be raised before anything runs.
Reference: Cottier et al. (2024), The rising costs of training frontier AI models, which has all three.
"""

from __future__ import annotations

from math import isnan, nan
from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown, derived, product, total
from datahall.catalog.entries.bought.training_run import TrainingRun
from datahall.economics.capex import Capex
from datahall.economics.own import CAPITAL, ENERGY, Owned
from datahall.units import DAY_S, HOUR_S, MTOK, YEAR_S

RENTAL, AMORTISED, UPFRONT, OPERATED = "rental", "amortised", "upfront", "operated"
ACCOUNTINGS = (RENTAL, AMORTISED, UPFRONT, OPERATED)


class RunCost(msgspec.Struct, frozen=True, kw_only=True):
    """A run of so many chip-hours on so many chips; what is not priced is None."""

    chip_hours: Breakdown
    num_chips: int
    num_tokens: float
    rent: Breakdown | None  # of a chip-hour
    owned: Owned | None
    capex: Capex | None
    published: TrainingRun | None = None

    @property
    def wall_s(self) -> float:
        """From the first step to the last."""
        return self.chip_hours.value / self.num_chips * HOUR_S

    @property
    def rental(self) -> Breakdown | None:
        if self.rent is None:
            return None
        return product("cost of the run, rented", (self.chip_hours, self.rent), "usd")

    @property
    def amortised(self) -> Breakdown | None:
        """Hardware and energy alone, as those who publish it count."""
        if self.owned is None:
            return None
        parts = [part for part in self.owned.parts.parts if part.name in (CAPITAL, ENERGY)]
        hour = total("hardware and energy of an hour", parts)
        return product("cost of the run, amortised", (self.chip_hours, hour), "usd")

    @property
    def operated(self) -> Breakdown | None:
        """The same with everything that owning takes: space, repair, staff, hours that nobody uses."""
        if self.owned is None:
            return None
        return product("cost of the run, owned", (self.chip_hours, self.owned.hour), "usd")

    @property
    def upfront(self) -> Breakdown | None:
        if self.capex is None:
            return None
        chips = derived("chips", self.num_chips, "count")
        return product("price of the hardware", (chips, self.capex.price), "usd")

    @property
    def rental_over_amortised_ratio(self) -> float | None:
        """None where one of them is not priced."""
        if self.rental is None or self.amortised is None:
            return None
        return self.rental.value / self.amortised.value

    @property
    def num_days(self) -> float:
        return self.wall_s / DAY_S

    @property
    def over_published_ratio(self) -> float | None:
        """Chip-hours over those that were published."""
        return None if self.published is None else self.chip_hours.value / self.published.num_chip_hours

    def by(self, accounting: str) -> Breakdown | None:
        """The cost by one of the three."""
        found: Breakdown | None = getattr(self, accounting)
        return found


class Accounted(NamedTuple):
    """The run by one accounting."""

    name: str
    cost_usd: float | None
    chip_usd_per_hour: float | None  # of each chip-hour of the run
    token_usd_per_mtok: float | None
    published_usd: float | None
    difference_fraction: float | None


def accounted(cost: RunCost) -> tuple[Accounted, ...]:
    """The three side by side with what others published, and all that owning takes."""
    return tuple(_accounted(cost, name) for name in ACCOUNTINGS)


def _accounted(cost: RunCost, name: str) -> Accounted:
    figure, said = cost.by(name), _published_usd(cost.published, name)
    if figure is None:
        return Accounted(name, None, None, None, said, None)
    return Accounted(
        name=name,
        cost_usd=figure.value,
        chip_usd_per_hour=figure.value / cost.chip_hours.value,
        token_usd_per_mtok=figure.value / cost.num_tokens * MTOK,
        published_usd=said,
        difference_fraction=None if said is None else figure.value / said - 1.0,
    )


def _published_usd(run: TrainingRun | None, name: str) -> float | None:
    if run is None:
        return None
    value = {RENTAL: run.rental_usd, AMORTISED: run.amortised_usd, UPFRONT: run.upfront_usd}.get(name, nan)
    return None if isnan(value) else value


def span_years(chip_hours: float, num_chips: int) -> float:
    """How long a run takes.

    >>> round(span_years(57e6, 25_000) * 365.25)
    95
    """
    return chip_hours / num_chips * HOUR_S / YEAR_S
