"""What it takes to read one sample: bytes, requests and whether each request is waited for.

    files       a file a sample: its directory entry is looked up, then its bytes are read; both are waited for
    shards      many samples one after the other in large files; read through, one request opens a whole shard and
                read-ahead hides the rest; read at random, each sample is a request of its own
    columnar    as shards, and only some columns of a sample are read

Reference: WebDataset documentation (shards of tar files); Mohan et al. (VLDB 2021), Analyzing and mitigating data
stalls in DNN training.
"""

from __future__ import annotations

import msgspec

from datahall.scenario.words import Format, Shuffle

PAGE_BYTES = 4096.0  # the least that a drive reads
SHARD_BYTES = float(128 * 2**20)  # of a shard, where samples lie in files of their own now
LOOKUPS = 1.0  # requests for the directory entry of a file that nobody has opened lately


class Reads(msgspec.Struct, frozen=True):
    """One sample, as storage sees it."""

    useful_bytes: float  # that the job asked for
    moved_bytes: float  # that storage reads for it
    requests: float  # that storage answers for it
    waited: float  # of them, that a reader waits for one after the other


def reads_of(
    format: Format, shuffle: Shuffle, sample_bytes: float, num_samples_per_file: int, columns_fraction: float
) -> Reads:
    """What reading one sample comes to.

    Parameters: bytes of a sample [B], samples of a file, share of its columns that are read.

    >>> reads_of("files", "random", 100_000, 1, 1.0)
    Reads(useful_bytes=100000.0, moved_bytes=102400.0, requests=2.0, waited=2.0)
    >>> reads_of("shards", "buffer", 100_000, 1000, 1.0).waited
    0.001
    """
    useful = sample_bytes * (columns_fraction if format == "columnar" else 1.0)
    if format == "files":
        return Reads(useful, _pages(useful), LOOKUPS + 1.0, LOOKUPS + 1.0)
    if shuffle == "random":
        return Reads(useful, _pages(useful), 1.0, 1.0)
    per_shard = num_samples_per_file if num_samples_per_file > 1 else max(1.0, SHARD_BYTES / sample_bytes)
    return Reads(useful, useful, 1.0 / per_shard, 1.0 / per_shard)


def _pages(size_bytes: float) -> float:
    """Bytes of the pages that something fills.

    >>> _pages(1.0), _pages(4096.0), _pages(4097.0)
    (4096.0, 4096.0, 8192.0)
    """
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
