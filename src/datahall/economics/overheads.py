"""What running anything adds to the bill of compute: orchestration, network, storage, monitoring.

    bill with overheads = bill · (1 + Σ shares)

Who owns has bought network and storage with the hardware, so of theirs only orchestration and monitoring count.
"""

from __future__ import annotations

from datahall.breakdown import Breakdown, derived, fact, given, total
from datahall.catalog import Catalog
from datahall.scenario.sections.money.ownership import Overheads

OF_RENT = ("orchestration", "network", "storage", "monitoring")
OF_OWNING = ("orchestration", "monitoring")
FIELDS = {"network": "network_overhead", "storage": "storage_overhead"}


def with_overheads(asked: Overheads, catalog: Catalog, *, owned: bool) -> Breakdown:
    """What a bill is multiplied by."""
    said = {
        "orchestration": asked.orchestration_fraction,
        "network": asked.network_fraction,
        "storage": asked.storage_fraction,
        "monitoring": asked.monitoring_fraction,
    }
    leaves = [_leaf(name, said[name], catalog) for name in (OF_OWNING if owned else OF_RENT)]
    return total("with overheads", (derived("the bill", 1.0, "fraction"), *leaves))


def _leaf(name: str, said: float | None, catalog: Catalog) -> Breakdown:
    """A share as somebody says it, or as published with its range."""
    field = FIELDS.get(name, name)
    if said is not None:
        return given(name, said, "fraction", field=field)
    known = catalog.share(name).fact
    leaf = fact(name, known.value, "fraction", known.source, note=known.note).unless_said(field)
    assert known.low is not None
    assert known.high is not None
    return leaf.with_band(known.low / known.value, known.high / known.value, "range of the source")
