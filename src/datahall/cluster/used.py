"""What a machine was made with where nobody says it, by the attributes of inputs.

What had nothing to act on is left out: the ports of chips in one domain, what a fabric that was built has of its own.
"""

from __future__ import annotations

from typing import TypeAlias

from datahall.cluster.cluster import Cluster
from datahall.fabric.design.design import Design
from datahall.fabric.design.early import uses_of
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
    parts = made.parts
    acting = _acting(num_chips or made.counts.num_hosts, parts.num_domain, parts.port_bytes_per_s)
    uses = uses_of(topology, scenario.catalog)
    return {"chip": parts.chip.name, **{name: value for name, value in acting.items() if name in uses}}


def _acting(num_chips: int, num_domain: int, nic_bytes_per_s: float) -> Used:
    return {
        **({"domain": num_domain} if num_chips > 1 else {}),
        **({"nic_bytes_per_s": nic_bytes_per_s} if num_chips > num_domain else {}),
    }
