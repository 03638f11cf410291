"""Words of a site that several parts of its answer say."""

from __future__ import annotations

from datahall.power.swing.spectrum import RISKY_HZ
from datahall.units import short

_LOW, _HIGH = map(short, RISKY_HZ)
RISKY_BAND = f"between {_LOW} and {_HIGH} Hz"  # where grids and turbines resonate
RISKY_SPAN = f"{_LOW}–{_HIGH} Hz"
