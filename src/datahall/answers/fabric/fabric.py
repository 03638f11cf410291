"""Fabrics for so many chips: what each is made of, how wide and far it is, what it draws and costs."""

from __future__ import annotations

import msgspec

from datahall.answer import Answer, Cell, Quantity, keyed
from datahall.answers.fabric.drawing import drawn
from datahall.answers.fabric.fabric_table import compared, made_of, reach, survives
from datahall.answers.fabric.idle import idle_beside, idle_in_fabric
from datahall.answers.fabric.words import sentence
from datahall.answers.follow import explained, follow
from datahall.cluster.used import used_by_design
from datahall.counted import counted, is_several, with_article
from datahall.errors import DatahallError
from datahall.fabric.design.asked import design_of, possible
from datahall.fabric.design.bill import Bill, bill, estimates, most_for_the_money
from datahall.fabric.design.design import Design
from datahall.fabric.design.early import fitting
from datahall.reliability.survival import cubes_up, survivals
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.units import fmt

BESIDE = ("fat-tree", "torus", "tree", "nvl72")  # to hold a fabric against


def show_fabric(scenario: Scenario) -> Answer:
    """One fabric in full, or several side by side, for the same number of chips.

    A topology (fat-tree, torus, nvl72, …) needs `chips`; a published fabric (meta-24k-roce, …) has its own.
    """
    asked, catalog = scenario.one(FabricDesign), scenario.catalog
    names = list(asked.topologies)
    if len(names) == 1:
        made = _made(scenario, names[0], alone=True)
        return _one(scenario, names[0], made, bill(made, catalog))
    idle = idle_beside(scenario, names)
    designs = [_made(scenario, name) for name in names]
    return _several(scenario, names, designs, [bill(one, catalog) for one in designs], idle)


def _made(scenario: Scenario, name: str, *, alone: bool = False) -> Design:
    """A design; what is wrong with its topology is wrong with one of those that were listed."""
    asked, catalog = scenario.one(FabricDesign), scenario.catalog
    try:
        named = msgspec.structs.replace(asked, topology=name) if alone else fitting(asked, name, catalog)
        return design_of(named, catalog)
    except DatahallError as error:
        error.field = "topologies" if error.field == "on" else error.field
        raise


def _one(scenario: Scenario, name: str, made: Design, cost: Bill) -> Answer:
    failures, cubes = survivals(made, scenario.catalog), cubes_up(made)
    chips = made.counts.num_hosts
    same = msgspec.structs.replace(scenario.one(FabricDesign), chips=chips)
    others = possible(same, (one for one in BESIDE if one != made.topology), scenario.catalog)
    tables = (made_of(cost), reach(made), survives(failures, cubes))
    return Answer(
        kind="fabric",
        inputs={**used_by_design(scenario, name, made)},
        headline=_headline(made, cost),
        binding=_binding(made),
        results=_results(made, cost),
        tables=tuple(table for table in tables if table.rows),
        figure=cost.price if cost.items else None,
        charts=(drawn(made),),
        notes=(*made.notes, *idle_in_fabric(scenario, made), *_notes(made, cost)),
        sources=(*cost.power.citations(), *dict.fromkeys(one.source for one in failures)),
        next_commands=(
            follow(scenario, changes={"topologies": [name, *others[:3]], "chips": chips}),
            explained(follow(scenario)),
        ),
    )


