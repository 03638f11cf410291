"""The weights that a replica loads when it starts: from the drives of its hosts, or from storage that all share."""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.breakdown import Breakdown, assumed, derived, product, quotient
from datahall.cluster.host import Host
from datahall.scenario.sections.operations.checkpoint import CHIP_STORAGE_BYTES_PER_S


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


def weights_need(host: Host, chip_bytes: float, num_chips: int) -> WeightsNeed:
    """A replica of chips that each hold so much; every chip reads its part, through its own share of the drives."""
    drives = host.tier_bytes_per_s("nvme")
    on_drives = isfinite(drives) and isfinite(host.nvme_bytes) and host.nvme_bytes >= chip_bytes
    rate = drives if on_drives else CHIP_STORAGE_BYTES_PER_S
    return WeightsNeed(
        replica_bytes=chip_bytes * num_chips,
        load_s=chip_bytes / rate,
        on_drives=on_drives,
        chip_bytes_per_s=rate,
        num_chips=num_chips,
    )
