"""How long replicas of a model take to load their weights, all at once.

    storage      replicas · weights / (units · read), of what is shared; weights / (units · read) of a host's own
    network      weights / NIC of a host, of what is shared
    readers      weights / (chips of a host · readers · stream)
    copy         weights / (chips of a host · pinned copy to a chip)

The slowest is the time; a replica stands in one host here.
"""

from __future__ import annotations

from math import inf

import msgspec

from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.supply import request_s, stream_bytes_per_s


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a cold start's reading, and what it waits for."""

    load_s: float
    binding: str
    parts_s: dict[str, float]


def load_weights(
    job: Pipeline, store: Store, weights_bytes: float, num_replicas: int, copy_bytes_per_s: float
) -> Load:
    """Load weights [B] into so many replicas, over a copy to a chip of so much [B/s]."""
    storage = store.storage
    together = num_replicas if storage.is_shared else 1
    readers = job.num_chips_per_host * job.num_readers
    parts = {
        "storage": together * weights_bytes / (store.num_units * storage.read_bytes_per_s),
        "network": weights_bytes / (job.nic_bytes_per_s if storage.is_shared else inf),
        "readers": request_s(store) + weights_bytes / (readers * stream_bytes_per_s(store)),
        "copy": weights_bytes / (job.num_chips_per_host * copy_bytes_per_s),
    }
    slowest = max(parts, key=parts.__getitem__)
    return Load(load_s=parts[slowest], binding=slowest, parts_s=parts)
