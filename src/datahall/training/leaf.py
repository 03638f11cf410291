"""Leaves of training's figures: facts of the model and the chip, rates that collectives reach."""

from __future__ import annotations

from datahall.breakdown import (
    Breakdown,
    Source,
    assumed,
    derived,
    fact,
    given,
    modelled,
    product,
    quotient,
)
from datahall.catalog.entries.chip import Chip, canonical_precision
from datahall.catalog.entries.model import Model
from datahall.cluster.cluster import Cluster
from datahall.cluster.network import with_failure
from datahall.fabric.collectives.crossing import crossed
from datahall.fabric.collectives.system import System
from datahall.fabric.topology.cuts import Cut

FULL = 0.99  # of the ports below it: a way out as wide as this is not narrow


def model_sources(model: Model) -> tuple[Source, ...]:
    """Where the dimensions of a model are from; nothing where a person brought its config.json."""
    found = (model.facts.get(name) for name in ("hidden", "num_layers", "published_parameters"))
    return tuple(dict.fromkeys(one.source for one in found if one is not None))


def of_model(model: Model, name: str, value: float, unit: str = "count", note: str = "") -> Breakdown:
    """What follows from the dimensions of a model: a fact of the catalogue, or the input of who brought a config."""
    sources = model_sources(model)
    return (
        fact(name, value, unit, *sources, note=note)
        if sources
        else given(name, value, unit, note or "config.json")
    )


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


def exchange_time(
    name: str, moved: Breakdown, time_s: float, cluster: Cluster, num_ranks: float, stride: float
) -> Breakdown:
    """What moving some bytes in a group takes: bytes over what the group's collective makes of a chip's link.

    Where the group crosses a place of the network that is narrower than its ports, over its share of the way out.
    """
    system, nic = cluster.system, cluster.wires.nic
    ranks = derived("ranks of the group", num_ranks, "count", "of the layout")
    narrow = narrowest(system.apart(int(stride)), int(num_ranks))
    if narrow is not None:
        way = product(
            f"way out of a {narrow.name} for the group",
            [
                derived(
                    "links out of it",
                    narrow.bytes_per_s / narrow.link_bytes_per_s,
                    "count",
                    "the group's share",
                ),
                derived("rate of such a link", narrow.link_bytes_per_s, "bytes_per_s", "of the fabric"),
            ],
            "bytes_per_s",
        )
        left = "arrays that pass while all that must leave does; no algorithm moves less"
        passed = modelled(
            "arrays per array that leaves", moved.value / time_s / way.value, "ratio", left, ranks
        )
        return quotient(name, moved, product("rate of the exchange", [way, passed], "bytes_per_s"), "s")
    near = num_ranks * stride <= system.num_domain
    if near or nic is None:
        link = of_chip(cluster.chip, "scale_up_bytes_per_s", system.scale_up_bytes_per_s, "bytes_per_s")
        on, source = system.inside.fitted_on, system.inside.source
    else:
        link = with_failure(nic, system, int(num_ranks), int(stride))
        across = system.across
        on = across.fitted_on if across is not None else system.inside.fitted_on
        source = across.source if across is not None else system.inside.source
    how = f"closed form of the collective, its constants fitted on {on}"
    name_of_share = f"what collectives of {num_ranks:,.0f} make of the link"
    share = modelled(name_of_share, moved.value / time_s / link.value, "ratio", how, ranks)
    share = share.with_note(sources=(source,) if source is not None else ())
    return quotient(name, moved, product("rate of the exchange", [link, share], "bytes_per_s"), "s")


def narrowest(system: System, num_ranks: int) -> Cut | None:
    """The narrowest place that a group crosses, if it is narrower than the ports below it."""
    places = [
        cut
        for cut in crossed(system, num_ranks)
        if cut.bytes_per_s < FULL * cut.num_below * system.nic_bytes_per_s
    ]
    return min(places, key=lambda cut: cut.bytes_per_s / cut.num_below, default=None)
