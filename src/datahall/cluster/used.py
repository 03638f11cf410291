"""What a machine was made with where nobody says it, by the attributes of inputs.

What had nothing to act on is left out: the ports of chips in one domain, what a fabric that was built has of its own.
"""

from __future__ import annotations

from typing import TypeAlias

from datahall.cluster.cluster import Cluster
from datahall.fabric.design.chips import is_built
from datahall.fabric.design.design import Design
from datahall.fabric.design.topologies import topology_of_parts
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign

Used: TypeAlias = dict[str, str | int | float]


def used_by_machine(scenario: Scenario, cluster: Cluster) -> Used:
    """The chip; how many reach each other without the network, where there are more; and what each sends into it."""
    system, topology = cluster.system, scenario.one(FabricDesign).topology
    acting = _acting(cluster.num_chips, system.num_domain, system.nic_bytes_per_s)
    return {"chip": cluster.chip.name, **_choosable(scenario, topology, acting)}


def used_by_design(scenario: Scenario, topology: str, made: Design) -> Used:
    """The same of a fabric alone."""
    parts = made.parts
    acting = _acting(made.counts.num_hosts, parts.num_domain, parts.port_bytes_per_s)
    return {"chip": parts.chip.name, **_choosable(scenario, topology, acting)}


def _acting(num_chips: int, num_domain: int, nic_bytes_per_s: float) -> Used:
    return {
        **({"domain": num_domain} if num_chips > 1 else {}),
        **({"nic_bytes_per_s": nic_bytes_per_s} if num_chips > num_domain else {}),
    }


def _choosable(scenario: Scenario, topology: str, acting: Used) -> Used:
    """What of it a topology leaves to choose; without one all."""
    if is_built(topology, scenario.catalog):
        return {}
    uses = topology_of_parts(topology).uses if topology else acting
    return {name: value for name, value in acting.items() if name in uses}
