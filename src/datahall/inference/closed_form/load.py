"""The mean request of some traffic, as the closed form sees it."""

from __future__ import annotations

import numpy as np

from datahall.inference.closed_form.steady_state import Load
from datahall.workload.traffic.lengths import quantile_tokens
from datahall.workload.traffic.shapes import Lengths
from datahall.workload.traffic.traffic import Traffic, expected_tokens

POINTS = 200  # of a distribution of lengths


def load_of(traffic: Traffic) -> Load:
    """The mean request of some traffic; what a cache may hold of it is not counted."""
    prompt, output = expected_tokens(traffic)
    return Load(
        prompt=prompt,
        output=output,
        spread=variation(traffic.prompt),
        output_spread=variation(traffic.output),
    )


def variation(lengths: Lengths) -> float:
    """Standard deviation of lengths over their mean, from their percentiles."""
    drawn = np.array([quantile_tokens(lengths, (place + 0.5) / POINTS) for place in range(POINTS)])
    return float(drawn.std() / drawn.mean())
