"""Meta's ctran, which drives the NICs of a rank itself: rings and recursive doubling of RDMA writes.

A rank with two NICs either deals every message out over both (interleaved) or fills the first one before it opens
the second; that alone explains a factor of 1.5 at a few MB a step.
"""

from __future__ import annotations

import numpy as np

from datahall.fabric.collectives.algorithms.bus import Collective, Floats
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.algorithms.pipeline import overlapped
from datahall.fabric.collectives.constants import Ctran

SMALL_BYTES, RAMP_DOUBLINGS = 4096.0, 3.0
NUM_NICS = 2


def busiest_nic_bytes(message_bytes: Floats, first_nic_bytes: float, *, interleaved: bool) -> Floats:
    """Return the bytes [B] that the busier of two NICs carries.

    min(m, max(F, m/2)) when the first NIC is filled up to F, m/2 when both share.

    >>> busiest_nic_bytes(np.array([1e6, 5e6, 2e7]), 3e6, interleaved=False)
    array([ 1000000.,  3000000., 10000000.])
    """
    if interleaved:
        return message_bytes / NUM_NICS
    return np.minimum(message_bytes, np.maximum(first_nic_bytes, message_bytes / NUM_NICS))


def ring_time(
    constants: Ctran, collective: Collective, size_bytes: Floats, num_ranks: int, *, interleaved: bool
) -> Floats:
    """Return the time [s] of a ring of RDMA writes.

    T = base + steps · (α ⊕ busiest NIC's bytes / B), steps of S/n
    """
    chunk = size_bytes / num_ranks
    steps = MOVES[collective].num_rounds * (num_ranks - 1)
    overlap = constants.reduce_overlap if MOVES[collective].adds else constants.overlap
    step = overlapped(
        _hop(constants, collective, chunk), _wire(constants, collective, chunk, interleaved), overlap
    )
    return np.asarray(constants.base_s + steps * step, dtype=np.float64)


def doubling_time(
    constants: Ctran, collective: Collective, size_bytes: Floats, num_ranks: int, *, interleaved: bool
) -> Floats:
    """Return the time [s] of recursive doubling: ⌈log₂ n⌉ steps, each of which sends twice the bytes of the last."""
    total = np.full(np.shape(size_bytes), constants.doubling_base_s)
    held = 1
    while held < num_ranks:
        chunk = size_bytes / num_ranks * min(held, num_ranks - held)
        hop = _hop(constants, collective, chunk)
        total = total + overlapped(hop, _wire(constants, collective, chunk, interleaved), constants.overlap)
        held *= 2
    return total


def _hop(constants: Ctran, collective: Collective, chunk: Floats) -> Floats:
    grown = np.clip(np.log2(np.maximum(chunk, 1.0) / SMALL_BYTES) / RAMP_DOUBLINGS, 0.0, 1.0)
    first = constants.reduce_hop_s if MOVES[collective].adds else constants.gather_hop_s
    return np.asarray(first + constants.ramp_s * grown, dtype=np.float64)


def _wire(constants: Ctran, collective: Collective, chunk: Floats, interleaved: bool) -> Floats:
    first = constants.reduce_first_nic_bytes if MOVES[collective].adds else constants.first_nic_bytes
    return busiest_nic_bytes(chunk, first, interleaved=interleaved) / constants.nic_bytes_per_s
