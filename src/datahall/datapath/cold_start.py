"""How long weights take to load into the chips of hosts, all at once.

    storage      hosts · bytes of a host / (units · read), of what is shared; bytes / (units · read) of a host's own
    network      bytes of a host / NIC of a host, of what is shared
    readers      bytes of a host / (chips of a host · readers · stream)
    copy         bytes of a host / (chips of a host · pinned copy to a chip)

The slowest is the time.
"""

from __future__ import annotations

from math import inf, isfinite

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.cluster.host import host_of
from datahall.datapath.pipeline import Store
from datahall.datapath.supply import request_s, stream_bytes_per_s

PINNED = "pinned"


class Loader(msgspec.Struct, frozen=True, kw_only=True):
    """A host that loads weights into its chips."""

    num_chips: int
    num_readers: int  # for each chip
    nic_bytes_per_s: float  # towards shared storage
    copy_bytes_per_s: float  # from its memory to a chip


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a cold start's reading, and what it waits for."""

    load_s: float
    binding: str
    parts_s: dict[str, float]


def loader_of(
    catalog: Catalog, chip: Chip, *, num_chips: int, num_readers: int, nic_bytes_per_s: float
) -> Loader:
    """A host of so many chips, which copies as fast as was measured and no faster than their link."""
    link = host_of(chip, catalog.servers()).link_bytes_per_s
    copy = catalog.storage(PINNED).stream_bytes_per_s
    return Loader(
        num_chips=num_chips,
        num_readers=num_readers,
        nic_bytes_per_s=nic_bytes_per_s,
        copy_bytes_per_s=min(copy, link) if isfinite(link) else copy,
    )


def load_weights(loader: Loader, store: Store, host_bytes: float, num_hosts: int = 1) -> Load:
    """Load so much [B] into the chips of each of so many hosts."""
    storage = store.storage
    together = num_hosts if storage.is_shared else 1
    readers = loader.num_chips * loader.num_readers
    parts = {
        "storage": together * host_bytes / (store.num_units * storage.read_bytes_per_s),
        "network": host_bytes / (loader.nic_bytes_per_s if storage.is_shared else inf),
        "readers": request_s(store) + host_bytes / (readers * stream_bytes_per_s(store)),
        "copy": host_bytes / (loader.num_chips * loader.copy_bytes_per_s),
    }
    slowest = max(parts, key=parts.__getitem__)
    return Load(load_s=parts[slowest], binding=slowest, parts_s=parts)
