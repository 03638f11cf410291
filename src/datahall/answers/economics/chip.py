"""What a chip costs for an hour: rented, reserved, on spot, owned; which offers stand for that, and which do not."""

from __future__ import annotations

from datahall.answer import Answer, Cell, Table
from datahall.answers.economics.tables import capex_table, hour_table, offers_table, scopes_table, ways_table
from datahall.answers.follow import follow
from datahall.answers.supply.idle import idle_supply
from datahall.economics.chip import ChipCost, chip_cost_of
from datahall.economics.market import day_of
from datahall.economics.own import Owned
from datahall.economics.scopes import scopes
from datahall.economics.ways import not_priced
from datahall.errors import option
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.units import fmt


def chip_cost(scenario: Scenario) -> Answer:
    """A chip-hour by every way to have it."""
    found = chip_cost_of(scenario)
    market = found.rented.market
    return Answer(
        kind="cost of a chip",
        inputs={
            "chips": found.num_chips,
            "as_of": day_of(scenario.one(Purchase), scenario.catalog).isoformat(),
        },
        verdict="no" if found.lead is None or found.why_not_owned else "yes",
        headline=_headline(found),
        binding=_binding(found),
        results=_results(found),
        tables=(
            ways_table(found.ways, found.lead),
            *((offers_table(market),) if market is not None and market.listings else ()),
            *_owned_tables(scenario, found),
        ),
        figure=None if found.lead is None else found.lead.hour,
        notes=tuple(_notes(scenario, found)),
        next_commands=_next(scenario, found),
    )


def _headline(found: ChipCost) -> str:
    lead, rented, owned = found.lead, found.rented, found.owned
    if lead is None or lead.hour is None:
        return f"No: {found.chip.title} is not priced; nobody lists it, and nobody sells it."
    if found.why_not_owned:
        price = fmt(lead.hour.value, "usd_per_hour")
        return f"No: owning {found.chip.title} has no price: {found.why_not_owned}. It costs {price} {lead.name}."
    first = f"{found.chip.title} costs {fmt(lead.hour.value, 'usd_per_hour')} {lead.name}"
    other = owned if lead is rented else rented
    if other.hour is None or found.apart_fraction is None:
        return f"{first}; {other.name} it is not priced."
    less, bound = ("less", "at most ") if owned.usd_per_hour < rented.usd_per_hour else ("more", "at least ")
    if owned.owned is None or not owned.owned.capex.is_least:
        bound = ""
    return (
        f"{first}, and {fmt(other.hour.value, 'usd_per_hour')} {other.name}: owning costs "
        f"{bound}{fmt(found.apart_fraction, 'fraction')} {less} than renting, where every hour is used."
    )


def _binding(found: ChipCost) -> str:
    owned = found.owned.owned
    if owned is None:
        return ""
    share, price = fmt(owned.share_of(owned.most), "fraction"), fmt(owned.capex.price.value, "usd")
    first = f"Of an hour that is owned, {owned.most.name} is {share}"
    if owned.capex.is_least:
        return f"{first}: {price} of a chip's price are known, and {_missing(owned)} are not priced."
    return f"{first}: a chip with its share of server and network is {price}."


def _missing(owned: Owned) -> str:
    return " and ".join(owned.capex.missing)


def _results(found: ChipCost) -> dict[str, Cell]:
    results: dict[str, Cell] = {"chip": found.chip.name}
    if found.lead is not None:
        results |= {
            "chip_usd_per_hour": found.lead.usd_per_hour,
            "all_usd_per_hour": found.all_usd_per_hour,
            "day_usd": found.day_usd,
            "month_usd": found.month_usd,
        }
    if found.rented.hour is not None:
        results["rented_usd_per_hour"] = found.rented.usd_per_hour
    if found.owned.owned is not None:
        results["owned_usd_per_hour"] = found.owned.usd_per_hour
        results["bought_usd"] = found.owned.owned.capex.price.value
    if found.apart_fraction is not None:
        results["owned_over_rented_ratio"] = found.owned_over_rented_ratio
        results["apart_fraction"] = found.apart_fraction
    return results


def _owned_tables(scenario: Scenario, found: ChipCost) -> tuple[Table, ...]:
    owned = found.owned.owned
    if owned is None:
        return ()
    return (
        hour_table(owned),
        capex_table(owned),
        scopes_table(scopes(owned, scenario.catalog), 1.0, "usd_per_hour"),
    )


def _notes(scenario: Scenario, found: ChipCost) -> list[str]:
    lines = [
        f"not priced: {line}" for line in not_priced(tuple(way for way in found.ways if way.hour is None))
    ]
    if found.owned.owned is not None and found.owned.owned.capex.is_least:
        lines.append(f"not priced: of owning {_missing(found.owned.owned)}; it costs more than is said")
    if found.owned.owned is not None and not scenario.given("repair_cost"):
        lines.append(
            f"no repair is counted: nobody publishes it; {option('repair_cost')} adds a share of the price"
        )
    if found.owned.owned is not None and not scenario.given("staff"):
        lines.append(f"staff is the published share of developing a model, unless {option('staff')} says it")
    lines.append(
        "list prices, without discounts, egress and tax; by region they differ as lowest and highest say"
    )
    return [*lines, *idle_supply(scenario, [found.chip])]


def _next(scenario: Scenario, found: ChipCost) -> tuple[str, ...]:
    commands = [follow(scenario, "catalog prices", {"chip": found.chip.name})]
    if found.owned.hour is not None and not scenario.one(Purchase).own:
        commands.insert(0, follow(scenario, changes={"own": True}))
    return tuple(commands)
