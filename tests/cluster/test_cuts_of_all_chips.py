"""A narrow place that has all chips below it separates nobody."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.cluster.across import lain_across
from datahall.cluster.cluster import cluster_of
from datahall.fabric.topology.cuts import Cut

CATALOG = Catalog(user=False)


def test_a_cut_of_exactly_all_chips_lies_across_nothing() -> None:
    """Blocks of 24 do not divide 64 chips: half of the chips are a place to lie across, all of them are none."""
    whole = cluster_of(CATALOG.chip("h100-sxm"), 64, servers=CATALOG.servers(), catalog=CATALOG)

    def across(num_below: int) -> Cut | None:
        cut = Cut(name="leaf", num_below=num_below, num_full=num_below, bytes_per_s=1e9, link_bytes_per_s=1e9)
        system = msgspec.structs.replace(whole.system, cuts=(cut,))
        return lain_across(msgspec.structs.replace(whole, system=system), 24)

    assert across(32) is not None
    assert across(64) is None
    assert across(128) is None
