"""What the host must do to launch a micro-batch: a step is no faster than its operators can be launched.

    launch = host_s · operators that no captured graph replays

Each operator costs the host far more than a kernel launch: a module's Python, autograd's bookkeeping, casts and the
several kernels it is made of.  Mixtures of experts have the most operators on the fewest tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datahall.training.adapters.products import is_frozen_gradient
from datahall.training.layout.codes import module_names
from datahall.training.layout.columns import Column, Space, unique_rows
from datahall.training.step.experts import moe_share
from datahall.training.step.micro_batch import ExpertSharding, micro_batch_operators
from datahall.workload.memory.recompute import RECOMPUTES

if TYPE_CHECKING:
    from datahall.training.step.framework import Framework
    from datahall.training.step.step import Job

OUTSIDE = ("embedding", "final_norm", "head", "loss")
# what graphs of attention and router leave to the host: their shapes follow the routing, or they are another module
UNCAPTURED = ("dispatch", "combine", "expert", "shared", "gate_up", "up", "activation", "down", *OUTSIDE)


def sync_time(job: Job, framework: Framework) -> float:
    """What a layer waits for the host, as a mean over all layers [s].

    Experts that drop no token have shapes that follow the routing: once in each forward the host reads how many rows
    each expert got, so that it has launched nothing ahead, and the chip idles while the next operator is launched.
    Graphs of a whole step need no such reading.  Reference: Megatron-Core, MoE token dispatchers (tokens per expert
    copied to the host); the cost of an operator is the framework's own.
    """
    if job.model.moe is None or framework.captured == "step":
        return 0.0
    return moe_share(job) * framework.host_s


def launch_times(job: Job, space: Space, framework: Framework, per_stage: Column) -> Column:
    """Time that the host takes to launch one micro-batch of the deepest stage [s]."""
    if not len(space) or framework.host_s == 0.0 or framework.captured == "step":
        return np.zeros(len(space))
    distinct, index = unique_rows((space.recompute, space.modules))
    counts = np.array([_operators(job, framework, int(level), int(bits)) for level, bits in distinct])
    in_layer, outside = counts[index].T
    return np.asarray(framework.host_s * (per_stage * in_layer + outside / np.minimum(space.pp, 2.0)))


def _operators(job: Job, framework: Framework, level: int, bits: int) -> tuple[float, float]:
    """Operators launched from the host: of a layer in the mean, and outside the layers."""
    operators = micro_batch_operators(
        job, framework, ExpertSharding(), 1.0, RECOMPUTES[level], module_names(bits)
    )
    in_layers, outside = 0.0, 0.0
    for one in operators:
        if is_frozen_gradient(job, one) or (
            framework.captured == "attention" and not one.name.startswith(UNCAPTURED)
        ):
            continue
        if one.name.startswith(OUTSIDE):
            outside += one.count
        else:
            in_layers += one.count
    return in_layers / job.model.num_layers, outside
