"""The closed form of each schedule's bubble: time that every stage stands idle in a step.

F, B and W are what one micro-batch takes on one stage, all its chunks together: forward, backward for the
input, backward for the weights.  The forms hold for equal stages, exchange that takes no time and a full
pipeline (m ≥ p); `simulate.py` has what they leave out.
"""

from __future__ import annotations

from datahall.errors import UnknownNameError
from datahall.scenario.words import SCHEDULES


def bubble_time(
    name: str,
    *,
    num_stages: int,
    num_chunks: int = 1,
    forward_s: float,
    input_s: float,
    weight_s: float,
    together_s: float | None = None,
) -> float:
    """Idle time of a stage in one step [s].

    Parameters: name, of the schedule; num_stages p; num_chunks v of each stage; forward_s F, input_s B and
    weight_s W of one micro-batch on one stage [s]; together_s, a forward and a whole backward at once [s]
    (default F + B + W).

        GPipe, 1F1B   (p − 1)(F + B + W)
        interleaved   (p − 1)(F + B + W)/v
        zero bubble   (p − 1)(F + B − W)
        DualPipe      (p/2 − 1)(F&B + B + W − 3W)

    References: Narayanan et al. (2021), section 2.2; Qi et al. (2023), table 2; DeepSeek-AI (2024), table 2,
    whose B is our B + W.

    >>> bubble_time("1f1b", num_stages=8, forward_s=1.0, input_s=1.0, weight_s=1.0)
    21.0
    >>> bubble_time("zb", num_stages=8, forward_s=1.0, input_s=1.0, weight_s=1.0)
    7.0
    """
    p, whole_s = num_stages, forward_s + input_s + weight_s
    match name:
        case "gpipe" | "1f1b":
            return (p - 1) * whole_s
        case "interleaved":
            return (p - 1) * whole_s / num_chunks
        case "zb":
            return max(0.0, (p - 1) * (forward_s + input_s - weight_s))
        case "dualpipe":
            both_s = whole_s if together_s is None else together_s
            return max(0.0, (p / 2 - 1) * (both_s + input_s - 2 * weight_s))
    raise UnknownNameError(
        "schedule", name, SCHEDULES, hint=f"schedules: {', '.join(SCHEDULES)}", field="schedule"
    )


def bubble_fraction(num_stages: int, num_micro: int, num_chunks: int = 1) -> float:
    """Share of the step that 1F1B, GPipe or interleaved 1F1B leave idle.

        (p − 1)/v  /  (m + (p − 1)/v)

    >>> round(bubble_fraction(8, 8), 3), round(bubble_fraction(8, 12), 3)
    (0.467, 0.368)
    """
    idle = (num_stages - 1) / num_chunks
    return idle / (num_micro + idle)
