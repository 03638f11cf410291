"""The memory of one chip that an engine has for weights and sequences, and what a model is short of."""

from __future__ import annotations

from datahall.breakdown import Breakdown, assumed, difference, fact, product
from datahall.catalog.entries.chip import Chip
from datahall.inference.engine.engine import engine
from datahall.inference.memory.kv_pool import DRIVER_BYTES
from datahall.scenario.sections.deployment import Deployment


def usable_figure(chip: Chip) -> Breakdown:
    """Memory of a chip that an engine takes, activations included [B]; the value is `usable_bytes`."""
    known = engine(Deployment().engine)
    share = fact("share that the engine takes", known.memory_fraction, "fraction", known.source)
    return product("usable memory", (share, seen_figure(chip)), "bytes")


def shortage_figure(held: Breakdown, chip: Chip) -> Breakdown:
    """What weights and cache lack on each chip; below zero it is what is left [B]."""
    return difference("missing on each chip", held, usable_figure(chip))


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
