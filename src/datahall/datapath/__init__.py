"""Does the data keep up: what chips need, what storage, network, caches and processors deliver, and what mends it.

A `Pipeline` is how a job reads, a `Store` where from; `supply` says what comes through and where it is narrowest.
"""

from __future__ import annotations

from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.supply import Supply, supply

__all__ = ["Pipeline", "Store", "Supply", "supply"]
