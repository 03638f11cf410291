"""How latency and transfer add up: in full, hidden behind each other, or with the best chunk size between them."""

from __future__ import annotations

from datahall.fabric.collectives.algorithms.bus import Number


def overlapped(latency_s: Number, transfer_s: Number, overlap: float) -> Number:
    """Return the time [s] of steps whose latency partly hides behind the transfer.

    T = (L^p + X^p)^(1/p).  p = 1 is the textbook sum; p > 1 says that a step costs little more than the larger of
    the two, as when the next chunk is posted before the last one is acknowledged; p = 1/2 is
    L + X + 2 √(L X), a pipeline cut into the chunks that suit it best.

    Reference: Thakur, Rabenseifner and Gropp, 2005 (sum); van de Geijn, 1991 (best chunk).

    >>> overlapped(3.0, 4.0, overlap=1.0), overlapped(3.0, 4.0, overlap=2.0), overlapped(4.0, 9.0, overlap=0.5)
    (7.0, 5.0, 25.0)
    """
    if overlap == 1.0:
        return latency_s + transfer_s
    return (latency_s**overlap + transfer_s**overlap) ** (1.0 / overlap)
