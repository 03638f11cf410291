"""The closed form of each schedule's bubble: time that every stage stands idle in a step.

F, B and W are what one micro-batch takes on one stage, all its chunks together: forward, backward for the
input, backward for the weights.  The forms hold for equal stages, exchange that takes no time and a full
pipeline (m ≥ p); `simulate.py` has what they leave out.
"""

from __future__ import annotations

from datahall.training.pipeline.table import Slot, order_of


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

        (p − 1)(F + B + W)/v

    of those that fill no gaps; the others have a form of their own in `table.py`, with its reference.

    >>> bubble_time("1f1b", num_stages=8, forward_s=1.0, input_s=1.0, weight_s=1.0)
    21.0
    >>> bubble_time("zb", num_stages=8, forward_s=1.0, input_s=1.0, weight_s=1.0)
    7.0
    """
    own, whole_s = order_of(name).bubble, forward_s + input_s + weight_s
    if own is None:
        return (num_stages - 1) * whole_s / num_chunks
    slot = Slot(forward_s, input_s, weight_s, whole_s if together_s is None else together_s)
    return max(0.0, own(num_stages, slot))


def bubble_fraction(num_stages: int, num_micro: int, num_chunks: int = 1) -> float:
    """Share of the step that 1F1B, GPipe or interleaved 1F1B leave idle.

        (p − 1)/v  /  (m + (p − 1)/v)

    >>> round(bubble_fraction(8, 8), 3), round(bubble_fraction(8, 12), 3)
    (0.467, 0.368)
    """
    idle = (num_stages - 1) / num_chunks
    return idle / (num_micro + idle)
