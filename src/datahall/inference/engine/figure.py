"""Options of an engine as leaves of a figure: the engine's own, or what somebody said in their place."""

from __future__ import annotations

from datahall.breakdown import Breakdown, assumed, fitted, given
from datahall.catalog.entries.chip import Chip
from datahall.inference.engine.engine import Engine, engine_on, engines


def option_leaf(
    engine: Engine, chip: Chip, option: str, name: str, unit: str, *, fitted_on: str = ""
) -> Breakdown:
    """One option of an engine: documented, or fitted, unless it is not what the engine picks on the chip."""
    return _own_leaf(engine, chip, option, name, unit, fitted_on).unless_said(option)


def _own_leaf(engine: Engine, chip: Chip, option: str, name: str, unit: str, fitted_on: str) -> Breakdown:
    value = getattr(engine, option)
    if engine.name in engines() and value != getattr(engine_on(engine.name, chip), option):
        return given(name, value, unit)
    if fitted_on:
        return fitted(name, value, unit, f"{engine.title}, {fitted_on}", engine.source)
    return assumed(name, value, unit, engine.title, engine.source)
