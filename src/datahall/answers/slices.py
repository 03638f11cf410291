"""TPUs that nobody names a topology for: the torus on which they are timed, in words."""

from __future__ import annotations

from datahall.cluster.cluster import Cluster
from datahall.errors import option


def slices(cluster: Cluster) -> str:
    """The torus or mesh that chips stand on as sold, or the slices where they need several; nothing of switches."""
    system = cluster.system
    if cluster.design is not None or not system.torus:
        return ""
    sides, shape = "×".join(map(str, system.torus)), "torus" if system.is_wrapped else "mesh"
    return f"a {sides} {shape}" if cluster.num_domains == 1 else f"{cluster.num_domains:,} slices of {sides}"


def slice_notes(cluster: Cluster) -> tuple[str, ...]:
    """That nobody named a topology, and which torus was taken."""
    found = slices(cluster)
    if not found:
        return ()
    idle = f", of which {cluster.num_spare:,} chips take no part" if cluster.num_spare else ""
    return (
        f"no topology is named: TPUs are wired to their neighbours, here {found}{idle}; "
        f"{option('on')} names another",
    )
