"""Prefill and decode on replicas of their own: what moving the cache from one to the other takes.

The cache of a layer leaves when the layer is computed, so only the last layer's share is waited for, unless the network
is slower than the prompt.  References: Zhong et al. (2024), DistServe; Patel et al. (2024), Splitwise.
"""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.errors import ScenarioError, option
from datahall.inference.engine.replica import Replica
from datahall.workload.memory.kv_cache import kv_bytes_per_token

SETUP_S = 1e-3  # registration and control messages of a transfer: 0.5–2 ms over RDMA in the papers above
LINK_SHARE = 0.7  # of a link's rate that transfers of scattered blocks reach: 0.6–0.8


class Handoff(msgspec.Struct, frozen=True, kw_only=True):
    """Moving a prompt's cache."""

    setup_s: float = SETUP_S
    token_s: float  # for each token of the prompt
    shown_fraction: float  # of the transfer that cannot start before the prompt is computed


def handoff_of(replica: Replica, bytes_per_s: float = 0.0) -> Handoff:
    """From the replica's network: all its chips send their part at once; 0: the rate of its network cards."""
    card = bytes_per_s or replica.port_bytes_per_s
    if not isfinite(card) or card <= 0:
        raise ScenarioError(
            f"no network rate is known for {replica.chip.name}, over which a cache would move",
            field="nic",
            hint=f"one way and per chip: {option('nic', '400 Gb/s')}",
        )
    chip_bytes = float(kv_bytes_per_token(replica.model, replica.precision, float(replica.tp))) / replica.pp
    return Handoff(token_s=chip_bytes / (LINK_SHARE * card), shown_fraction=1.0 / replica.model.num_layers)
