"""What a network is made of, draws and costs: switches, cables and modules, each from a catalogue fact.

NICs, scale-up links and their switches are part of the server and not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown, Source, assumed, derived, fact, product, total
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.network.cable import Cable
from datahall.catalog.entries.network.switch import Switch
from datahall.catalog.fact import Fact
from datahall.fabric.design.design import Design
from datahall.fabric.design.parts import Parts, cable_for, parts_of
from datahall.fabric.topology.clos import size_clos
from datahall.fabric.topology.graph import FABRIC, SCALE_UP
from datahall.fabric.topology.grids.tpu_pod import CUBE_CHIPS, crosses_cubes, num_circuit_switches
from datahall.scenario.sections.fabric import FabricDesign

FactsOf = Callable[[Switch | Cable], list[tuple[float, Fact]]]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A number of one part."""

    name: str
    role: str
    num: int
    part: Switch | Cable
    scale: float = 1.0  # of a switch with another number of ports than the catalogue's

    @property
    def num_modules(self) -> int:
        return self.num * self.part.num_modules if isinstance(self.part, Cable) else 0

    @property
    def power_w(self) -> float:
        return self.num * _sum(_power_facts(self.part), self.scale)

    @property
    def price_usd(self) -> float:
        return self.num * _sum(_price_facts(self.part), self.scale)


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """The items of a network, and its power and price as chains down to facts."""

    items: tuple[Item, ...]
    num_chips: int
    power: Breakdown
    price: Breakdown

    @property
    def price_per_chip_usd(self) -> float:
        return self.price.value / self.num_chips

    def item_per_chip_usd(self, item: Item) -> float:
        """What a chip's part of an item costs."""
        return item.price_usd / self.num_chips

    @property
    def num_switches(self) -> int:
        return sum(item.num for item in self.items if isinstance(item.part, Switch))

    @property
    def num_cables(self) -> int:
        return sum(item.num for item in self.items if isinstance(item.part, Cable))

    @property
    def num_modules(self) -> int:
        return sum(item.num_modules for item in self.items)


class _Tally(NamedTuple):
    """How many of each a switched network has, from the chips up."""

    num_chips: int
    switches: Sequence[int]
    cables: Sequence[int]
    trunk_bytes_per_s: float


def bill(design: Design, catalog: Catalog) -> Bill:
    """Count the parts of a network: multimode fibre to the chips, single mode between switches."""
    if design.parts.switch is None:
        return _billed(_direct_items(design, catalog), design.counts.num_hosts)
    found, between = design.counts, design.fabric.link_kind == FABRIC
    trunk = float(design.fabric.link_bytes_per_s[between].max(initial=design.parts.port_bytes_per_s))
    tally = _Tally(found.num_hosts, found.switches_by_tier, found.cables_by_tier, trunk)
    return _billed(_items(design.parts, tally, catalog), found.num_hosts)


