"""The server side of a chip: its link to the host, and its share of memory and drives."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, nan

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.server import Server

ASSUMED_LINK_BYTES_PER_S = 12e9  # where nobody says it: PCIe 3.0 with 16 lanes, the slowest


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A chip's share of the server it stands in; NaN where nothing is published."""

    title: str = ""
    link: str = ""
    link_bytes_per_s: float = nan  # one way
    memory_bytes: float = nan
    memory_bytes_per_s: float = nan
    nvme_bytes: float = nan
    nvme_bytes_per_s: float = nan

    @property
    def says_link(self) -> bool:
        """Whether it is known how fast a chip writes to its host."""
        return isfinite(self.link_bytes_per_s)

    @property
    def copied_bytes_per_s(self) -> float:
        """What a chip copies to the memory of its host, one way; assumed where nobody says it [B/s]."""
        return self.link_bytes_per_s if self.says_link else ASSUMED_LINK_BYTES_PER_S

    def tier_bytes(self, tier: str) -> float:
        """Capacity of a tier [B]."""
        return self.memory_bytes if tier == "host" else self.nvme_bytes

    def tier_bytes_per_s(self, tier: str) -> float:
        """Rate between the chip and a tier, one way [B/s]: the link, and behind it the drives."""
        if tier == "host" or not isfinite(self.nvme_bytes_per_s):
            return self.link_bytes_per_s if tier == "host" else nan
        return min(self.link_bytes_per_s, self.nvme_bytes_per_s)


def host_of(chip: Chip, servers: Iterable[Server] = ()) -> Host:
    """The host side of a chip: its own link, and memory and drives of the first machine that is sold with it."""
    measured, sold = chip.measured_host_bytes_per_s, chip.host_bytes_per_s
    rate = measured if isfinite(measured) else sold
    machine = next(
        (one for one in servers if one.chip == chip.name and isfinite(one.host_memory_bytes)), None
    )
    if machine is None:
        return Host(link=chip.host_link, link_bytes_per_s=rate)
    return Host(
        title=machine.title,
        link=chip.host_link,
        link_bytes_per_s=rate,
        memory_bytes=machine.host_memory_bytes / machine.num_chips,
        memory_bytes_per_s=machine.host_memory_bytes_per_s / machine.num_chips,
        nvme_bytes=machine.nvme_bytes / machine.num_chips,
        nvme_bytes_per_s=machine.nvme_bytes_per_s / machine.num_chips,
    )
