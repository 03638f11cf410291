"""What backward computes again in place of keeping it."""

from __future__ import annotations

from typing import Literal

Recompute = Literal["none", "selective", "full"]
