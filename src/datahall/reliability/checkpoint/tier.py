"""One tier of checkpoints: where copies lie, what writing one stops, and how long it takes to be safe and to be read.

blocking = coordination + bytes of a chip / link to the host       (synchronous: + drain)
drain    = the narrowest of: bytes of a chip / its way there, all bytes / the storage behind
interval ≥ drain, or copies pile up
"""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.failures import COPY_TIERS, Tier
from datahall.reliability.ettr import best_interval_s

# The failures that a copy outlives, by the nearest copy that each leaves: one node's takes its memory and its drives,
# a loss of power the memory of many nodes and no drive.
OUTLIVES: dict[Tier, tuple[Tier, ...]] = {
    "device": ("device",),
    "host": ("device", "host"),
    "peer": ("device", "host", "peer"),
    "local": ("device", "host", "local"),
    "remote": COPY_TIERS,
}
TITLES: dict[Tier, str] = {
    "device": "the chip's own memory",
    "host": "host memory",
    "peer": "memory of another host",
    "local": "local NVMe",
    "remote": "remote storage",
}


class CheckpointTier(msgspec.Struct, frozen=True, kw_only=True):
    """A tier as a run could use it; `lacks` says why it cannot."""

    name: Tier
    blocking_s: float
    drain_s: float
    load_s: float
    lacks: str = ""

    @property
    def rank(self) -> int:
        """How far from the chip, as failures count."""
        return COPY_TIERS.index(self.name)

    @property
    def outlives(self) -> tuple[Tier, ...]:
        """The failures that a copy outlives, by the nearest copy that each leaves."""
        return OUTLIVES[self.name]

    @property
    def title(self) -> str:
        return TITLES[self.name]

    def best_interval_s(self, mttf_s: float, step_s: float) -> float:
        """The best interval against failures that only this tier is asked for [s]: never below its drain or a step.

        >>> tier = CheckpointTier(name="remote", blocking_s=6.0, drain_s=600.0, load_s=3.0)
        >>> tier.best_interval_s(11_135.0, 5.0)
        600.0
        """
        return max(self.drain_s, step_s, best_interval_s(self.blocking_s, mttf_s))


class Cadence(msgspec.Struct, frozen=True, kw_only=True):
    """A tier and how often it is written."""

    tier: CheckpointTier
    interval_s: float
    share_fraction: float  # of failures that fall back to it
