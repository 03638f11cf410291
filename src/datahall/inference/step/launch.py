"""Steps that no graph replays: the host launches every kernel, and the chip waits where kernels are shorter than that.

    part = max(kernels of the part, kernels launched in it · host time of a launch)     products and streams,
                                                                                       attention, the head

Launches run ahead of the chip inside a part, so a long kernel hides those of short ones beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from datahall.breakdown import Source
from datahall.inference.step.kernels import Passes
from datahall.silicon.kernel import KernelTime
from datahall.workload.operator import Stream

# From one kernel to the next as the host launches them out of a module: the median of 18 decode steps of Llama 1B, 3B
# and 8B that took half as long again as their graphs (16 to 27 µs), in `calibration/h200/launch_steps.csv`.
LAUNCH_S = 18.9e-6
LAUNCHED = Source(
    "decode steps with and without CUDA graphs on one H200 SXM, PyTorch 2.11", "2026-11", "measured"
)
ONE = np.array([1.0])


class Launches(NamedTuple):
    """What the host takes to launch the parts of a pass over all layers [s]; nothing where a graph is replayed."""

    tokens_s: float = 0.0  # what all tokens share
    attention_s: float = 0.0  # of decodes, and again of each chunk of a prompt
    head_s: float = 0.0


def launches_of(passes: Passes) -> Launches:
    """The launches of a pass of a replica's engine."""
    if passes.replica.engine.graphs:
        return Launches()
    return Launches(
        tokens_s=_launched_s(passes.token_kernels(ONE)),
        attention_s=_launched_s(passes.decode_kernels(ONE, ONE, 1)),
        head_s=_launched_s(passes.head_kernels(ONE)),
    )


def _launched_s(kernels: Iterable[KernelTime]) -> float:
    return LAUNCH_S * sum(float(one.operator.count) * _num_kernels(one) for one in kernels)


def _num_kernels(kernel: KernelTime) -> float:
    shape = kernel.operator.shape
    return float(shape.num_kernels) if isinstance(shape, Stream) else 1.0
