"""One tier of checkpoints: where copies lie, what writing one stops, and how long it takes to be safe and to be read.

blocking = coordination + bytes of a chip / link to the host       (synchronous: + drain)
drain    = the narrowest of: bytes of a chip / its way there, all bytes / the storage behind
interval ≥ drain, or copies pile up
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import msgspec

from datahall.catalog.entries.failures import COPY_TIERS, Tier


class TierRow(NamedTuple):
    """What a kind of copy is, whatever the machine."""

    title: str
    outlives: tuple[Tier, ...]  # the failures that a copy outlives, by the nearest copy that each leaves
    has_files: bool = False  # ranks agree on files before they write


# One node's failure takes its memory and its drives, a loss of power the memory of many nodes and no drive.
TIER_ROWS: dict[Tier, TierRow] = {
    "device": TierRow("the chip's own memory", ("device",)),
    "host": TierRow("host memory", ("device", "host")),
    "peer": TierRow("memory of another host", ("device", "host", "peer")),
    "local": TierRow("local NVMe", ("device", "host", "local"), has_files=True),
    "remote": TierRow("remote storage", COPY_TIERS, has_files=True),
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
        return TIER_ROWS[self.name].outlives

    @property
    def title(self) -> str:
        return TIER_ROWS[self.name].title


class Cadence(msgspec.Struct, frozen=True, kw_only=True):
    """A tier and how often it is written."""

    tier: CheckpointTier
    interval_s: float
    share_fraction: float  # of failures that fall back to it

    def own_mttf_s(self, mttf_s: float) -> float:
        """Between failures that fall back to it, of all that come so often [s]."""
        return shared_s(mttf_s, self.share_fraction)


def shared_s(mttf_s: float, share_fraction: float) -> float:
    """Between failures that are such a share of all that come so often [s].

    >>> shared_s(100.0, 0.5), shared_s(100.0, 0.0)
    (200.0, inf)
    """
    return mttf_s / share_fraction if share_fraction > 0 else inf
