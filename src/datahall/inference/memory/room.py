"""What a program sees of the memory of one chip, as a figure."""

from __future__ import annotations

from datahall.breakdown import Breakdown, assumed, difference, fact
from datahall.catalog.entries.chip import Chip
from datahall.inference.memory.kv_pool import DRIVER_BYTES


def seen_figure(chip: Chip) -> Breakdown:
    """What a program sees of a chip's memory [B]."""
    driver = assumed(
        "kept by the driver", DRIVER_BYTES, "bytes", "as vLLM's start-up logs show on H100 and others"
    )
    visible = chip.facts.get("visible_memory_bytes")
    if visible is not None:
        return difference(
            "memory that a program sees",
            fact("memory of the chip", visible.value, "bytes", visible.source),
            driver,
        )
    sold = chip.facts.get("memory_bytes")
    if sold is not None:
        return fact("memory of the chip", sold.value, "bytes", sold.source)
    return assumed(
        "memory of the chip", chip.memory_bytes, "bytes", f"{chip.title} was made by hand, without a source"
    )
