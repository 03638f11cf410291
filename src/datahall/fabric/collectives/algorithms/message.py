"""One message from a rank to another, over its NICs."""

from __future__ import annotations

import numpy as np

from datahall.fabric.collectives.algorithms.bus import Floats
from datahall.fabric.collectives.algorithms.pipeline import overlapped
from datahall.fabric.collectives.constants import Wire


def message_time(wire: Wire, size_bytes: Floats, nic_bytes_per_s: float) -> Floats:
    """Return the time [s] of one message over a rank's NICs.

    T = min(α' + S/B', α ⊕ S / (share · NICs · rate)): with flags inside the data latency is low and so is the rate.
    """
    small = wire.small_latency_s + size_bytes / wire.small_bytes_per_s
    large = overlapped(
        wire.latency_s, size_bytes / (wire.nic_share * wire.num_nics * nic_bytes_per_s), wire.overlap
    )
    return np.asarray(np.minimum(small, large), dtype=np.float64)