def fat_tree_bill(chip: Chip, num_chips: int, catalog: Catalog) -> Bill:
    """The bill of the fat tree that holds so many chips in whole domains, counted from its shape: nothing is laid."""
    parts = parts_of(FabricDesign(topology="fat-tree", chip=chip.name, chips=num_chips), catalog)
    whole = -(-num_chips // parts.num_domain) * parts.num_domain
    assert parts.radix is not None
    shape = size_clos(whole, radix=parts.radix)
    levels = range(1, shape.num_levels + 1)
    tally = _Tally(
        whole,
        [shape.num_nodes(level) for level in levels],
        [shape.num_cables(level) for level in levels],
        parts.port_bytes_per_s,
    )
    return _billed(_items(parts, tally, catalog), whole)


def _billed(found: Iterable[Item], num_chips: int) -> Bill:
    items = tuple(item for item in found if item.num)
    return Bill(
        items=items,
        num_chips=num_chips,
        power=_total("network power", "w", items, _power_facts),
        price=_total("network price", "usd", items, _price_facts),
    )


def _items(parts: Parts, tally: _Tally, catalog: Catalog) -> list[Item]:
    switch, speed = parts.switch, parts.port_bytes_per_s
    assert switch is not None
    scale = parts.radix / switch.radix(speed) if parts.radix else 1.0
    items = [
        Item(
            name=f"{tier_name(index, len(tally.switches))} switches".strip(),
            role="switch",
            num=n,
            part=switch,
            scale=scale,
        )
        for index, n in enumerate(tally.switches)
    ]
    for index, n in enumerate(tally.cables):
        chips = tally.num_chips if index == 0 else 0
        near, far = (min(n, chips), n - min(n, chips)) if index == 0 else (0, n)
        if near:
            part = cable_for(catalog, "multimode", speed)
            items.append(Item(name="cables to the chips", role="access", num=near, part=part))
        if far:
            part = cable_for(catalog, "single-mode", tally.trunk_bytes_per_s)
            name = (
                f"cables up to {tier_name(index, len(tally.switches))} switches"
                if index
                else "cables between switches"
            )
            items.append(Item(name=name, role="trunk", num=far, part=part))
    return items


def _direct_items(design: Design, catalog: Catalog) -> list[Item]:
    """Copper inside cubes, light between them; a full mesh is inside one server."""
    fabric = design.fabric
    if design.kind.meshed or not (fabric.link_kind == SCALE_UP).any():
        return []
    total = fabric.num_links // 2
    if not _tpu(design):
        part = cable_for(catalog, "single-mode", float(fabric.link_bytes_per_s.max()))
        return [Item(name="cables between chips", role="trunk", num=total, part=part)]
    optical = total
    if _cubed(design):
        optical = int(crosses_cubes(fabric, fabric.traits.grid).sum()) // 2
    copper, light = catalog.cable("ici-copper"), catalog.cable("ici-optical")
    items = [
        Item(name="cables inside cubes", role="access", num=total - optical, part=copper),
        Item(name="cables between cubes", role="trunk", num=optical, part=light),
    ]
    if has_circuit_switches(design):
        ocs = catalog.switch("palomar-ocs")
        count = num_circuit_switches(fabric.num_hosts // CUBE_CHIPS)
        items.insert(0, Item(name="optical circuit switches", role="switch", num=count, part=ocs))
    return items


def has_circuit_switches(design: Design) -> bool:
    """Whether cubes of TPUs meet in optical circuit switches: wrapped tori of more than one cube."""
    several = design.fabric.traits.is_closed and design.fabric.num_hosts > CUBE_CHIPS
    return several and _tpu(design) and _cubed(design)


def _tpu(design: Design) -> bool:
    return design.parts.scale_up is not None and design.parts.scale_up.technology == "ici"


def _cubed(design: Design) -> bool:
    sides = design.fabric.traits.grid
    return len(sides) == 3 and not any(side % 4 for side in sides)


def tier_name(index: int, tiers: int) -> str:
    """What the switches of a tier are called, counted from the chips; nothing where there is one tier."""
    names = {1: ("",), 2: ("leaf", "spine"), 3: ("leaf", "aggregation", "core")}
    return names[tiers][index] if tiers in names else f"tier-{index + 1}"


def _power_facts(part: Switch | Cable) -> list[tuple[float, Fact]]:
    if isinstance(part, Switch):
        return _some(part.facts, (1.0, "power_typical_w"))
    return _some(part.facts, (part.num_modules, "module_power_w"))


def _price_facts(part: Switch | Cable) -> list[tuple[float, Fact]]:
    if isinstance(part, Switch):
        return _some(part.facts, (1.0, "price_usd"))
    return _some(part.facts, (part.num_modules, "module_price_usd"), (1.0, "price_usd"))


def _some(facts: dict[str, Fact], *wanted: tuple[float, str]) -> list[tuple[float, Fact]]:
    return [(times, facts[name]) for times, name in wanted if name in facts and times]


def _sum(facts: list[tuple[float, Fact]], scale: float) -> float:
    return scale * sum(times * fact.value for times, fact in facts)


def _total(name: str, unit: str, items: tuple[Item, ...], facts_of: FactsOf) -> Breakdown:
    """The sum over items of number × what one of them draws or costs, with the range of the facts behind it."""
    parts = [
        part
        for item in items
        if (part := _of_item(item, unit, facts_of(item.part))) is not None and part.value
    ]
    if not parts:
        return assumed(name, 0.0, unit, "its links belong to the machines they stand in")
    return total(name, parts).with_note(basis="datasheet only")


def _of_item(item: Item, unit: str, facts: list[tuple[float, Fact]]) -> Breakdown | None:
    known = [_leaf(times, one) for times, one in facts]
    if not known:
        return None
    each = known[0] if len(known) == 1 else total(f"one {item.part.title}", known)
    parts = [derived(f"number of {item.name}", item.num, "count", note="counted in the fabric"), each]
    if item.scale != 1.0:
        parts.append(derived("ports over those of the catalogue's switch", item.scale, "ratio"))
    return product(item.name, parts, unit)


def _leaf(times: float, one: Fact) -> Breakdown:
    leaf = fact(one.label, one.value, one.unit, one.source, note=one.note)
    if one.low is not None or one.high is not None:
        low, high = one.low or one.value, one.high or one.value
        leaf = leaf.with_band(low / one.value, high / one.value, "range of the prices seen")
    if times == 1.0:
        return leaf
    return product(f"{one.label}, both ends", [derived("ends of a cable", times, "count"), leaf], one.unit)


def estimates(found: Bill) -> tuple[Source, ...]:
    """The sources of a bill that are estimates."""
    cited = (*found.power.citations(), *found.price.citations())
    return tuple(dict.fromkeys(source for source in cited if source.kind == "estimate"))


def most_for_the_money(designs: Sequence[Design], bills: Sequence[Bill]) -> int:
    """Which has the most all-to-all bandwidth for its price, of those that cost anything."""
    worth = [
        made.all_to_all_bytes_per_s / cost.price.value if cost.price.value else 0.0
        for made, cost in zip(designs, bills, strict=True)
    ]
    return worth.index(max(worth))
