"""What a chip-hour of spot capacity costs once what preemptions throw away is paid for.

    effective = spot / ETTR(M/n, R, d)

n nodes are preempted n times as often, and a job on all of them stops with each.  A training job loses its work since
the last checkpoint; its interval is the best one.  A replica of a service writes none and only starts again:
ETTR = e^{−R n/M}.
"""

from __future__ import annotations

from math import exp

from datahall.breakdown import Breakdown, Source, assumed, derived, given, modelled, quotient
from datahall.reliability.ettr import best_interval_s, renewal_ettr
from datahall.reliability.recovery import said_recovery
from datahall.scenario.sections.operations.checkpoint import Checkpointing
from datahall.scenario.sections.operations.run import Recovering
from datahall.units import HOUR_S

USUAL_UP_S = 6 * HOUR_S
USUAL_BLOCKING_S = 30.0
TRACES = Source("skypilot-org/spot-traces (NSDI 2024): V100 nodes stay 0.7 to 10.5 h", "2024", "measured")
RENEWAL = "renewal: preemptions strike at any time, in a restart too; the best interval between checkpoints"
RESTARTED = "a replica starts again after each preemption of one of its nodes"


def spot_ettr(num_nodes: float, node_up_s: float, restart_s: float, blocking_s: float) -> float:
    """Share of the time that a job on spot nodes moves forward.

    >>> [round(0.4 / spot_ettr(nodes, 6 * 3600.0, 480.0, 30.0), 2) for nodes in (4, 16, 64)]  # of on-demand, 60 % off
    [0.49, 0.71, 2.61]
    """
    mean_s = node_up_s / num_nodes
    if not blocking_s:
        return exp(-restart_s / mean_s)
    return renewal_ettr(best_interval_s(blocking_s, mean_s), blocking_s, restart_s, mean_s)


def effective_price(
    price: Breakdown, num_nodes: float, back: Recovering, copies: Checkpointing | None
) -> Breakdown:
    """The price of a chip-hour that moves work forward; copies are those of a training job, None of a service."""
    up = (
        assumed(
            "a spot node stays", USUAL_UP_S, "s", "V100 nodes of AWS stayed 0.7 to 10.5 h in the mean", TRACES
        )
        if back.preempted_every_s is None
        else given("a spot node stays", back.preempted_every_s, "s", field="preempted_every")
    )
    mean = quotient("between preemptions", up, derived("nodes", num_nodes, "count"), "s")
    restart = _restart(back)
    parts, blocking_s = [mean, restart], 0.0
    if copies is not None:
        blocking = _blocking(copies)
        parts, blocking_s = [*parts, blocking], blocking.value
    kept = spot_ettr(num_nodes, up.value, restart.value, blocking_s)
    goodput = modelled("goodput on spot", kept, "fraction", RESTARTED if copies is None else RENEWAL, *parts)
    return quotient("spot, by what is kept", price, goodput, "usd_per_hour")


def _restart(back: Recovering) -> Breakdown:
    if back.restart_s is not None:
        return given("restart", back.restart_s, "s", field="restart")
    return derived("restart", said_recovery(back).fixed_s, "s", "noticed, placed anew, warmed up")


def _blocking(copies: Checkpointing) -> Breakdown:
    if copies.blocking_s is not None:
        return given("stop for a checkpoint", copies.blocking_s, "s", field="blocking")
    return assumed(
        "stop for a checkpoint", USUAL_BLOCKING_S, "s", "of a model whose state is copied off the chips"
    )
