"""What of a layer is run again in backward instead of being kept."""

from __future__ import annotations

from typing import Literal, get_args

Recompute = Literal["none", "selective", "full"]
RECOMPUTES: tuple[Recompute, ...] = get_args(Recompute)
