"""Fabrics for so many chips: what each is made of, how wide and far it is, what it draws and costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from datahall.answer import Answer, Cell, Quantity, Table
from datahall.answers.bounds import opened, whole
from datahall.answers.fabric.fabric_table import compared, made_of, reach, survives
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.design.bill import Bill, bill, estimates
from datahall.fabric.design.built import preset
from datahall.fabric.design.design import TOPOLOGIES, Design, design, read_sides
from datahall.units import fmt

MOST_CHIPS = 1_000_000


def show_fabric(
    topologies: str | Sequence[str],
    *,
    chips: str | int | None = None,
    chip: str = "",
    switch: str = "",
    radix: str | int | None = None,
    tiers: str | int | None = None,
    oversubscription: str = "1:1",
    sides: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """One fabric in full, or several side by side, for the same number of chips.

    A topology (fat-tree, torus, nvl72, …) needs `chips`; a published fabric (meta-24k-roce, …) has its own.
    """
    shelf = opened(catalog)
    names = [topologies] if isinstance(topologies, str) else list(topologies)
    if not names:
        raise ScenarioError("no topology is named", hint=f"one or more of {', '.join(TOPOLOGIES)}")
    count = None if chips is None else whole("chips", chips, at_most=MOST_CHIPS)
    ports = None if radix is None else whole("radix", radix, at_most=4096)
    levels = None if tiers is None else whole("tiers", tiers, at_most=9)
    if count is None and sides:
        count = prod(read_sides(sides))
    make = partial(
        design, catalog=shelf, chip=chip, switch=switch, radix=ports, tiers=levels,
        oversubscription=oversubscription, sides=sides,
    )  # fmt: skip
    designs = [_design(name, count, shelf, make) for name in names]
    bills = [bill(one, shelf) for one in designs]
    inputs: dict[str, Cell] = {
        "topologies": ", ".join(names), "num_chips": count, "chip": chip or None, "switch": switch or None,
        "radix": ports, "tiers": levels, "oversubscription": oversubscription, "sides": sides or None,
    }  # fmt: skip
    if len(designs) == 1:
        return _one(names[0], designs[0], bills[0], shelf, inputs)
    return _several(names, designs, bills, inputs)


def _design(name: str, chips: int | None, catalog: Catalog, make: Callable[[str, int], Design]) -> Design:
    if name in {known.name for known in catalog.known_fabrics()}:
        return preset(name, catalog=catalog)
    if chips is None:
        known = ", ".join(fabric.name for fabric in catalog.known_fabrics())
        raise ScenarioError(
            f"how many chips shall {name} join?",
            hint=f"--chips 16384; published fabrics have their own: {known}",
        )
    return make(name, chips)


def _one(name: str, made: Design, cost: Bill, catalog: Catalog, inputs: dict[str, Cell]) -> Answer:
    failures = survives(made, catalog)
    chips = made.counts.num_hosts
    others = "fat-tree torus tree" if made.topology != "fat-tree" else "nvl72 torus tree"
    return Answer(
        kind="fabric",
        inputs=inputs,
        headline=_headline(made, cost),
        binding=_binding(made),
        results=_results(made, cost),
        tables=tuple(table for table in (made_of(cost, chips), reach(made), failures.table) if table.rows),
        figure=cost.price if cost.items else None,
        notes=(*made.notes, *_notes(made, cost)),
        sources=(*cost.power.citations(), *failures.sources),
        next_commands=(
            f"datahall show fabric {name} {others} --chips {chips}",
            f"datahall explain show fabric {name}" + (f" --chips {chips}" if inputs["num_chips"] else ""),
        ),
    )


def _several(names: list[str], designs: list[Design], bills: list[Bill], inputs: dict[str, Cell]) -> Answer:
    best = _best(designs, bills)
    tables: tuple[Table, ...] = compared(names, designs, bills, best)
    results: dict[str, Cell] = {}
    for name, made, cost in zip(names, designs, bills, strict=True):
        key = name.replace("-", "_")
        results |= {f"{key}_{field}": value for field, value in _results(made, cost).items()}
    notes = [f"{name}: {note}" for name, made in zip(names, designs, strict=True) for note in made.notes]
    return Answer(
        kind="fabrics",
        inputs=inputs,
        headline=_verdict(names, designs, bills, best),
        binding=_narrowest(names, designs),
        results=results,
        tables=tables,
        figure=bills[best].price if bills[best].items else None,
        notes=(*notes, *_notes(designs[best], bills[best]), *_chips_differ(names, designs)),
        sources=tuple(dict.fromkeys(source for cost in bills for source in cost.power.citations())),
        next_commands=tuple(
            f"datahall show fabric {name} --chips {designs[0].counts.num_hosts}" for name in names[:3]
        ),
    )


def _headline(made: Design, cost: Bill) -> str:
    found = made.counts
    switch = made.parts.switch
    if switch is not None and found.num_switches:
        tiers = f"{found.num_tiers} tier{'s' if found.num_tiers > 1 else ''}"
        body = f"{found.num_switches:,} switches of {made.parts.radix} ports in {tiers}"
        body += f" and {cost.num_cables:,} cables"
    elif cost.num_switches:
        body = (
            f"{cost.num_switches:,} optical circuit switches and {cost.num_cables:,} cables, no packet switch"
        )
    else:
        body = f"{cost.num_cables:,} cables and no switch" if cost.items else "the links of one machine"
    price = f": {fmt(cost.price.value, 'usd')} and {fmt(cost.power.value, 'w', 3)}" if cost.items else ""
    return f"{made.fabric.name} joins {found.num_hosts:,} × {made.parts.chip.title} with {body}{price}."


def _binding(made: Design) -> str:
    found = made.counts
    share = found.full_bisection_fraction
    width = fmt(found.bisection_bytes_per_s, "bytes_per_s")
    each = fmt(made.all_to_all_bytes_per_s, "bytes_per_s", 3)
    port = fmt(made.injection_bytes_per_s, "bytes_per_s", 3)
    if share >= 0.999:
        return f"Full bisection, {width} one way: the {port} port of each chip binds, not the network."
    if made.all_to_all_bytes_per_s > 0.999 * made.injection_bytes_per_s:
        return (
            f"The {port} port of each chip binds an all-to-all; the bisection, {width} one way, binds only "
            f"pairs across the middle, which get {fmt(share, 'fraction')} of their ports."
        )
    return (
        f"The bisection binds: {width} one way, {fmt(share, 'fraction')} of what half the chips can send; an "
        f"all-to-all gets {each} per chip of its {port}, a ring among neighbours all of it."
    )


def _verdict(names: list[str], designs: list[Design], bills: list[Bill], best: int) -> str:
    sizes = {made.counts.num_hosts for made in designs}
    of = f"For {sizes.pop():,} chips" if len(sizes) == 1 else "Of these fabrics"
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


def _best(designs: list[Design], bills: list[Bill]) -> int:
    """The most all-to-all bandwidth for the money, of those that cost any."""

    def worth(index: int) -> float:
        price = bills[index].price.value
        return designs[index].all_to_all_bytes_per_s / price if price else 0.0

    return max(range(len(designs)), key=worth)


def _narrowest(names: list[str], designs: list[Design]) -> str:
    def width_of(index: int) -> tuple[float, float]:
        return designs[index].all_to_all_bytes_per_s, designs[index].counts.bisection_bytes_per_s

    worst = min(range(len(designs)), key=width_of)
    made = designs[worst]
    width = fmt(made.counts.bisection_bytes_per_s, "bytes_per_s")
    return (
        f"{names[worst]} is narrowest: its bisection of {width} "
        f"leaves an all-to-all {fmt(made.all_to_all_bytes_per_s, 'bytes_per_s', 3)} per chip."
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
    return (f"chips differ: {listed}; --chip sets one for all",)
