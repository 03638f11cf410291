"""The least time that a token can take: one pass with a single row, at the datasheet's peak and bandwidth.

    floor = Σ_operators count · max(arithmetic / peak, bytes of main memory / bandwidth) / tokens of a step

No load, engine or kernel goes below it, so no band of a time per token reaches below it either.
"""

from __future__ import annotations

import numpy as np

from datahall.inference.engine.replica import Replica
from datahall.inference.engine.speculation import tokens_per_step
from datahall.inference.step.kernels import Passes
from datahall.inference.step.price import StepPrice
from datahall.silicon.kernel import least_time, scalar


def least_token_s(replica: Replica, context: float) -> float:
    """The least time per output token of a replica after `context` tokens, whatever else it serves [s]."""
    passes, row = Passes.of(replica), np.array([1.0])
    pass_s = sum(
        float(one.count) * scalar(least_time(replica.chip, one, passes.calibration))
        for one in passes.operators(row, 1.0, context)
    )
    return pass_s / tokens_per_step(replica.speculation)


def token_band(
    replica: Replica, price: StepPrice, tpot_s: float, context: float = 0.0
) -> tuple[float, float]:
    """The band of a time per token as ratios of it, cut off at what the chip could do at best.

    Where the floor is above the figure itself, what is read lies in a cache of the chip and the floor says nothing.
    """
    low, high = price.band
    least = least_token_s(replica, context) / tpot_s
    return (max(low, least) if least < 1.0 else low), high
