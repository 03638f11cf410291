"""Every tier that the machine of a job has, with its times from bytes and bandwidths.

Of what a chip writes, bytes of the fullest chip count; of the storage behind all, the bytes of all.  What moves to a
peer or to the storage leaves by the chip's share of the network, beside the traffic of the steps.
"""

from __future__ import annotations

from math import isfinite, nan

from datahall.catalog.entries.failures import COPY_TIERS, Tier
from datahall.counted import counted
from datahall.reliability.checkpoint.tier import TIER_ROWS, CheckpointTier
from datahall.reliability.job import RunningJob
from datahall.scenario.sections.operations.checkpoint import CHIP_STORAGE_BYTES_PER_S, Checkpointing
from datahall.units import fmt

COPIES_OF_PEER = 2  # in the memory of a host: its own, and those of another


def storage_of(asked: Checkpointing, num_chips: int) -> float:
    """Bandwidth of the remote storage [B/s]."""
    return asked.storage_bytes_per_s or num_chips * CHIP_STORAGE_BYTES_PER_S


def tiers_of(job: RunningJob, asked: Checkpointing) -> tuple[CheckpointTier, ...]:
    """The tiers of a job's machine, nearest first; one that it has no room or no way for says so."""
    return tuple(_tier(name, job, asked) for name in COPY_TIERS)


def _tier(name: Tier, job: RunningJob, asked: Checkpointing) -> CheckpointTier:
    moved_s, drain_s = _moved_s(name, job), _drain_s(name, job, asked)
    blocking_s = moved_s + (asked.save_s if TIER_ROWS[name].has_files else asked.copy_s)
    if asked.synchronous:
        blocking_s, drain_s = blocking_s + drain_s, 0.0
    if asked.blocking_s is not None:
        blocking_s = asked.blocking_s
    return CheckpointTier(
        name=name,
        blocking_s=blocking_s,
        drain_s=drain_s,
        load_s=moved_s + _drain_s(name, job, asked),
        lacks=_lacks(name, job),
    )


def _moved_s(name: Tier, job: RunningJob) -> float:
    """From the chip to where the copy leaves it alone: its own memory, read and written, or that of the host."""
    if name == "device":
        return 2.0 * job.size.chip_bytes / job.cluster.chip.memory_bytes_per_s
    return job.size.chip_bytes / job.cluster.host.copied_bytes_per_s


def _drain_s(name: Tier, job: RunningJob, asked: Checkpointing) -> float:
    """From the host's memory to where the copy is safe."""
    chip_bytes, host = job.size.chip_bytes, job.cluster.host
    if name == "local":
        return chip_bytes / host.nvme_bytes_per_s
    if name in ("device", "host"):
        return 0.0
    network_s = chip_bytes / network_bytes_per_s(job) if isfinite(network_bytes_per_s(job)) else 0.0
    if name == "peer":
        return network_s
    return max(network_s, job.size.total_bytes / storage_of(asked, job.num_chips))


def network_bytes_per_s(job: RunningJob) -> float:
    """A chip's share of its host's network, one way [B/s]; NaN where it is not known."""
    return job.cluster.system.nic_bytes_per_s or job.cluster.chip.nic_bytes_per_s or nan


def _lacks(name: Tier, job: RunningJob) -> str:
    """Why the machine has no such tier; nothing where it has."""
    need, host = job.size.chip_bytes, job.cluster.host
    if name == "device":
        return _no_room(need, job.headroom_bytes, "of a chip's memory")
    if name == "host":
        return _no_room(need, host.memory_bytes, "of the host's memory for each chip")
    if name == "local":
        return _no_room(need, host.nvme_bytes, "of drives for each chip") or (
            "" if isfinite(host.nvme_bytes_per_s) else "nobody says how fast the drives are"
        )
    if name == "peer" and job.num_nodes == 1:
        return f"there is {counted(1, 'host')} only"
    if name == "peer" and not isfinite(network_bytes_per_s(job)):
        return "nobody says how fast the network of a host is"
    return (
        _no_room(COPIES_OF_PEER * need, host.memory_bytes, "of the host's memory for each chip")
        if name == "peer"
        else ""
    )


def _no_room(need: float, there: float, what: str) -> str:
    if not isfinite(there):
        return f"nobody says how much there is {what}"
    if need <= there:
        return ""
    return f"it takes {fmt(need, 'bytes', 3)} {what}, and {fmt(max(0.0, there), 'bytes', 3)} are free"
