"""The tiers below a chip's cache, from what a replica says of them: how many blocks they hold, and the way of one up.

    blocks = ⌊bytes of the tier / bytes of a block on all chips of a rank⌋
    time   = bytes of a block on one chip / rate of its link; behind the link, of its share of the drives

All chips of a rank move their parts at once.  Blocks go down beside the steps: links carry both ways at once, and what
goes down is never waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.server import Server
from datahall.cluster.host import host_of
from datahall.errors import ScenarioError, option
from datahall.inference.engine.replica import Replica
from datahall.workload.memory.kv_cache import kv_bytes_per_token


class LowerTier(NamedTuple):
    """Host memory or drives of one replica."""

    num_blocks: int
    block_s: float  # until a block is on the chip


def lower_tiers(replica: Replica) -> tuple[LowerTier, LowerTier]:
    """Host memory, then drives; a tier of no blocks is not there."""
    if not all(0 <= size < float("inf") for size in (replica.host_cache_bytes, replica.drive_cache_bytes)):
        raise ScenarioError(
            f"a cache of {replica.host_cache_bytes:g} bytes on the host and {replica.drive_cache_bytes:g} on drives",
            hint="0: none",
        )
    link = host_bytes_per_s(replica) if replica.host_cache_bytes or replica.drive_cache_bytes else 1.0
    if replica.drive_cache_bytes and not replica.drive_bytes_per_s > 0:
        raise ScenarioError(
            "a cache on drives without their rate",
            field="drive_rate",
            hint=f"of a chip's share of them: {option('drive_rate', '7GB/s')}",
        )
    drives = min(link, replica.drive_bytes_per_s or link)
    return _tier(replica, replica.host_cache_bytes, link), _tier(replica, replica.drive_cache_bytes, drives)


def _tier(replica: Replica, size_bytes: float, bytes_per_s: float) -> LowerTier:
    own_bytes = token_bytes(replica) * replica.engine.block_tokens
    if not size_bytes or not own_bytes:
        return LowerTier(0, 0.0)
    return LowerTier(int(size_bytes / (own_bytes * replica.tp * replica.pp)), own_bytes / bytes_per_s)


def drive_bytes_per_s(chip: Chip, servers: Iterable[Server]) -> float:
    """Rate of a chip's share of the drives of the machine it is sold in; 0 where nothing is published [B/s]."""
    rate = host_of(chip, servers).nvme_bytes_per_s
    return rate if isfinite(rate) else 0.0


def token_bytes(replica: Replica) -> float:
    """Keys and values of one token on one chip of a mean stage [B]."""
    return float(kv_bytes_per_token(replica.model, replica.precision, float(replica.tp))) / replica.pp


def host_bytes_per_s(replica: Replica) -> float:
    """Rate between a chip and its host, one way [B/s]."""
    rate = replica.host_bytes_per_s or host_of(replica.chip).link_bytes_per_s
    if not isfinite(rate):
        field, hint = _without_link(replica)
        raise ScenarioError(f"no host link is known for {replica.chip.name}", field=field, hint=hint)
    return rate


def _without_link(replica: Replica) -> tuple[str, str]:
    """The input that asks for a link of which nothing is known, and what to say instead."""
    if replica.host_cache_bytes:
        return "host_link", f"say it, one way: {option('host_link', '50 GB/s')}"
    if replica.engine.preemption == "swap":
        return "preemption", option("preemption", "recompute")
    if replica.drive_cache_bytes:
        return "drive_cache", f"leave {option('drive_cache')} and {option('drive_rate')} out"
    return "resident_adapters", f"leave {option('resident_adapters')} out"
