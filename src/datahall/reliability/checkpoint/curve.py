"""What a tier keeps over its interval, as a curve."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from datahall.reliability.checkpoint.tier import CheckpointTier
from datahall.reliability.ettr import best_interval_s, renewal_ettr

AROUND = 30.0  # how many times shorter and longer than the best
NUM_POINTS = 61


class Curve(NamedTuple):
    """Intervals, and the share of the time that each keeps."""

    intervals_s: tuple[float, ...]
    kept: tuple[float, ...]


def interval_curve(tier: CheckpointTier, mttf_s: float, fixed_s: float) -> Curve:
    """Intervals from the drain on, and what each keeps."""
    best_s = best_interval_s(tier.blocking_s, mttf_s) if mttf_s < inf else tier.blocking_s + 1.0
    first_s = max(tier.drain_s, best_s / AROUND)
    intervals_s = np.geomspace(first_s, max(first_s, best_s) * AROUND, NUM_POINTS).tolist()
    restart_s = fixed_s + tier.load_s + tier.drain_s
    kept = (renewal_ettr(one, tier.blocking_s, restart_s, mttf_s) for one in intervals_s)
    return Curve(tuple(intervals_s), tuple(kept))
