"""Fabrics that were built, as designs: Meta's clusters, Colossus, SuperPODs, TPU pods."""

from __future__ import annotations

from typing import Any

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.network.known_fabric import KnownFabric
from datahall.fabric.design.design import Design, design
from datahall.fabric.design.topologies import topology_of_parts
from datahall.scenario.field import fields
from datahall.scenario.kinds import Reading
from datahall.scenario.sections.fabric import FabricDesign


def preset(name: str, *, catalog: Catalog) -> Design:
    """The design of a published fabric by name; what was not published is said in its notes."""
    known = catalog.known_fabric(name)
    asked = FabricDesign(
        chips=known.num_chips,
        server=known.server,
        switch="" if topology_of_parts(known.topology).kind == "direct" else known.switch,
        radix=known.num_radix or None,
        tiers=known.num_tiers or None,
        **_shape(known, catalog),
    )
    made = design(asked, catalog, pod_chips=known.num_pod_chips or None)
    fabric = msgspec.structs.replace(made.fabric, name=known.title)
    return msgspec.structs.replace(
        made, fabric=fabric, notes=(*made.notes, *_estimates(known), *_note(known))
    )


def _shape(known: KnownFabric, catalog: Catalog) -> dict[str, Any]:
    """What the entry says in words, read as an input would be."""
    said = {"topology": known.topology, "oversubscription": known.oversubscription, "sides": known.sides}
    at = Reading(catalog=catalog)
    return {one.key: one.kind.read(said[one.key], at) for one in fields("fabric") if said.get(one.key)}


def _estimates(known: KnownFabric) -> tuple[str, ...]:
    unsure = [fact for fact in known.facts.values() if fact.source.kind == "estimate" and fact.note]
    return tuple(f"{fact.label} {fact.shown} is an estimate: {fact.note}" for fact in unsure)


def _note(known: KnownFabric) -> tuple[str, ...]:
    return (known.note,) if known.note else ()
