"""A job and stores of round numbers, for tests that work a case out by hand."""

from __future__ import annotations

from typing import Any

from datahall.catalog.entries.stored.storage import Storage
from datahall.datapath.pipeline import Pipeline, Store


def job(**changes: Any) -> Pipeline:
    """16 chips on two hosts; each takes 100 samples of 1 MB every second: 100 MB/s, 1.6 GB/s in all."""
    usual: dict[str, Any] = {
        "num_chips": 16,
        "num_chips_per_host": 8,
        "step_s": 1.0,
        "batch": 100,
        "sample_bytes": 1e6,
        "dataset_bytes": 1e12,
        "num_samples_per_file": 1000,
        "format": "shards",
        "shuffle": "buffer",
        "num_readers": 4,
        "num_prefetch": 2,
        "num_cores": 64,
        "cache_stream_bytes_per_s": 1e9,
        "nic_bytes_per_s": 10e9,
    }
    return Pipeline(**usual | changes)


def storage(**changes: Any) -> Storage:
    """Shared, 1 GB/s and 1,000 requests/s a unit, 1 ms away."""
    usual: dict[str, Any] = {
        "name": "x",
        "title": "x",
        "place": "shared",
        "unit": "node",
        "read_bytes_per_s": 1e9,
        "write_bytes_per_s": 0.5e9,
        "latency_s": 1e-3,
        "num_reads_per_s": 1000,
    }
    return Storage(**usual | changes)


def store(num_units: int = 1, **changes: Any) -> Store:
    own = {key: changes.pop(key) for key in ("away_s", "checkpoint_bytes", "interval_s") if key in changes}
    return Store(storage=storage(**changes), num_units=num_units, **own)
