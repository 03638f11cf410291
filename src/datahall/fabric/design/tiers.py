"""Tiers of switches that a design has, counted from its parts before anything is laid."""

from __future__ import annotations

from datahall.errors import ScenarioError, option
from datahall.fabric.design.parts import Parts
from datahall.fabric.design.topologies import topology_of_parts
from datahall.fabric.topology.tiers import Sized
from datahall.scenario.sections.fabric import FabricDesign


class UnneededTier(ScenarioError):
    """A ratio speaks of a tier that so many chips do not need."""


def tiers_of(asked: FabricDesign, parts: Parts, num_chips: int) -> int | None:
    """The tiers of a topology that may be oversubscribed; none where it is another, or one scale-up domain."""
    kind = topology_of_parts(asked.topology)
    if not kind.tapered or kind.domain == num_chips:
        return None
    return kind.tiering(
        Sized(
            num_chips=num_chips,
            radix=parts.radix,
            domain=parts.num_domain,
            tiers=kind.tiers or asked.tiers,
            oversubscription=asked.ratios,
            alone=kind.domain,
            named=bool(kind.tiers),
        )
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
