"""What comes through a data path: the narrowest of everything on it, and how long chips wait for it.

Samples per second of one chip, with m the share that the cache misses:

    bandwidth     units · read / (chips · m · bytes moved), less what checkpoints take of it
    requests      units · reads per second / (chips · m · requests of a sample)
                  where `chips` are all of them, or those of a host that has units of its own
    network       NIC of a host / (chips of a host · m · bytes moved), where storage is shared
    readers       readers / (prepare + hit · bytes / cache stream + m · (waited · latency + bytes / stream))
    processors    cores of a host / (chips of a host · prepare)

The least of them is what a loader makes.  What a chip then does is `stall.utilisation`: AU, accelerator utilisation, as
MLPerf Storage defines it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt

import msgspec

from datahall.datapath.cache import hit_fraction
from datahall.datapath.checkpoint import busy_fraction
from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.stall import utilisation

COMPUTE, PREFETCH, CHECKPOINTS = "compute", "prefetch", "checkpoints"
UNFELT = 1e-3  # of their time; who waits less waits for nothing


class Supply(msgspec.Struct, frozen=True, kw_only=True):
    """What a data path delivers."""

    needed_bytes_per_s: float
    available_bytes_per_s: float  # what would come through if chips took it
    limits_bytes_per_s: dict[str, float]  # of everything on the way, all chips together
    binding: str
    hit_fraction: float
    variation: float  # of the time to make a batch
    utilisation_fraction: float

    @property
    def delivered_bytes_per_s(self) -> float:
        """What chips get: what they need, as far as they do not wait."""
        return self.utilisation_fraction * self.needed_bytes_per_s

    @property
    def stall_fraction(self) -> float:
        """The share of their time that chips wait."""
        return 1.0 - self.utilisation_fraction

    @property
    def margins(self) -> dict[str, float]:
        """What each part of the way lets through over what is needed, the narrowest first; of those with a limit."""
        known = {name: limit for name, limit in self.limits_bytes_per_s.items() if limit < inf}
        return {name: known[name] / self.needed_bytes_per_s for name in sorted(known, key=known.__getitem__)}

    @property
    def margin_ratio(self) -> float:
        """What would come through over what is needed."""
        return self.available_bytes_per_s / self.needed_bytes_per_s


def supply(job: Pipeline, store: Store) -> Supply:
    """What a store delivers to a job."""
    hit = hit_fraction(job.cache_bytes, job.dataset_bytes, job.keeping, job.shuffle, job.num_hosts)
    limits = limits_samples_per_s(job, store, 1.0 - hit)
    rate = min(limits.values())
    variation = _variation(job, store, 1.0 - hit) / sqrt(job.batch)
    found = utilisation(job.step_s, job.batch / rate if rate > 0.0 else inf, job.num_prefetch, variation)
    bytes_per_sample = job.num_chips * job.reads.useful_bytes
    available = rate * bytes_per_sample
    slow = found < 1.0 - UNFELT
    return Supply(
        needed_bytes_per_s=job.needed_bytes_per_s,
        available_bytes_per_s=available,
        limits_bytes_per_s={name: limit * bytes_per_sample for name, limit in limits.items()},
        binding=_binding(job, store, limits) if slow else COMPUTE,
        hit_fraction=hit,
        variation=variation,
        utilisation_fraction=found,
    )


def _binding(job: Pipeline, store: Store, limits: Mapping[str, float]) -> str:
    """What chips wait for: the narrowest part, or that too little is ready where all is wide enough on average."""
    if busy_fraction(job, store) >= 1.0:
        return CHECKPOINTS
    narrowest = min(limits, key=limits.__getitem__)
    return PREFETCH if job.batch / limits[narrowest] < job.step_s else narrowest


def limits_samples_per_s(job: Pipeline, store: Store, missed: float) -> dict[str, float]:
    """What each part of the way lets through for one chip [samples/s]; infinite where it has no limit."""
    storage, reads = store.storage, job.reads
    free = 1.0 - busy_fraction(job, store)
    per_host = min(job.num_chips, job.num_chips_per_host)
    sharing = job.num_chips if storage.is_shared else per_host
    reader_s = reader_time_s(job, store, missed)
    return {
        "bandwidth": _over(
            _left(store.num_units * storage.read_bytes_per_s, free), sharing * missed * reads.moved_bytes
        ),
        "requests": _over(
            _left(store.num_units * storage.num_reads_per_s or inf, free), sharing * missed * reads.requests
        ),
        "network": _over(
            job.nic_bytes_per_s if storage.is_shared else inf, per_host * missed * reads.moved_bytes
        ),
        "readers": _over(job.num_readers, reader_s),
        "processors": _over(job.num_cores, per_host * job.prepare_s),
    }


def reader_time_s(job: Pipeline, store: Store, missed: float) -> float:
    """How long one reader is busy with a sample: from the cache, or from storage, and preparing it [s].

    What comes from storage is copied out of the host's memory like what the cache had, and never faster.
    """
    reads = job.reads
    cached_s = reads.useful_bytes / job.cache_stream_bytes_per_s
    stored_s = reads.waited * request_s(store) + reads.moved_bytes / min(
        stream_bytes_per_s(store), job.cache_stream_bytes_per_s
    )
    return job.prepare_s + (1.0 - missed) * cached_s + missed * stored_s


def request_s(store: Store) -> float:
    """How long one request is under way before its first byte [s]."""
    return store.storage.latency_s + store.away_s


def stream_bytes_per_s(store: Store) -> float:
    """What one reader gets of storage that nobody else reads [B/s]: its own stream, or all of one unit."""
    return min(store.storage.stream_bytes_per_s, store.storage.read_bytes_per_s)


def _variation(job: Pipeline, store: Store, missed: float) -> float:
    """Coefficient of variation of the time that a reader takes for a sample: sizes differ, and so do latencies."""
    mean_s = reader_time_s(job, store, missed)
    if mean_s <= 0.0:
        return 0.0
    size = job.spread_bytes / job.sample_bytes * (mean_s - missed * job.reads.waited * request_s(store))
    wait = store.storage.latency_spread_s * missed * job.reads.waited
    return sqrt(size**2 + wait**2) / mean_s


def _left(resource: float, free: float) -> float:
    """What is free of a resource, be it without limit."""
    return resource * free if free > 0.0 else 0.0


def _over(resource: float, need: float) -> float:
    return resource / need if need > 0.0 else inf
