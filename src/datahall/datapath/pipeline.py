"""How a job reads its data, and where the data lies; plain numbers, so that a change is one field replaced."""

from __future__ import annotations

from math import ceil, inf

import msgspec

from datahall.catalog.entries.stored.storage import Storage
from datahall.datapath.reading import Reads, reads_of
from datahall.scenario.sections.operations.datapath import USUAL_KEEPING
from datahall.scenario.words import Format, Keeping, Shuffle


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """A job that reads samples in batches: its chips, its step, its samples, its loader and its hosts."""

    num_chips: int
    num_chips_per_host: int
    step_s: float  # that a chip works on a batch
    batch: int  # samples of a chip and step
    sample_bytes: float
    spread_bytes: float = 0.0  # standard deviation of a sample's size
    dataset_bytes: float
    num_samples_per_file: int
    format: Format
    shuffle: Shuffle
    columns_fraction: float = 1.0  # of a sample's bytes, that a columnar file reads
    num_readers: int  # that load for one chip
    num_prefetch: int  # batches that may lie ready before a chip
    prepare_s: float = 0.0  # of a core, to decode or tokenise a sample
    num_cores: int  # of a host
    cache_bytes: float = 0.0  # of a host, for the data set
    keeping: Keeping = USUAL_KEEPING
    cache_stream_bytes_per_s: float  # that one reader gets from the cache
    nic_bytes_per_s: float  # of a host, towards shared storage

    @property
    def num_hosts(self) -> int:
        """Hosts that the chips stand in."""
        return ceil(self.num_chips / self.num_chips_per_host)

    @property
    def reads(self) -> Reads:
        """What reading a sample comes to."""
        return reads_of(
            self.format, self.shuffle, self.sample_bytes, self.num_samples_per_file, self.columns_fraction
        )

    @property
    def needed_bytes_per_s(self) -> float:
        """What all chips take if they never wait: chips · batch · bytes of a sample / step."""
        return self.num_chips * self.batch * self.reads.useful_bytes / self.step_s


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """So many units of a tier, how far away they are, and what else is done with them."""

    storage: Storage
    num_units: int  # of each host, or in all where hosts share them
    away_s: float = 0.0  # there and back, on top of a request's latency
    checkpoint_bytes: float = 0.0
    interval_s: float = inf  # between checkpoints

    def num_total(self, num_hosts: int) -> int:
        """Units that there are in all."""
        return self.num_units if self.storage.is_shared else self.num_units * num_hosts
