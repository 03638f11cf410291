"""What the site of a training run takes from the grid: while it works, and for all its tokens."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import msgspec

from datahall.catalog.entries.site.grid import Grid
from datahall.power.account import energy_of
from datahall.power.assessment import Assessment


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

    @property
    def peak_w(self) -> float:
        """The most of a step, with the remedies of the site."""
        return self.site.as_asked.trace.peak_w

    @property
    def swing_w(self) -> float:
        """Up and down in each step, with the remedies of the site."""
        return self.site.as_asked.trace.swing_w

    @property
    def grid(self) -> Grid:
        return self.site.catalog.grid(self.site.asked.grid)

    @cached_property
    def run_j(self) -> float:
        """Energy of all steps."""
        found = energy_of(self.site, self.num_tokens).run_j
        assert found is not None
        return found

    @cached_property
    def run_kg(self) -> float:
        """Of CO₂, for that energy."""
        found = energy_of(self.site, self.num_tokens).run_kg
        assert found is not None
        return found
