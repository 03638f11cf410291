"""Options of an engine as leaves of a figure: the engine's own, unless somebody says another."""

from __future__ import annotations

from datahall.breakdown import Breakdown, assumed, fitted
from datahall.inference.engine.engine import Engine


def option_leaf(engine: Engine, option: str, name: str, unit: str, *, fitted_on: str = "") -> Breakdown:
    """One option of an engine: documented, or fitted, unless somebody says it."""
    value = getattr(engine, option)
    leaf = (
        fitted(name, value, unit, f"{engine.title}, {fitted_on}", engine.source)
        if fitted_on
        else assumed(name, value, unit, engine.title, engine.source)
    )
    return leaf.unless_said(option)
