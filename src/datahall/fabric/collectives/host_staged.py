"""Collectives between cards that cannot reach each other's memory: every message crosses host memory.

The sender copies a slice into host memory, the receiver reads it from there; the second copy starts when the slice has
landed, later slices overlap.  A ring over n cards takes k steps (2 (n − 1) of an all-reduce, n − 1 of a gather or a
scatter), and each card sends k/n of the message:

    time = launch + k · (hop + min(slice, message/n) / link) + k/n · message / link

`link` is what one card reaches through its host: both copies pass through the root of the PCIe tree, so half of what
the card reaches between peers, where each byte passes once.  Reference: NCCL 2.27, transport/shm.cc; slices of its
4 MiB buffer in 8 steps.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.basis import Basis
from datahall.errors import UnsupportedError
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.engine_all_reduce import constants_of
from datahall.fabric.collectives.system import System
from datahall.scenario.words import Collective
from datahall.silicon.calibration import NEAREST_STACK

LAUNCH_S = 5e-6  # the smallest messages of two L40S under NCCL take 5.3 µs (AIConfigurator 0.12.0)
HOP_S = 1e-6  # a flag that crosses PCIe and host memory
SLICE_BYTES = 4.0 * 2**20 / 8
COPIES = 2.0
PEER_SHARE = 0.6  # of a PCIe link's datasheet rate that two L40S or RTX PRO 6000 reach between them, as peers


class Link(msgspec.Struct, frozen=True):
    """A rate, one way, and what it rests on."""

    bytes_per_s: float
    level: Basis


def staged_link(system: System, engine: str = NEAREST_STACK) -> Link:
    """What one card of a system reaches through host memory, from what was measured between two peers."""
    found = constants_of(system, engine)
    if found is None:
        return Link(PEER_SHARE * system.scale_up_bytes_per_s / COPIES, "datasheet only")
    return Link(found[0].bus_bytes_per_s[0] / COPIES, "family-calibrated")


def staged_times(
    collective: Collective, size_bytes: NDArray[np.float64], num_ranks: int, link_bytes_per_s: float
) -> NDArray[np.float64]:
    """Times [s] of collectives of a whole message of `size_bytes` over cards that share a host.

    >>> bool(9e-4 < staged_times("all-reduce", np.array([16e6]), 2, 18e9)[0] < 1e-3)
    True
    """
    row = MOVES[collective]
    if not row.goes_in_shares:
        modelled = ", ".join(name for name, one in MOVES.items() if one.goes_in_shares)
        raise UnsupportedError(
            f'"{collective}" through host memory is not modelled', hint=f"one of {modelled}"
        )
    steps = row.num_rounds * (num_ranks - 1)
    part_bytes = np.asarray(size_bytes, dtype=np.float64) / num_ranks
    first_s = HOP_S + np.minimum(SLICE_BYTES, part_bytes) / link_bytes_per_s
    found: NDArray[np.float64] = LAUNCH_S + steps * (first_s + part_bytes / link_bytes_per_s)
    return found
