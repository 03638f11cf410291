"""What a service of many replicas takes from the grid: at the load asked, with its headroom used up, and at rest."""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.site.grid import Grid
from datahall.inference.closed_form.capacity import Held
from datahall.power.activity import IDLE
from datahall.power.carbon import carbon_kg
from datahall.power.chip import chip_power
from datahall.power.serving import replica_power
from datahall.power.site import Building, Machines, drawn, provisioned
from datahall.units import DAY_S


class ServicePower(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Replicas of one kind on their machines, in a building."""

    held: Held  # what one replica can do
    num_replicas: int
    rate_per_s: float  # requests that all of them get, at the load asked
    full_rate_per_s: float  # with the headroom used up
    machines: Machines
    building: Building
    grid: Grid

    @property
    def tokens_per_s(self) -> float:
        """Of answers, all replicas together, at the load asked."""
        return self.rate_per_s * self.held.load.output

    @cached_property
    def provisioned(self) -> Breakdown:
        """What the nameplates say."""
        return provisioned(self.machines, self.building)

    @cached_property
    def drawn(self) -> Breakdown:
        """At the load asked."""
        return drawn(self.machines, self.building, self._chip(self.rate_per_s))

    @cached_property
    def peak(self) -> Breakdown:
        """The most of what is drawn at the load asked and with the headroom used up; not always at more load."""
        full = drawn(self.machines, self.building, self._chip(self.full_rate_per_s))
        return max(self.drawn, full, key=lambda one: one.value)

    @cached_property
    def rest(self) -> Breakdown:
        """When nobody asks anything."""
        return drawn(self.machines, self.building, chip_power(self.held.replica.chip, IDLE, "an idle chip"))

    def _chip(self, rate_per_s: float) -> Breakdown:
        held = self.held
        return replica_power(held.replica, held.load, held.at(rate_per_s / self.num_replicas)).chip

    @property
    def swing_w(self) -> float:
        """Between rest and the most."""
        return self.peak.value - self.rest.value

    @property
    def chip_w(self) -> float:
        """What the site draws for each chip."""
        return self.drawn.value / self.machines.num_chips

    @property
    def token_j(self) -> float:
        """Energy of the site for a token of an answer, its prompt included."""
        return self.drawn.value / self.tokens_per_s

    @property
    def day_j(self) -> float:
        return self.drawn.value * DAY_S

    @property
    def day_kg(self) -> float:
        """Of CO₂."""
        return carbon_kg(self.day_j, self.grid)
