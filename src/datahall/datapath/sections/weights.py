"""The weights that a replica loads when it starts: from the drives of its hosts, or from storage that all share."""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.breakdown import Breakdown, assumed, derived, product, quotient
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.stored.storage import Storage
from datahall.cluster.host import Host, host_of
from datahall.datapath.cold_start import Loader, load_weights, loader_of
from datahall.datapath.pipeline import Store
from datahall.datapath.sections.text import TEXT
from datahall.fabric.design.parts import usual_server
from datahall.scenario.sections.operations.checkpoint import CHIP_STORAGE_BYTES_PER_S
from datahall.scenario.sections.operations.datapath import USUAL_NIC_BYTES_PER_S

DRIVES = "nvme"


class WeightsNeed(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica reads, and how long that takes."""

    replica_bytes: float
    load_s: float
    on_drives: bool  # of the hosts; else in storage that all chips share
    chip_bytes_per_s: float
    num_chips: int  # of the replica

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        """The weights of a replica, and how long all its chips together take to load them."""
        chips = derived("chips of a replica", self.num_chips, "count")
        whole = derived("weights of a replica", self.replica_bytes, "bytes", "in their number format")
        why = (
            "its share of the drives of its host"
            if self.on_drives
            else "of storage that all share, as Llama 3 had"
        )
        each = assumed("read by a chip", self.chip_bytes_per_s, "bytes_per_s", why)
        return (
            quotient(
                "time to load the weights", whole, product("all chips", (chips, each), "bytes_per_s"), "s"
            ),
        )


def weights_need(catalog: Catalog, chip: Chip, chip_bytes: float, num_chips: int) -> WeightsNeed:
    """A replica of chips that each hold so much; all chips of a host load at once, each its part."""
    host = host_of(chip, catalog.servers())
    loader = loader_of(
        catalog,
        chip,
        num_chips=usual_server(catalog, chip).num_host_chips,
        num_readers=catalog.dataset(TEXT).num_readers,
        nic_bytes_per_s=USUAL_NIC_BYTES_PER_S,
    )
    return loaded(loader, store_of(host, loader.num_chips, chip_bytes, catalog), chip_bytes, num_chips)


def loaded(loader: Loader, store: Store, chip_bytes: float, num_chips: int) -> WeightsNeed:
    """A replica of so many chips whose hosts load from a store; of what is shared they have their own part."""
    load_s = load_weights(loader, store, chip_bytes * loader.num_chips).load_s
    return WeightsNeed(
        replica_bytes=chip_bytes * num_chips,
        load_s=load_s,
        on_drives=not store.storage.is_shared,
        chip_bytes_per_s=chip_bytes / load_s,
        num_chips=num_chips,
    )


def store_of(host: Host, num_chips: int, chip_bytes: float, catalog: Catalog) -> Store:
    """The drives of a host of so many chips where weights fit on them, or its part of storage that all chips share."""
    usual = catalog.storage(DRIVES)
    if isfinite(host.nvme_bytes_per_s) and isfinite(host.nvme_bytes) and host.nvme_bytes >= chip_bytes:
        rate = num_chips * host.nvme_bytes_per_s
        drives = msgspec.structs.replace(
            usual, read_bytes_per_s=rate, capacity_bytes=num_chips * host.nvme_bytes
        )
        return Store(storage=drives, num_units=1)
    shared = Storage(
        name="shared",
        title="storage that all chips share",
        place="shared",
        unit="part",
        read_bytes_per_s=num_chips * CHIP_STORAGE_BYTES_PER_S,
    )
    return Store(storage=shared, num_units=1)
