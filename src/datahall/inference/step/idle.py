"""Which inputs of the network replicas were given for nothing: they exchange as fast without them."""

from __future__ import annotations

import numpy as np

from datahall.catalog import Catalog
from datahall.cluster.left_out import BINDS, SAME, each_left_out
from datahall.cluster.wiring import Wiring
from datahall.fabric.design.left_out import same_without
from datahall.inference.engine.machine import placed
from datahall.inference.engine.replica import Replica
from datahall.inference.step.exchange import Column, exchange, gather_logits

NUM_SIZES = 24  # numbers of tokens at which two machines are compared, from 1 to the most of a step


def idle_inputs(
    replica: Replica, count: int, wiring: Wiring, catalog: Catalog, *, hands_over: bool = False
) -> dict[str, str]:
    """Inputs of the wiring without which so many replicas exchange as fast, each with why."""
    times_s = _times_s(replica)

    def why(less: Wiring) -> str:
        other = placed(replica, count, less, catalog, hands_over=hands_over)
        same_port = replica.port_bytes_per_s == other.port_bytes_per_s or not hands_over
        if not same_port or not np.array_equal(times_s, _times_s(other)):
            return ""
        return SAME if other.system == replica.system else BINDS

    return same_without(each_left_out(wiring, replica.chip, catalog), why)


def _times_s(replica: Replica) -> Column:
    """What a pass exchanges, for few tokens and many."""
    tokens = np.unique(np.geomspace(1.0, replica.engine.token_budget, NUM_SIZES).round())
    sent = exchange(replica, tokens)
    return np.concatenate([sent.tensor_s, sent.expert_s, sent.stage_s, gather_logits(replica, tokens)])
