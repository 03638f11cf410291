"""What parts of a data path are called in sentences."""

from __future__ import annotations

from datahall.counted import counted
from datahall.datapath.pipeline import Store

BINDS = {
    "compute": "the chips themselves, which never wait",
    "prefetch": "too little that lies ready, since times vary or nothing is loaded ahead",
    "checkpoints": "checkpoints, of which the next comes before the last is written",
    "bandwidth": "the bandwidth of storage",
    "requests": "the requests that storage answers",
    "network": "the network of the hosts",
    "readers": "the readers, which wait for one request after the other",
    "processors": "the cores that prepare samples",
}


def of_storage(store: Store) -> str:
    """A store in a sentence: so many units of what, and where."""
    if store.storage.is_memory:
        return f"{store.storage.name} (memory of each host)"
    number = counted(store.num_units, store.storage.unit)
    where = f"{number}, shared" if store.storage.is_shared else f"{number} in each host"
    return f"{store.storage.name} ({where})"