def _several(
    scenario: Scenario, names: list[str], designs: list[Design], bills: list[Bill], idle: tuple[str, ...]
) -> Answer:
    best = most_for_the_money(designs, bills)
    results: dict[str, Cell] = {}
    for name, made, cost in zip(names, designs, bills, strict=True):
        results |= {f"{keyed(name)}_{field}": value for field, value in _results(made, cost).items()}
    notes = [
        f"{name}: {note}"
        for name, made in zip(names, designs, strict=True)
        for note in (*made.notes, *idle_in_fabric(scenario, made))
    ]
    return Answer(
        kind="fabrics",
        headline=_verdict(names, designs, bills, best),
        binding=_narrowest(names, designs),
        results=results,
        tables=compared(names, designs, bills, best),
        figure=bills[best].price if bills[best].items else None,
        charts=tuple(drawn(made, f"{name}: ") for name, made in zip(names, designs, strict=True)),
        notes=(*notes, *idle, *_notes(designs[best], bills[best]), *_chips_differ(names, designs)),
        sources=tuple(dict.fromkeys(source for cost in bills for source in cost.power.citations())),
        next_commands=tuple(
            _alone(scenario, name, made) for name, made in list(zip(names, designs, strict=True))[:3]
        ),
    )


def _alone(scenario: Scenario, name: str, made: Design) -> str:
    """The same question of one of them, without what it has no use for."""
    fits = fitting(scenario.one(FabricDesign), name, scenario.catalog)
    left_out = {
        field.name: None
        for field in scenario.form.fields.values()
        if getattr(fits, field.attribute) == field.default
    }
    chips = None if fits.chips is None else made.counts.num_hosts
    return follow(scenario, changes={**left_out, "topologies": [name], "chips": chips})


def _headline(made: Design, cost: Bill) -> str:
    found = made.counts
    switch = made.parts.switch
    if switch is not None and found.num_switches:
        switches, tiers = counted(found.num_switches, "switch"), counted(found.num_tiers, "tier")
        body = f"{switches} of {made.parts.radix} ports in {tiers} and {counted(cost.num_cables, 'cable')}"
    elif cost.num_switches:
        body = (
            f"{counted(cost.num_switches, 'optical circuit switch')} and {counted(cost.num_cables, 'cable')}, "
            "no packet switch"
        )
    else:
        body = (
            f"{counted(cost.num_cables, 'cable')} and no switch" if cost.items else "the links of one machine"
        )
    price = f": {fmt(cost.price.value, 'usd')} and {fmt(cost.power.value, 'w', 3)}" if cost.items else ""
    name = sentence(with_article(made.fabric.name))
    joins = "join" if is_several(made.fabric.name) else "joins"
    return f"{name} {joins} {found.num_hosts:,} × {made.parts.chip.title} with {body}{price}."


def _binding(made: Design) -> str:
    found, narrow = made.counts, made.narrowest
    if found.num_hosts == 1:
        return "One chip has nobody to send to."
    width = fmt(found.bisection_bytes_per_s, "bytes_per_s")
    port = fmt(made.injection_bytes_per_s, "bytes_per_s", 3)
    if narrow is not None:
        each = fmt(made.all_to_all_bytes_per_s, "bytes_per_s", 3)
        cut, passing = narrow
        share = "shares" if cut.num_below == 1 else "share"
        place = (
            f"The links from a {cut.name} to the next bind: the {counted(cut.num_below, 'chip')} of one"
            if passing.between
            else f"The way out of a {cut.name} binds: its {counted(cut.num_below, 'chip')}"
        )
        return (
            f"{place} {share} {fmt(passing.bytes_per_s, 'bytes_per_s', 3)} one way, "
            f"so an all-to-all gets {each} per chip of its {port}. "
            f"The bisection is {width}, {fmt(found.full_bisection_fraction, 'fraction')} of what half of them can send."
        )
    if found.full_bisection_fraction >= 0.999:
        return f"Full bisection, {width} one way: the {port} port of each chip binds, not the network."
    return (
        f"The {port} port of each chip binds an all-to-all; the bisection, {width} one way, binds only "
        f"pairs across the middle, which get {fmt(found.full_bisection_fraction, 'fraction')} of their ports."
    )


