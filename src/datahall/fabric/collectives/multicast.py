"""All-reduce kernels that use the NVSwitch's multicast themselves, outside NCCL's protocols.

One shot: every rank multicasts its whole array and adds up what arrives, S·n bytes in.  Two shots: every rank lets the
switch add its share and multicasts the sum, S/n bytes out.  A few thread blocks move the bytes, not the links.
"""

from __future__ import annotations

import numpy as np

from datahall.fabric.collectives.algorithms.bus import Floats
from datahall.fabric.collectives.algorithms.pipeline import overlapped
from datahall.fabric.collectives.constants import Multicast


def multicast_time(kernel: Multicast, size_bytes: Floats, num_ranks: int) -> Floats:
    """Return the time [s]: T = base(n) ⊕ volume / rate, volume S·n (one shot), S or S/n (two shots)."""
    volume = size_bytes * {"all": float(num_ranks), "once": 1.0, "share": 1.0 / num_ranks}[kernel.volume]
    base = kernel.base_s + kernel.doubling_s * float(np.log2(num_ranks / 4))
    return np.asarray(overlapped(base, volume / kernel.bytes_per_s, kernel.overlap), dtype=np.float64)
