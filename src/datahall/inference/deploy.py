"""Deployments as replicas and pools: tensor parallelism found where none was said, everything checked that can be."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.cluster.wiring import Wiring
from datahall.errors import DatahallError
from datahall.inference.early import check_format, region_number
from datahall.inference.engine.build import replica_of
from datahall.inference.engine.disaggregation import handoff_of
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Pool
from datahall.inference.memory.fit import fewest_chips
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.memory.offload import lower_tiers
from datahall.inference.step.kernels import sharding_of
from datahall.scenario.sections.deployment import EVERYTHING, Deployment, split_roles


def deployed(deployment: Deployment, model: Model, catalog: Catalog, wiring: Wiring | None = None) -> Replica:
    """One replica, on the fewest chips that hold it where no tensor parallelism was said."""
    if not deployment.tp:
        fewest = fewest_chips(replica_of(deployment, model, catalog))
        deployment = msgspec.structs.replace(deployment, tp=fewest)
    return replica_of(deployment, model, catalog, wiring, hands_over=deployment.phases != EVERYTHING)


def pools_of(
    deployment: Deployment,
    model: Model,
    catalog: Catalog,
    wiring: Wiring | None = None,
    regions: tuple[str, ...] = (),
) -> tuple[Pool, ...]:
    """The pools of a deployment: one, or one for prompts and one for answers; each holds the model and has a price."""
    region = region_number(deployment.region, regions, "in_region")
    if deployment.disaggregated:
        parts = [
            msgspec.structs.replace(
                deployment,
                chip=_chip(chip or deployment.chip, catalog),
                role=role,
                replicas=count,
                handoff_bytes_per_s=deployment.handoff_bytes_per_s if role == "prefill" else None,
            )
            for role, count, chip in split_roles(deployment.disaggregated)
        ]
    else:
        parts = [deployment]
    return tuple(_pool(part, model, catalog, wiring, region) for part in parts)


def _chip(name: str, catalog: Catalog) -> str:
    try:
        return catalog.chip(name).name
    except DatahallError as error:
        error.field = "disaggregated"
        raise


def _pool(deployment: Deployment, model: Model, catalog: Catalog, wiring: Wiring | None, region: int) -> Pool:
    replica = deployed(deployment, model, catalog, wiring)
    check_format(replica.chip, replica.precision)
    sharding_of(replica)  # refuses what does not divide
    lower_tiers(replica)
    kv_capacity(replica)
    rate = deployment.handoff_bytes_per_s
    return Pool(
        replica=replica,
        count=deployment.replicas,
        role=deployment.phases,
        region=region,
        weight_ratio=deployment.weight_ratio,
        handoff=handoff_of(replica, rate) if rate is not None else None,
    )
