"""Tiers of switches that a design has, counted from its parts before anything is laid."""

from __future__ import annotations

from functools import partial

from datahall.errors import ScenarioError, option
from datahall.fabric.design.parts import Parts
from datahall.fabric.design.topologies import topology_of_parts
from datahall.fabric.topology.tiers import most_chips, most_in_rails, num_tiers, rails_of
from datahall.scenario.sections.fabric import FabricDesign


class UnneededTier(ScenarioError):
    """A ratio speaks of a tier that so many chips do not need."""


def tiers_of(asked: FabricDesign, parts: Parts, num_chips: int) -> int | None:
    """The tiers of a topology that may be oversubscribed; none where it is another, or one scale-up domain."""
    kind, rails = topology_of_parts(asked.topology), parts.num_domain
    if "oversubscription" not in kind.uses or kind.domain == num_chips:
        return None
    tiers = kind.tiers or asked.tiers
    if kind.name == "rail-optimised":
        return rails_of(
            num_chips, radix=parts.radix, rails=rails, tiers=tiers, oversubscription=asked.ratios
        ).tiers
    return num_tiers(
        num_chips,
        radix=parts.radix,
        tiers=tiers,
        oversubscription=asked.ratios,
        holds=partial(most_in_rails, rails) if kind.name == "rail-only" else most_chips,
        whole=rails,
        alone=kind.domain,
        named=bool(kind.tiers),
    )


def check_tiers(asked: FabricDesign, parts: Parts, num_chips: int) -> None:
    """A ratio is of a tier with another above it; one too many would say nothing."""
    tiers, ratios = tiers_of(asked, parts, num_chips), asked.ratios
    if tiers is not None and set(ratios[max(0, tiers - 1) :]) - {1.0}:
        spoken = ", ".join(f"{ratio:g}:1" for ratio in ratios)
        fitting = ",".join(f"{ratio:g}:1" for ratio in ratios[: tiers - 1]) or "1:1"
        raise UnneededTier(
            f"{spoken} speaks of {len(ratios) + 1} tiers, and {num_chips:,} chips make {tiers}",
            field="oversubscription",
            hint=f"one ratio for each tier below the top: {option('oversubscription', fitting)}",
        )
