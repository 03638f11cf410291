"""What the catalogue knows of failures, by name: components, published rates, new and bad nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datahall.catalog.entries.failures import Ageing, Component, FailurePreset
    from datahall.catalog.shelves.shelf import Shelves


class Failing:
    """The kinds of entries that say what breaks; a part of `Catalog`."""

    def component(self: Shelves, name: str) -> Component:
        """Return a component that fails, by name or alias."""
        found: Component = self._all("component").get(name)
        return found

    def components(self: Shelves) -> tuple[Component, ...]:
        """Every component that fails."""
        return tuple(self._all("component"))

    def failure_preset(self: Shelves, name: str) -> FailurePreset:
        """Return published failure rates by name or alias."""
        found: FailurePreset = self._all("failures").get(name)
        return found

    def failure_presets(self: Shelves) -> tuple[FailurePreset, ...]:
        """Every set of published failure rates."""
        return tuple(self._all("failures"))

    def ageing(self: Shelves, name: str) -> Ageing:
        """Return how failures differ between new, ordinary and bad nodes, by name."""
        found: Ageing = self._all("ageing").get(name)
        return found
