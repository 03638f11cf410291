"""The least time that a token can take: one pass with a single row, at the datasheet's peak and bandwidth.

    floor = Σ_operators count · max(arithmetic / peak, bytes / bandwidth) / tokens of a step

No load, engine or kernel goes below it, so no band of a time per token reaches below it either.
"""

from __future__ import annotations

import numpy as np

from datahall.inference.engine.replica import Replica
from datahall.inference.engine.speculation import tokens_per_step
from datahall.inference.step.kernels import Passes
from datahall.inference.step.price import StepPrice
from datahall.silicon.figure import roofline_figure
from datahall.workload.memory.figure import derived_from


def least_token_s(replica: Replica, context: float) -> float:
    """The least time per output token of a replica after `context` tokens, whatever else it serves [s]."""
    shapes = derived_from(replica.model)
    row = np.array([1.0])
    operators = Passes.of(replica).operators(row, 1.0, context)
    pass_s = sum(float(one.count) * roofline_figure(replica.chip, one, shapes).value for one in operators)
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
