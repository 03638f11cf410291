"""How unevenly a replica's router loads the chips that hold its experts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datahall.inference.engine.replica import Replica
from datahall.workload.expert_load import busiest_rank, popularity

__all__ = ["busiest_rank", "imbalance", "popularity"]

Column = NDArray[np.float64]


def imbalance(replica: Replica, num_tokens: Column) -> Column:
    """Copies on the busiest of the ranks that hold a replica's experts, over the mean; 1 where nothing is spread."""
    moe = replica.model.moe
    if moe is None or replica.ep == 1 or replica.routing_skew <= 0:
        return np.ones_like(num_tokens)
    return busiest_rank(num_tokens * replica.dp, moe.num_experts, moe.top_k, replica.ep, replica.routing_skew)
