"""Which measured runs are of a sick machine: counted with that reason, never fitted and never scored.

Two signs, both of the measurement alone: its source shows the same machine doing better, in words that `FAULTS` quotes,
or its bandwidth falls to less than half as messages grow.  What we predict has no say: a run that is far from our
prediction is scored like any other, and so is one whose reporter only hoped for more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from datahall.validation.measurement import Row

CLIFF = 0.5


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that their own source reports as a malfunction."""

    source: str  # as the rows name it
    when: dict[str, str] = {}  # column: pattern, of the faulty rows where the source has others
    said: str  # its words
    url: str


FAULTS = (
    Fault(
        source="GitHub issue NVIDIA/nccl#1453",
        said="Two-node performance either within a rack or across racks is OK. Three-node performance across racks is "
        "severely degraded.",
        url="https://github.com/NVIDIA/nccl/issues/1453",
    ),
    Fault(
        source="GitHub issue NVIDIA/nccl#2409",
        said="The same hardware reaches line rate with perftest on a single rail",
        url="https://github.com/NVIDIA/nccl/issues/2409",
    ),
    Fault(
        source="GitHub issue NVIDIA/nccl#1272",
        when={"algorithm": r"2\.20\.5"},
        said="Setting `NCCL_NCHANNELS_PER_NET_PEER=4` gives the expected performance 24.2-24.3 GB/s which is also the "
        "one I get with 2 and 4 nodes.",
        url="https://github.com/NVIDIA/nccl/issues/1272",
    ),
    Fault(
        source="GitHub issue NVIDIA/nccl-tests#283",
        when={"notes": "intermittent drops"},
        said="the bus bandwidth has been unstable, typically measuring around 350G, but occasionally dropping below "
        "300G",
        url="https://github.com/NVIDIA/nccl-tests/issues/283",
    ),
)


def reported_fault(row: Row) -> Fault | None:
    """What the source of a row reports of a malfunction, if anything.

    >>> reported_fault(Row("", {"source": "GitHub issue NVIDIA/nccl#1272", "algorithm": "NCCL 2.20.5"})).url
    'https://github.com/NVIDIA/nccl/issues/1272'
    >>> reported_fault(Row("", {"source": "GitHub issue NVIDIA/nccl#1272", "algorithm": "NCCL 2.19.4"}))
    """
    return next(
        (
            one
            for one in FAULTS
            if one.source == row.text("source")
            and all(re.search(pattern, row.text(column)) for column, pattern in one.when.items())
        ),
        None,
    )


def has_cliff(size_bytes: Sequence[float], bytes_per_s: Sequence[float]) -> bool:
    """Whether bandwidth falls to less than half of its best at a larger message.

    >>> has_cliff([2**24, 2**25, 2**26], [12.6e9, 15.4e9, 2.8e9]), has_cliff([2**24, 2**25], [12.6e9, 15.4e9])
    (True, False)
    """
    best = 0.0
    for _, rate in sorted(zip(size_bytes, bytes_per_s, strict=True)):
        if rate < CLIFF * best:
            return True
        best = max(best, rate)
    return False
