"""What the catalogue knows of money beside prices of chips: owners, shares, stages, runs that were paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datahall.catalog.entries.bought.owner import Owner
    from datahall.catalog.entries.bought.share import CostShare
    from datahall.catalog.entries.bought.stage import Stage
    from datahall.catalog.entries.bought.training_run import TrainingRun
    from datahall.catalog.shelves.shelf import Shelves


class OfCosts:
    """The part of a catalogue that is asked what money is spent on."""

    def owner(self: Shelves, name: str) -> Owner:
        """Return a class of owners by name or alias."""
        found: Owner = self._entry("owner", name)
        return found

    def owners(self: Shelves) -> tuple[Owner, ...]:
        """Every class of owners."""
        return tuple(self._all("owner"))

    def share(self: Shelves, name: str) -> CostShare:
        """Return a published share by name or alias."""
        found: CostShare = self._entry("share", name)
        return found

    def stages(self: Shelves) -> tuple[Stage, ...]:
        """Every stage of growth, from the first."""
        return tuple(sorted(self._all("stage"), key=lambda one: one.num_customers))

    def training_runs(self: Shelves) -> tuple[TrainingRun, ...]:
        """Every training run that was published."""
        return tuple(self._all("training_run"))
