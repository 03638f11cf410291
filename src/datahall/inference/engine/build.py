"""From what a person says of a deployment to a replica: the one place where user input becomes a `Replica`."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.cluster.wiring import Wiring
from datahall.errors import ScenarioError, option
from datahall.inference.early import check_draft
from datahall.inference.engine.engine import Engine, engine_on
from datahall.inference.engine.machine import is_joined, placed
from datahall.inference.engine.replica import Adapters, Replica, Speculation
from datahall.inference.memory.offload import drive_bytes_per_s
from datahall.scenario.field import fields
from datahall.scenario.idle import does_nothing
from datahall.scenario.sections.deployment import ENGINE, Deployment
from datahall.scenario.words import FREE_DRAFT, OWN_LAYER
from datahall.workload.precision import Precision, block_scaled


def replica_of(
    deployment: Deployment,
    model: Model,
    catalog: Catalog,
    wiring: Wiring | None = None,
    *,
    hands_over: bool = False,
) -> Replica:
    """One replica of a deployment on a machine for all of them; without tensor parallelism it has one chip a layer."""
    chip = catalog.chip(deployment.chip)
    precision = Precision.named(deployment.precision)
    deployment.check(model)
    wires = wiring or Wiring()
    if not is_joined(chip, wires) and wires.design.nic_bytes_per_s:  # its card is all that is known of it
        chip = msgspec.structs.replace(chip, nic_bytes_per_s=wires.design.nic_bytes_per_s)
    replica = Replica(
        model=model,
        chip=chip,
        engine=engine_of(deployment, chip),
        precision=precision,
        block_scaled=block_scaled(model, precision),
        tp=deployment.tp or 1,
        pp=deployment.pp,
        dp=deployment.dp,
        ep=deployment.ep,
        speculation=speculation_of(deployment, model, catalog),
        adapters=adapters_of(deployment),
        max_context=deployment.max_context or 0,
        routing_skew=deployment.routing_skew,
        kv_blocks=deployment.kv_blocks or 0,
        host_cache_bytes=deployment.host_cache_bytes,
        host_bytes_per_s=deployment.host_link_bytes_per_s or 0.0,
        drive_cache_bytes=deployment.drive_cache_bytes,
        drive_bytes_per_s=deployment.drive_rate_bytes_per_s or drive_bytes_per_s(chip, catalog.servers()),
    )
    return placed(replica, deployment.replicas, wires, catalog, hands_over=hands_over)


def engine_of(deployment: Deployment, chip: Chip) -> Engine:
    """The engine with the options that the deployment sets."""
    known = engine_on(deployment.engine, chip)
    options = [field.attribute for field in fields("deployment") if field.kind.group == ENGINE]
    changes = {name: value for name in options if (value := getattr(deployment, name)) is not None}
    made = msgspec.structs.replace(known, **changes)
    if deployment.wait_s is not None and made.batching != "dynamic":
        raise ScenarioError(
            does_nothing("wait", f"{made.batching} batching waits for nobody"),
            field="wait",
            hint=f"leave it out, or {option('batching', 'dynamic')}",
        )
    return made


def speculation_of(deployment: Deployment, model: Model, catalog: Catalog) -> Speculation | None:
    """What drafts tokens: the prompt, a layer of the model, or another model of the catalogue."""
    if not deployment.draft:
        return None
    named = deployment.draft not in (OWN_LAYER, FREE_DRAFT)
    drafts = catalog.model(deployment.draft) if named else None
    if drafts is not None:
        check_draft(drafts, model)
    return Speculation(
        num_draft=deployment.num_draft,
        acceptance=deployment.acceptance_fraction,
        draft=deployment.draft,
        model=drafts,
    )


def adapters_of(deployment: Deployment) -> Adapters | None:
    """The LoRA adapters beside the model; none where no number was said."""
    if deployment.adapters is None:
        return None
    return Adapters(
        num=deployment.adapters,
        rank=deployment.adapter_rank,
        num_resident=deployment.resident_adapters or 0,
        zipf_factor=deployment.adapter_zipf,
        mlp=not deployment.attention_adapters,
    )
