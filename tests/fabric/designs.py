"""Designs by what a person would write: ratios and sides as text."""

from __future__ import annotations

from typing import Any

from datahall.catalog import Catalog
from datahall.fabric.design.asked import design_of
from datahall.fabric.design.design import Design
from datahall.scenario.field import fields
from datahall.scenario.kinds import Reading
from datahall.scenario.sections.fabric import FabricDesign


def asked(catalog: Catalog, **said: Any) -> FabricDesign:
    """A section read as a file would be."""
    known, at = {field.attribute: field for field in fields("fabric")}, Reading(catalog=catalog, bare=True)
    return FabricDesign(**{name: known[name].kind.read(value, at) for name, value in said.items()})


def design(topology: str, chips: int, *, catalog: Catalog, **said: Any) -> Design:
    """The design of a topology for so many chips."""
    return design_of(asked(catalog, topology=topology, chips=chips, **said), catalog)