def _verdict(names: list[str], designs: list[Design], bills: list[Bill], best: int) -> str:
    sizes = {made.counts.num_hosts for made in designs}
    of = f"For {counted(sizes.pop(), 'chip')}" if len(sizes) == 1 else "Of these fabrics"
    each = fmt(designs[best].all_to_all_bytes_per_s, "bytes_per_s", 3)
    cost = bills[best]
    price = f" for {fmt(cost.price.value, 'usd')} and {fmt(cost.power.value, 'w', 3)}" if cost.items else ""
    widest = max(range(len(names)), key=lambda n: designs[n].all_to_all_bytes_per_s)
    other = (
        f"{names[widest]} is widest with {fmt(designs[widest].all_to_all_bytes_per_s, 'bytes_per_s', 3)}"
        f" for {fmt(bills[widest].price.value, 'usd')}"
        if designs[widest].all_to_all_bytes_per_s > designs[best].all_to_all_bytes_per_s
        else "none is wider"
    )
    return f"{of} {names[best]} gives an all-to-all the most per dollar: {each} per chip{price}; {other}."


def _narrowest(names: list[str], designs: list[Design]) -> str:
    def width_of(index: int) -> tuple[float, float]:
        return designs[index].all_to_all_bytes_per_s, designs[index].counts.bisection_bytes_per_s

    worst = min(range(len(designs)), key=width_of)
    made, narrow = designs[worst], designs[worst].narrowest
    each = fmt(made.all_to_all_bytes_per_s, "bytes_per_s", 3)
    if narrow is None:
        return f"{names[worst]} is narrowest: its ports leave an all-to-all {each} per chip."
    cut, passing = narrow
    place = f"from a {cut.name} to the next" if passing.between else f"out of a {cut.name}"
    return (
        f"{names[worst]} is narrowest: {fmt(passing.bytes_per_s, 'bytes_per_s')} {place} of "
        f"{counted(cut.num_below, 'chip')} leave an all-to-all {each} per chip."
    )


def _results(made: Design, cost: Bill) -> dict[str, Cell]:
    found = made.counts
    return {
        "num_chips": found.num_hosts,
        "num_switches": cost.num_switches,
        "num_tiers": found.num_tiers,
        "num_cables": cost.num_cables,
        "num_modules": cost.num_modules,
        "num_bisection_links": found.num_bisection_links,
        "bisection_bytes_per_s": found.bisection_bytes_per_s,
        "full_bisection_fraction": found.full_bisection_fraction,
        "all_to_all_bytes_per_s": made.all_to_all_bytes_per_s,
        "injection_bytes_per_s": made.injection_bytes_per_s,
        "num_diameter_links": found.diameter,
        "mean_hops": found.mean_hops,
        "num_paths": found.num_paths,
        "power_w": cost.power.value,
        "price_usd": _with_range(cost),
    }


def _with_range(cost: Bill) -> Quantity:
    band = cost.price.band
    return Quantity(cost.price.value, "usd", band.low if band else None, band.high if band else None)


def _notes(made: Design, cost: Bill) -> tuple[str, ...]:
    lines = []
    if cost.items:
        lines.append("bandwidth is one way; NICs, scale-up links and their switches belong to the servers")
        unsure = [source.title.split(";")[0].split(",")[0] for source in estimates(cost)]
        lines.append(f"estimates: {', '.join(dict.fromkeys(unsure))}" if unsure else "")
    if made.parts.switch is not None and made.parts.radix != made.parts.switch.radix(
        made.parts.port_bytes_per_s
    ):
        lines.append(f"power and price per port as in {made.parts.switch.title}")
    if made.parts.switch is not None and cost.items:
        lines.append("fibre everywhere: multimode to the chips, single mode between switches")
    if made.counts.num_paths > 1e6 and cost.items:
        lines.append("paths are shortest ones; most share links")
    return tuple(line for line in lines if line)


def _chips_differ(names: list[str], designs: list[Design]) -> tuple[str, ...]:
    used = {name: made.parts.chip.title for name, made in zip(names, designs, strict=True)}
    if len(set(used.values())) == 1:
        return ()
    listed = ", ".join(f"{name} {chip}" for name, chip in used.items())
    return (f"chips differ: {listed}; naming a chip sets one for all",)
