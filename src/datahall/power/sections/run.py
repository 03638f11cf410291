"""What the site of a training run takes from the grid: while it works, and for all its tokens."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown
from datahall.power.assessment import Assessment
from datahall.power.sections.figure import (
    carbon_figure,
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
    """A site that trains on so many tokens."""

    site: Assessment  # of its chips
    num_tokens: float
    with_idle: Assessment | None = None  # the same with chips that stay idle beside them

    @property
    def idle(self) -> Idle | None:
        """What the chips that stay idle add."""
        site, whole = self.site, self.with_idle
        if whole is None:
            return None
        plates_w = whole.provisioned.value - site.provisioned.value
        return Idle(whole.num_chips - site.num_chips, plates_w, whole.site_w - site.site_w)

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
