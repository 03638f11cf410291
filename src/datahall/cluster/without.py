"""The machine without each thing that was said of its network, to see what that changes."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.wiring import Wiring, each_left_out
from datahall.errors import DatahallError


def machines_without(cluster: Cluster, wiring: Wiring, catalog: Catalog) -> dict[str, Cluster]:
    """By name, the machine without each input that was given; those that could not be built so are left out."""
    found = {}
    for name, less in each_left_out(wiring).items():
        if name == "failure" and cluster.system.torus:
            continue  # what failed links of a torus do to a step is said apart
        design = msgspec.structs.replace(less.design, chips=cluster.num_chips)
        try:
            other = cluster_from(design, catalog, failures=less.failures)
        except DatahallError:
            continue
        if other.chip.name == cluster.chip.name:
            found[name] = other
    return found
