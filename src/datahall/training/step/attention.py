"""Attention in training: what its backward takes, heads wider than kernels like, scores that are not fused away."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datahall.training.step.framework import Framework, attention_factor
from datahall.training.step.passes import STREAM_SHARE
from datahall.workload.operator import Attention, Number

if TYPE_CHECKING:
    from datahall.catalog.entries.chip import Chip
    from datahall.catalog.entries.model import Model
    from datahall.cluster.cluster import Cluster
    from datahall.silicon.kernel import KernelTime
    from datahall.training.layout.columns import Column
    from datahall.training.step.step import Job

# Fused attention's backward pass over its forward pass: cuDNN and FlashAttention on one H200 take 2.5 to 3.7 times as
# long for 2.5 times the arithmetic (19 shapes of 64 to 192 wide heads, 2 k to 32 k tokens; median 3.0); on a B200 the
# rate per FLOP falls by 1.2 and, with latent attention's wide heads, by 1.3 (SimuMax v1.2, configs/system).
BACKWARD_ATTENTION = {
    True: 3.0,
    False: 2.0,
}  # fused, which forms the scores again; four products where two were

# Queries and keys wider than 128 leave Blackwell's tensor memory room for fewer tiles: attention of 192 wide heads
# goes no faster than these shares of the bf16 peak, forward and backward, causal FLOPs (medians of six shapes with 16
# to 128 heads and 4 k to 131 k tokens: SimuMax v1.2, configs/system/b200_bf16_ceperm.json, sdp_fwd and sdp_bwd).
# Blackwell Ultra, with twice the units for exponentials, was not measured.
SCORING = {"full", "window", "mla"}  # mixers that have scores
WIDEST_HEAD = 128.0
WIDE_HEAD_SHARE = {False: 0.40, True: 0.31}
MEASURED_WITH = {"b200-sxm", "gb200"}


class ScorePasses(NamedTuple):
    """Times that each score is moved where attention is not fused, in values of the ordinary format."""

    forward: float
    backward: float
    why: str


MASKED = ScorePasses(6.5, 10.0, "written, softmax, dropout with its mask, read again")


def score_passes(framework: Framework, value_bytes: float) -> ScorePasses:
    """How often scores are moved where attention is not fused, by the style of the element-wise kernels.

    Fused: forward writes scores, reads them for sums and again for values, writes and reads probabilities; backward
    reads these, writes their gradient, reads both, these twice, writes and reads twice.  Eager: scale, mask, cast to
    32 bits, softmax and cast back are kernels of their own, 32 and 36 bytes a score whatever its format.  On one H200
    eager steps in bf16 took 5 to 20 % longer than so, compiled ones within 2 %.
    """
    match framework.fusion:
        case "eager":
            return ScorePasses(
                32.0 / value_bytes, 36.0 / value_bytes, "each operation a kernel, softmax in 32 bits"
            )
        case "fused":
            return ScorePasses(5.0, 8.0, "scale, mask and softmax in one kernel forward, one backward")
    return MASKED


def attention_time(kernel: KernelTime, chip: Chip, framework: Framework) -> Number:
    """The time of one execution of attention, or of its backward, in a framework [s]."""
    one = kernel.operator
    undone = one.backward and not one.name.endswith("_recompute")
    alone_s = kernel.time_s * (BACKWARD_ATTENTION[framework.flash_attention] if undone else 1.0)
    if isinstance(one.shape, Attention) and one.shape.head_dim > WIDEST_HEAD and chip.name in MEASURED_WITH:
        alone_s = np.maximum(alone_s, one.flop / (WIDE_HEAD_SHARE[undone] * chip.peak("bf16")))
    return alone_s * attention_factor(framework, chip.family)


def attention_share(model: Model) -> float:
    """Share of the layers that score tokens against tokens."""
    scoring = sum(count for layer, count in model.layer_groups() if layer.mixer in SCORING)
    return scoring / model.num_layers


def score_traffic(
    job: Job,
    cluster: Cluster,
    tp: Column,
    cp: Column,
    batch: Column,
    recompute: str,
    passes: ScorePasses = MASKED,
) -> Column:
    """Scores that unfused attention writes to memory and reads back, per mean layer and micro-batch [s].

    Reference: Korthikanti et al. (2022), section 4.1, for the tensors; Dao et al. (2022) for why it is slow.
    """
    heads = attention_share(job.model) * job.model.num_heads / tp
    moved = job.value_bytes * batch * heads * job.seq**2 / cp
    forwards = 1.0 if recompute == "none" else 2.0
    times = forwards * passes.forward + passes.backward
    return np.asarray(times * moved / (STREAM_SHARE * cluster.chip.memory_bytes_per_s))
