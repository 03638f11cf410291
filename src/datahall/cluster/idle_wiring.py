"""What is said of the network and changes nothing: no group of chips crosses what it is about."""

from __future__ import annotations

from typing import NamedTuple

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.cluster.cluster import cluster_of, stands_on_torus
from datahall.cluster.network import DOMAIN
from datahall.cluster.wiring import Wiring
from datahall.cluster.without import brings_chip
from datahall.fabric.collectives.crossing import crossed
from datahall.fabric.collectives.system import System
from datahall.scenario.field import grouped
from datahall.scenario.sections.fabric import WIRING


class Joined(NamedTuple):
    """Chips of an answer, what joins them, and over how many of them the widest group that exchanges stretches."""

    chip: Chip
    system: System | None  # None: nobody published what joins them, and they exchange nothing
    span: int
    ports: bool = (
        False  # something else goes through their network ports, such as a cache that is handed over
    )
    switched: bool = False  # timed on switches where nobody says how they are wired, TPUs too


def idle_wiring(
    wiring: Wiring, joined: Joined, catalog: Catalog, *, searched: bool = False
) -> frozenset[str]:
    """Inputs of the wiring that change nothing for some chips.

    `searched`: groups were looked for, so that a smaller domain would have left out some of them.
    """
    chip, system, span, ports, switched = joined
    if system is None:
        return frozenset(("domain",) if ports else ("domain", "nic"))
    if span == 0 and not ports:  # nothing is asked of what joins them
        return frozenset((*(field.name for field in grouped("fabric", WIRING)), "failure"))
    if system.torus:  # its links are the network
        return frozenset()
    usual = cluster_of(chip, 1, catalog=catalog).system
    leaves, narrow = span > system.num_domain, crossed(system, span)
    same_domain = not leaves and span <= usual.num_domain
    if searched and system.num_domain < usual.num_domain:
        same_domain = False
    same_port = not ports or system.nic_bytes_per_s == usual.nic_bytes_per_s
    idle = {
        "on": same_domain
        and same_port
        and not brings_chip(wiring, chip, catalog)
        and (switched or not stands_on_torus(chip)),
        "domain": same_domain,
        "nic": not leaves and not ports,
        "oversubscription": not any(cut.name != DOMAIN for cut in narrow),
        "failure": not ports
        and all(cut.left_fraction == 1.0 for cut in narrow)
        and system.scale_up_bytes_per_s >= usual.scale_up_bytes_per_s,
    }
    return frozenset(name for name, is_idle in idle.items() if is_idle)
