"""A job that goes on without a replica, and takes it back: what batch, learning rate and time become meanwhile.

Two ways.  The global batch is kept: the replicas that are left take over its micro-batches, so a step takes longer and
the run is the same, step by step.  Or the batch shrinks with the replicas: a step takes as long as before, and the
learning rate follows by the linear rule (η ∝ B; Goyal et al. 2017) or the square-root rule for Adam (η ∝ √B; Malladi et
al. 2022), and grows back with it.

Whoever goes on needs a copy of what the lost one held.  Replicas that share a state go out together, as those of
FT-HSDP do, and so do all on a node: what is lost is a share of the batch as large as they are.
"""

from __future__ import annotations

from math import ceil, lcm, sqrt
from typing import NamedTuple

from datahall.errors import ScenarioError
from datahall.scenario.words import BATCH_RULES, BatchRule
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout


class Shrunk(NamedTuple):
    """A step on the replicas that are left, beside one on all of them."""

    batch_ratio: float
    learning_rate_ratio: float
    step_ratio: float  # of the time of a step
    num_micro_batches: int  # that the busiest replica has in a step

    @property
    def throughput_ratio(self) -> float:
        """Of the tokens in a second."""
        return self.batch_ratio / self.step_ratio


def num_sharing(layout: Layout) -> int:
    """Replicas that hold one whole state among them: without one of them the others have no state.

        g = lcm(D / copies from ZeRO-1 on, else 1; chips of all experts / chips of a stage of a replica, at least 1)

    >>> num_sharing(Layout(dp=512, zero=0)), num_sharing(Layout(dp=512, zero=3, shard=64)), num_sharing(Layout(dp=512))
    (1, 64, 512)
    """
    space = Space.of(layout)
    state = round(layout.dp / float(space.num_copies[0])) if layout.zero else 1
    experts = ceil(float(space.expert_ways[0]) / (layout.tp * layout.cp))
    return min(layout.dp, lcm(state, experts))


def num_away(layout: Layout, num_node_chips: int) -> int:
    """Replicas that one lost node takes out: all that share a state with those on it.

    >>> num_away(Layout(tp=8, dp=512, zero=0), 8), num_away(Layout(tp=2, dp=512, zero=0), 8)
    (1, 4)
    """
    on_node = -(-num_node_chips // (layout.tp * layout.cp))
    return min(layout.dp, lcm(num_sharing(layout), on_node))


def shrunk(num_replicas: int, num_lost: int, num_micro_batches: int, rule: BatchRule) -> Shrunk:
    """A step without some of the replicas.

        kept            m' = ⌈m·D / (D − l)⌉ micro-batches, a step m'/m as long, batch and η as before
        linear, sqrt    batch (D − l)/D, η by that or its root, a step as long as before

    Parameters: replicas D, or as many groups of them as go out together; those lost l; micro-batches m of a replica in
    a step.

    >>> shrunk(128, 1, 16, "kept").step_ratio, round(shrunk(128, 1, 16, "linear").throughput_ratio, 4)
    (1.0625, 0.9922)
    """
    if not 0 <= num_lost < num_replicas:
        raise ScenarioError(
            f"{num_lost} of {num_replicas} replicas cannot be lost", hint=f"0 to {num_replicas - 1}"
        )
    left = (num_replicas - num_lost) / num_replicas
    if rule == "kept":
        busiest = ceil(num_micro_batches * num_replicas / (num_replicas - num_lost))
        return Shrunk(1.0, 1.0, busiest / num_micro_batches, busiest)
    return Shrunk(left, left if rule == "linear" else sqrt(left), 1.0, num_micro_batches)


def outage_loss_s(step: Shrunk, outage_s: float, reconfigure_s: float) -> float:
    """Time that one outage costs a job that goes on without the replica, letting it go and taking it back [s].

        loss = 2 · reconfigure + outage · (1 − throughput ratio)

    >>> round(outage_loss_s(shrunk(128, 1, 16, "linear"), 3600.0, 30.0))
    88
    """
    return 2.0 * reconfigure_s + outage_s * (1.0 - step.throughput_ratio)


class Outage(NamedTuple):
    """What batch and learning rate do while a replica is away, and the time that costs."""

    rule: BatchRule
    step: Shrunk
    loss_s: float


def ways_to_shrink(
    num_replicas: int, num_micro_batches: int, outage_s: float, reconfigure_s: float
) -> tuple[Outage, ...]:
    """Every way to go on without one replica, side by side."""
    steps = {rule: shrunk(num_replicas, 1, num_micro_batches, rule) for rule in BATCH_RULES}
    return tuple(
        Outage(rule, step, outage_loss_s(step, outage_s, reconfigure_s)) for rule, step in steps.items()
    )
