"""Leaves of training's figures: dimensions of a model, facts of a chip, degrees of a layout, and what is counted."""

from __future__ import annotations

from operator import attrgetter

from datahall.breakdown import Breakdown, Source, assumed, chosen, derived, fact, given, modelled, product
from datahall.catalog.entries.chip import Chip, canonical_precision
from datahall.catalog.entries.model import Model
from datahall.fabric.collectives.crossing import crossed
from datahall.fabric.collectives.system import System
from datahall.fabric.topology.cuts import Cut
from datahall.training.layout.layout import Layout

FULL = 0.99  # of the ports below it: a way out as wide as this is not narrow


# what a degree that is an input is called in a figure
DEGREES = {
    "tp": "tp", "cp": "cp", "stages": "pp", "pp": "pp", "micro-batch": "micro_batch", "chunks of a stage": "vpp",
    "expert ranks": "ep", "chips that share a sequence": "cp", "chips that share an expert": "etp",
}  # fmt: skip


class Degrees:
    """The numbers of a layout as leaves: given by who asks, following from those, or decided by a plan."""

    def __init__(self, layout: Layout, *, planned: bool = False) -> None:
        self.layout, self.planned = layout, planned

    def number(self, name: str, value: float) -> Breakdown:
        """A number of the layout under a name."""
        if self.planned:
            return chosen(name, value, "count", "of the fastest layout that fits")
        field = DEGREES.get(name)
        if field is not None and value == getattr(self.layout, field):
            return given(name, value, "count", "of the layout")
        own = [given(one, getattr(self.layout, one), "count") for one in ("tp", "pp", "cp", "ep")]
        how = "as said, or what the chips leave beside" if name == "replicas" else "of the chips and"
        return modelled(name, value, "count", f"{how} the other degrees", *own)

    def group(self, name: str, **degrees: float) -> Breakdown:
        """Chips that several degrees make together; those of 1 are left out."""
        parts = [self.number(one, value) for one, value in degrees.items() if value != 1]
        return product(name, parts, "count") if parts else derived(name, 1, "count", "each has its own")


def model_sources(model: Model) -> tuple[Source, ...]:
    """Where the dimensions of a model are from; nothing where a person brought its config.json."""
    found = (model.facts.get(name) for name in ("hidden", "num_layers", "published_parameters"))
    return tuple(dict.fromkeys(one.source for one in found if one is not None))


def dimension(model: Model, field: str, name: str) -> Breakdown:
    """A dimension of a model: a fact of the catalogue, or the input of who brought a config."""
    value, known = float(attrgetter(field)(model)), model.facts.get(field)
    if known is not None:
        return fact(name, value, "count", known.source, note=known.note)
    if not model_sources(model):
        return given(name, value, "count", "config.json")
    return counted(model, name, value, "count", f"of the entry of {model.name}, from its other dimensions")


def counted(model: Model, name: str, value: float, unit: str, how: str, *inputs: Breakdown) -> Breakdown:
    """What is counted over the operators, tensors or weights of a model, from its dimensions and what else decides."""
    own = (dimension(model, "num_layers", "layers"), dimension(model, "hidden", "hidden width"))
    return modelled(name, value, unit, how, *own, *inputs)


def of_chip(chip: Chip, name: str, value: float, unit: str, shown: str = "") -> Breakdown:
    """A fact of a chip; a value that its entry derives says so."""
    known = chip.facts.get(name)
    if known is None or known.value != value:
        return assumed(shown or name.replace("_", " "), value, unit, f"of {chip.title}, derived in its entry")
    return fact(shown or known.label, value, unit, known.source, note=known.note)


def bandwidth(chip: Chip) -> Breakdown:
    """The memory bandwidth of a chip."""
    return of_chip(chip, "memory_bytes_per_s", chip.memory_bytes_per_s, "bytes_per_s")


def dense_peak(chip: Chip, precision: str) -> Breakdown:
    """The dense peak of a chip in a format."""
    return of_chip(
        chip,
        f"peak.{canonical_precision(precision)}",
        chip.peak(precision),
        "flop_per_s",
        f"dense {precision} peak",
    )


def part_of_bandwidth(chip: Chip, share: float, why: str) -> Breakdown:
    """The bandwidth that streaming work reaches."""
    reached = assumed("share of it that streams reach", share, "fraction", why)
    return product("bandwidth reached", [bandwidth(chip), reached], "bytes_per_s")


def narrowest(system: System, num_ranks: int) -> Cut | None:
    """The narrowest place that a group crosses, if it is narrower than the ports below it."""
    places = [
        cut
        for cut in crossed(system, num_ranks)
        if cut.bytes_per_s < FULL * cut.num_below * system.nic_bytes_per_s
    ]
    return min(places, key=lambda cut: cut.bytes_per_s / cut.num_below, default=None)
