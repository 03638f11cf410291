"""What a machine was made with where nobody says it, by the attributes of inputs.

What had nothing to act on is left out: the ports of chips in one domain, what a fabric that was built has of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from datahall.cluster.cluster import Cluster
from datahall.cluster.joined import Joined
from datahall.fabric.design.chips import is_built, usual_chip
from datahall.fabric.design.design import Design
from datahall.fabric.design.idle import uses_of
from datahall.fabric.design.parts import Parts, parts_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign

Used: TypeAlias = dict[str, str | int | float]


def used_by_machine(scenario: Scenario, cluster: Cluster) -> Used:
    """The chip; how many reach each other without the network, where there are more; and what each sends into it."""
    if cluster.design is not None:
        return used_by_design(
            scenario, scenario.one(FabricDesign).topology, cluster.design, cluster.num_chips
        )
    system = cluster.system
    return {
        "chip": cluster.chip.name,
        **_acting(cluster.num_chips, system.num_domain, system.nic_bytes_per_s),
    }


def used_by_design(scenario: Scenario, topology: str, made: Design, num_chips: int = 0) -> Used:
    """The same of a fabric as it was laid, whatever has failed of it since, for some of its chips or all."""
    return _used_by_parts(scenario, topology, made.parts, num_chips or made.counts.num_hosts)


def used_by_wires(scenario: Scenario, num_chips: int) -> Used:
    """The same of wires between so many chips, of parts of the catalogue or as they were built; not of bare links."""
    asked, catalog = scenario.one(FabricDesign), scenario.catalog
    if asked.bandwidth_bytes_per_s is not None:
        return {}
    if is_built(asked.topology, catalog):
        return {"chip": usual_chip(asked, catalog).name, "chips": num_chips}
    return {
        **_used_by_parts(scenario, asked.topology, parts_of(asked, catalog), num_chips),
        "chips": num_chips,
    }


def used_by_groups(scenario: Scenario, groups: Sequence[Joined]) -> Used:
    """Of groups of chips, such as replicas, what each of them exchanges over; left out where they differ."""
    topology = scenario.one(FabricDesign).topology
    uses = uses_of(topology, scenario.catalog) if topology else ("domain", "nic_bytes_per_s")
    acting = [
        _acting(one.span, one.system.num_domain, one.system.nic_bytes_per_s, ports=one.ports)
        for one in groups
        if one.system is not None
    ]
    names = ("domain", "nic_bytes_per_s")
    values = {name: {one[name] for one in acting if name in one} for name in names if name in uses}
    return {name: next(iter(found)) for name, found in values.items() if len(found) == 1}


def _used_by_parts(scenario: Scenario, topology: str, parts: Parts, num_chips: int) -> Used:
    acting = _acting(num_chips, parts.num_domain, parts.port_bytes_per_s)
    uses = uses_of(topology, scenario.catalog)
    return {"chip": parts.chip.name, **{name: value for name, value in acting.items() if name in uses}}


def _acting(num_chips: int, num_domain: int, nic_bytes_per_s: float, *, ports: bool = False) -> Used:
    """`ports`: something goes through them even where all chips are in one domain."""
    return {
        **({"domain": num_domain} if num_chips > 1 else {}),
        **({"nic_bytes_per_s": nic_bytes_per_s} if num_chips > num_domain or ports else {}),
    }
