"""What the site of a training run takes from the grid: while it works, and for all its tokens."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown
from datahall.power.assessment import Assessment
from datahall.power.carbon import carbon_figure
from datahall.power.sections.figure import (
    peak_figure,
    run_figure,
    swing_figure,
)


class Idle(NamedTuple):
    """What chips that do nothing add to a site."""

    num: int
    provisioned_w: float
    site_w: float


class RunPower(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A site that trains on so many tokens, chips that stay idle included."""

    site: Assessment
    num_tokens: float
    at_work: Assessment | None = None  # the same without chips that stay idle, where some do

    @property
    def idle(self) -> Idle | None:
        """What the chips that stay idle add."""
        site, working = self.site, self.at_work
        if working is None:
            return None
        plates_w = site.provisioned.value - working.provisioned.value
        return Idle(site.num_chips - working.num_chips, plates_w, site.site_w - working.site_w)

    @cached_property
    def drawn(self) -> Breakdown:
        """In the mean, with the remedies of the site."""
        return self.site.with_remedies

    @cached_property
    def peak(self) -> Breakdown:
        """The most of a step."""
        return peak_figure(self.site)

    @cached_property
    def swing(self) -> Breakdown:
        """Up and down in each step."""
        return swing_figure(self.site)

    @cached_property
    def token(self) -> Breakdown:
        """Energy of a token."""
        return self.site.token

    @cached_property
    def energy(self) -> Breakdown:
        """Of all steps."""
        return run_figure(self.site, self.num_tokens)

    @cached_property
    def carbon(self) -> Breakdown:
        """Of CO₂, for that energy."""
        return carbon_figure(self.energy, self.site.grid)

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return (
            self.site.provisioned, self.drawn, self.peak, self.swing, self.token, self.energy, self.carbon,
        )  # fmt: skip
