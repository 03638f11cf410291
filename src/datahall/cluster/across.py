"""Narrow places that groups of a layout lie across, though they would fit into one: where a leaf ends is chance.

Chips stand in a row, and a leaf holds what its switch and the taper leave it.  Blocks of chips that do not divide a
leaf lie across two of them, and what they exchange passes the way out.  Another taper has leaves of another size,
which may cut fewer blocks: a narrower network can then be the faster one.
"""

from __future__ import annotations

from datahall.cluster.cluster import Cluster
from datahall.fabric.collectives.crossing import FULL
from datahall.fabric.topology.cuts import Cut


def lain_across(cluster: Cluster, num_block: int) -> Cut | None:
    """The narrowest part of the network of which blocks of so many chips in a row do not fill whole ones."""
    system = cluster.system
    if num_block <= system.num_domain or system.torus:
        return None
    places = [
        cut
        for cut in system.cuts
        if num_block < cut.num_below < cluster.num_chips
        and cut.num_below % num_block
        and cut.bytes_per_s < FULL * cut.num_below * system.nic_bytes_per_s
    ]
    return min(places, key=lambda cut: cut.bytes_per_s / cut.num_below, default=None)
