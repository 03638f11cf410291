"""Options of an engine as leaves of a figure: the engine's own, or what somebody said in their place."""

from __future__ import annotations

from datahall.breakdown import Breakdown, assumed, fitted, given
from datahall.inference.engine.engine import Engine, engines


def option_leaf(engine: Engine, option: str, name: str, unit: str, *, fitted_on: str = "") -> Breakdown:
    """One option of an engine: documented, or fitted, unless it is not that of the engine by this name."""
    value, preset = getattr(engine, option), engines().get(engine.name)
    if preset is not None and value != getattr(preset, option):
        return given(name, value, unit)
    if fitted_on:
        return fitted(name, value, unit, f"{engine.title}, {fitted_on}", engine.source)
    return assumed(name, value, unit, engine.title, engine.source)
