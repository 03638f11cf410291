"""The machine that replicas stand on: as many chips as they have, wired as was asked for."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.cluster.cluster import Cluster, cluster_as_small
from datahall.cluster.wiring import Wiring
from datahall.errors import ScenarioError
from datahall.inference.early import check_switched
from datahall.inference.engine.replica import Replica


def placed(
    replica: Replica, count: int, wiring: Wiring, catalog: Catalog, *, hands_over: bool = False
) -> Replica:
    """The replica on a machine that joins so many of it; a cache is handed over from one domain to another."""
    num_chips, least_domains = count * replica.num_chips, 2 if hands_over else 1
    machine = machine_of(replica.chip, num_chips, wiring, catalog, least_domains=least_domains)
    if machine is None:
        return msgspec.structs.replace(replica, system=None, network=None)
    return msgspec.structs.replace(replica, system=machine.system, network=machine.wires.nic)


def is_joined(chip: Chip, wiring: Wiring) -> bool:
    """Whether it is known how chips are joined: their links were published, or somebody says."""
    return bool(wiring.design.topology or wiring.failures or chip.scale_up_bytes_per_s > 0)


def machine_of(
    chip: Chip, num_chips: int, wiring: Wiring, catalog: Catalog, *, least_domains: int = 1
) -> Cluster | None:
    """What joins so many chips; None where nobody published what does."""
    if not is_joined(chip, wiring):
        return None
    check_switched(wiring.design.topology, catalog)
    machine = cluster_as_small(
        wiring.design, catalog, chip=chip.name, num_chips=num_chips, least_domains=least_domains,
        failures=wiring.failures, if_there=wiring.if_there, switched=True,
    )  # fmt: skip
    if machine.system.scale_up_bytes_per_s < chip.scale_up_bytes_per_s:
        raise ScenarioError(
            "a replica whose scale-up links are slow is not modelled", field="failure",
            hint="parts of the network between the domains, or whole replicas where those fail",
        )  # fmt: skip
    return machine
