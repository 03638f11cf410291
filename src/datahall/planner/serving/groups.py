"""Groups of chips that are worth a look as one replica."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.cluster.wiring import Wiring
from datahall.errors import ScenarioError
from datahall.inference.closed_form.capacity import Held, held, num_replicas
from datahall.inference.closed_form.conversations import held_in_turns
from datahall.inference.early import check_format
from datahall.inference.engine.build import replica_of
from datahall.inference.engine.machine import placed
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_pool import divide_memory
from datahall.planner.serving.demand import Demand
from datahall.scenario.sections.deployment import Deployment
from datahall.workload.sharding import Sharding

LARGEST_TP = 8  # beyond it decode steps are exchange; larger models take pipeline stages or spread experts
LARGEST_DOMAIN = 72  # chips of a scale-up domain that one group may take
STAGES = (2, 4)  # of a pipeline
LARGEST_ACROSS = 32  # chips over which experts are spread where the network joins their servers


def groups(
    deployment: Deployment, model: Model, catalog: Catalog, wiring: Wiring | None = None
) -> Iterator[Replica]:
    """Groups worth a look: tensor parallelism inside a domain; for experts also attention apart and experts spread."""
    if wiring and wiring.design.topology:  # which of its parts there are is known once all groups are joined
        wiring = wiring._replace(failures=())
    plain = replica_of(deployment, model, catalog, wiring)
    domain = min(plain.num_domain, LARGEST_DOMAIN)
    tp = deployment.tp
    degrees = [tp] if tp else [2**power for power in range(8) if 2**power <= min(domain, LARGEST_TP)]
    for degree in degrees:
        if not _legal(model, Sharding(tp=float(degree))):
            continue
        yield msgspec.structs.replace(plain, tp=degree)
        spread = Sharding(tp=float(degree), ep=float(degree))
        if model.moe is not None and degree > 1 and _legal(model, spread):
            yield msgspec.structs.replace(plain, tp=degree, ep=degree)
    if model.moe is not None and not tp:
        for ranks in (8, 16, 32, 64):
            if ranks <= max(domain, LARGEST_ACROSS) and model.moe.num_experts % ranks == 0:
                yield msgspec.structs.replace(plain, dp=ranks, ep=ranks)
    for degree in degrees:
        if _legal(model, Sharding(tp=float(degree))):
            yield from _staged(msgspec.structs.replace(plain, tp=degree))


def _staged(group: Replica) -> Iterator[Replica]:
    """The fewest stages that hold the model, where a group without them does not."""
    for stages in STAGES:
        if _holds(group):
            return
        group = msgspec.structs.replace(group, pp=stages)
        if _holds(group):
            yield group


def _holds(replica: Replica) -> bool:
    return divide_memory(replica).num_blocks > 0


def _legal(model: Model, sharding: Sharding) -> bool:
    try:
        sharding.check(model)
    except ScenarioError:
        return False
    return True


def on_its_fabric(
    replica: Replica, demand: Demand, headroom: float, catalog: Catalog, wiring: Wiring, num_spare: int
) -> tuple[Held, int]:
    """What a group holds, and how many that takes, on a machine that joins them and spare ones: it grows until it does.

    What has failed counts once the machine has its size: before, it may not have the part.
    """
    count, most = 0, None
    for wires in dict.fromkeys((wiring._replace(failures=()), wiring._replace(if_there=True))):
        joined, count = 0, max(1, count)
        while count > joined:
            joined = count
            there = placed(replica, joined + num_spare, wires, catalog)
            if most is None or there.system != most.replica.system:
                most = _held(there, demand)
            count = num_replicas(most, demand.rate_per_s, headroom)
    assert most is not None
    check_format(replica.chip, replica.precision)
    return most, count


def _held(replica: Replica, demand: Demand) -> Held:
    if demand.reuse is None:
        return held(replica, demand.load, demand.promise)
    return held_in_turns(replica, demand.load, demand.promise, demand.reuse)
