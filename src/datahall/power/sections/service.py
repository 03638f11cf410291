"""What a service of many replicas takes from the grid: at the load asked, with its headroom used up, and at rest."""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.breakdown import Breakdown, again, assumed, derived, difference, product, quotient
from datahall.catalog.entries.site.grid import Grid
from datahall.inference.closed_form.capacity import Held
from datahall.power.activity import IDLE
from datahall.power.carbon import carbon_figure
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
        found = drawn(self.machines, self.building, self._chip(self.rate_per_s))
        return found.named("site power, drawn at that load")

    @cached_property
    def peak(self) -> Breakdown:
        """The most of what is drawn at the load asked and with the headroom used up; not always at more load."""
        full = drawn(self.machines, self.building, self._chip(self.full_rate_per_s))
        return max(self.drawn, full, key=lambda one: one.value).named("site power, with the headroom used up")

    @cached_property
    def rest(self) -> Breakdown:
        """When nobody asks anything."""
        found = drawn(self.machines, self.building, chip_power(self.held.replica.chip, IDLE, "an idle chip"))
        return found.named("site power, at rest")

    def _chip(self, rate_per_s: float) -> Breakdown:
        held = self.held
        return replica_power(held.replica, held.load, held.at(rate_per_s / self.num_replicas)).chip

    @cached_property
    def swing(self) -> Breakdown:
        """Between rest and the most."""
        return difference("swing", again(self.peak), again(self.rest))

    @property
    def chip_w(self) -> float:
        """What the site draws for each chip."""
        return self.drawn.value / self.machines.num_chips

    @cached_property
    def token(self) -> Breakdown:
        """Energy of the site for a token of an answer, its prompt included."""
        rate = derived("tokens of answers per second", self.tokens_per_s, "tokens_per_s", "at that load")
        return quotient("energy of a token", again(self.drawn), rate, "j_per_token")

    @cached_property
    def energy(self) -> Breakdown:
        """Of a day."""
        day = assumed("a day", DAY_S, "s", "86,400 s")
        return product("energy of a day", (again(self.drawn), day), "j")

    @cached_property
    def carbon(self) -> Breakdown:
        """Of CO₂, for that energy."""
        return carbon_figure(self.energy, self.grid)

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return (
            self.provisioned, self.drawn, self.peak, self.rest, self.swing, self.token, self.energy, self.carbon,
        )  # fmt: skip
