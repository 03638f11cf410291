"""What checkpoints take of the storage that data is read from.

A checkpoint of Z bytes every t seconds keeps storage busy for Z / (write bandwidth) of them; reads have what is left:

    busy = Z / (t · min(units · write, hosts · NIC))

At a share of 1 a checkpoint is never written out: the next one comes before the last has drained.
"""

from __future__ import annotations

from datahall.datapath.pipeline import Pipeline, Store


def write_bytes_per_s(job: Pipeline, store: Store) -> float:
    """What all hosts together can write [B/s]."""
    units = store.num_total(job.num_hosts) * store.storage.write_bytes_per_s
    return min(units, job.num_hosts * job.nic_bytes_per_s) if store.storage.is_shared else units


def drain_s(job: Pipeline, store: Store) -> float:
    """How long a checkpoint takes to be written [s]."""
    return store.checkpoint_bytes / write_bytes_per_s(job, store)


def busy_fraction(job: Pipeline, store: Store) -> float:
    """The share of its time that storage writes checkpoints, at most all of it."""
    return min(1.0, drain_s(job, store) / store.interval_s)
