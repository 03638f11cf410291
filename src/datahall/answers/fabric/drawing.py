"""A fabric as a picture: its tiers in groups, and the cables between them."""

from __future__ import annotations

from datahall.answer import Boxes, Cables, TopologyChart
from datahall.counted import counted
from datahall.fabric.design.bill import tier_name
from datahall.fabric.design.design import Design
from datahall.fabric.design.outline import Tier, outline
from datahall.fabric.topology.graph import SCALE_UP_TIER


def drawn(made: Design, before: str = "") -> TopologyChart:
    """The outline of a fabric with its tiers named."""
    found = outline(made.fabric)
    tiers = [tier for tier in found.tiers if tier.tier not in (0, SCALE_UP_TIER)]
    grouped = any(size > 1 for tier in found.tiers for size in tier.sizes)
    return TopologyChart(
        title=f"{before}{made.fabric.name}",
        rows=tuple(
            Boxes(name, counted(tier.num_nodes, name), tier.sizes)
            for tier in found.tiers
            for name in (_name(tier, len(tiers)),)
        ),
        cables=tuple(Cables(*bundle) for bundle in found.bundles),
        note=(
            "A number in a box is of neighbours drawn as one, whose own links are left out; "
            if grouped
            else ""
        )
        + "wider lines carry more, one way.",
    )


def _name(tier: Tier, num_tiers: int) -> str:
    if tier.tier == SCALE_UP_TIER:
        return "scale-up domain"
    return f"{tier_name(tier.of_switches, num_tiers)} switch".strip() if tier.tier else "chip"
