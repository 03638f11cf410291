"""What keeping a data set costs in a month, and reading it from another region.

Facts of the catalogue times what is kept and read; what a cluster costs is another question.
"""

from __future__ import annotations

from math import isnan

from datahall.catalog.entries.stored.storage import Storage
from datahall.units import GB, MONTH_S


def kept_usd_per_month(storage: Storage, size_bytes: float) -> float | None:
    """What so much data costs to keep for a month; None where no price is known.

    >>> from datahall.catalog import load
    >>> round(kept_usd_per_month(load().storage("object"), 1e12), 2)
    23.0
    """
    return None if isnan(storage.usd_per_gb_month) else storage.usd_per_gb_month * size_bytes / GB


def egress_usd_per_month(storage: Storage, bytes_per_s: float) -> float | None:
    """What reading at so much all month costs across regions; None where no price is known."""
    return (
        None if isnan(storage.egress_usd_per_gb) else storage.egress_usd_per_gb * bytes_per_s * MONTH_S / GB
    )
