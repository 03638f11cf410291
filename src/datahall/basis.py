"""On what a figure rests: how near to the chip itself the constants behind it were found."""

from __future__ import annotations

from typing import Literal

Basis = Literal["", "datasheet only", "family-calibrated", "measured"]  # the weaker first
