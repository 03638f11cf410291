"""Why a chip cannot be had as somebody asks, and what can be had instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from datahall.breakdown import Source
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.supply.foundry import Foundry
from datahall.economics.market import is_listed
from datahall.economics.supply.export import is_unknown, licence_for
from datahall.economics.supply.places import is_offered, says_where
from datahall.errors import InfeasibleError, option
from datahall.scenario.buying import provider_ways
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.money.supply import Supply

MOST_NAMED = 4  # chips that a no says can be had


def why_left_out(scenario: Scenario, chip: Chip) -> str:
    """What keeps a chip from being had; nothing where it can be."""
    asked = scenario.one(Supply)
    makers = why_without(chip, asked.without, scenario.catalog)
    if makers:
        return makers
    if asked.country and not asked.licensed:
        rule = licence_for(chip, asked.country, scenario.catalog)
        if rule is not None:
            there = scenario.catalog.country(asked.country).title
            return f"to {there} it {rule.review} ({rule.title}, {rule.source.date})"
    return _sold_nowhere(scenario, chip)


def left_out(scenario: Scenario, chips: Iterable[Chip]) -> dict[str, str]:
    """The chips that cannot be had, each with why."""
    found = {chip.name: why_left_out(scenario, chip) for chip in chips}
    return {name: why for name, why in found.items() if why}


def cannot_be_had(scenario: Scenario, why: dict[str, str], field: str) -> InfeasibleError:
    """The error where none of the chips can be had: why, and what can."""
    alike: dict[str, list[str]] = {}
    for name, reason in why.items():
        alike.setdefault(reason, []).append(name)
    said = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in alike.items())
    return InfeasibleError(f"no chip that was asked for can be had: {said}", field=field,
                           hint=_instead(scenario, tuple(why), field))  # fmt: skip


def not_sold(chip: Chip, catalog: Catalog) -> str:
    """Why nobody can buy a chip; nothing where somebody has a price, or the catalogue knows of nothing against it."""
    held = catalog.cloud_only(chip.name)
    if held is None or catalog.offers(chip.name, "purchase"):
        return ""
    return f"it is not sold: {' and '.join(held.clouds)} alone rents it out {dated(held.source)}"


def makers_of(chip: Chip, catalog: Catalog) -> tuple[Foundry, ...]:
    """Who makes its wafers, and the package they are put into."""
    return tuple(one for one in catalog.foundries() if chip.name in one.chips)


def dated(source: Source) -> str:
    """Of when a fact is, as it stands behind one."""
    return f"({source.date})"


def why_without(chip: Chip, without: Sequence[str], catalog: Catalog) -> str:
    """That a maker is left out who makes it, or may: of whom nothing is known is not known to be another."""
    makers = makers_of(chip, catalog)
    for name in without:
        left = catalog.foundry(name)
        alike = [
            one
            for one in makers
            if one.name == left.name or (left.step == "wafers" and one.company == left.company)
        ]
        if alike:
            return f"{alike[0].title} makes it {dated(alike[0].source)}"
        if not any(one.step == left.step for one in makers) and not _is_made_elsewhere(makers, left):
            return f"who makes its {left.step} is not known"
    return ""


def _is_made_elsewhere(makers: Sequence[Foundry], left: Foundry) -> bool:
    """Whether a package need not be looked at: that of one company holds wafers of its own."""
    return left.step == "packaging" and any(one.company != left.company for one in makers)


def _sold_nowhere(scenario: Scenario, chip: Chip) -> str:
    """That the ways that are weighed lead to none of it."""
    asked, catalog = scenario.one(Purchase), scenario.catalog
    owned = "own" in asked.buy and (
        scenario.one(Ownership).capex_usd is not None or not not_sold(chip, catalog)
    )
    rents = set(provider_ways()) & set(asked.buy)
    if owned:
        return ""
    if not rents:
        return not_sold(chip, catalog)
    said = asked.price_usd_per_hour is not None or asked.spot_usd_per_hour is not None
    if (
        says_where(asked)
        and is_listed(chip.name, catalog)
        and not said
        and not is_offered(chip, asked, catalog)
    ):
        return "nobody is known to rent it out there"
    return ""


def _instead(scenario: Scenario, names: tuple[str, ...], field: str) -> str:
    """What can be had: the same chips another way, and other chips."""
    ways = []
    chips = [scenario.catalog.chip(name) for name in names]
    asked = scenario.one(Purchase)
    if (
        "own" in asked.buy
        and not set(provider_ways()) & set(asked.buy)
        and any(not_sold(one, scenario.catalog) for one in chips)
    ):
        ways.append(option("buy", "rent"))
    others = _others(scenario, chips)
    if others:
        ways.append(option(field, ",".join(others) if field == "chips" else others[0]))
    return ", or ".join(ways) or "leave one of these limits out"


def _is_doubtful(scenario: Scenario, chip: Chip) -> bool:
    """Whether a chip is no way out: nobody brings it to that country, or nobody knows whether it may be brought."""
    country, catalog = scenario.one(Supply).country, scenario.catalog
    return bool(country) and (bool(not_sold(chip, catalog)) or is_unknown(chip, country, catalog))


def _others(scenario: Scenario, chips: Sequence[Chip]) -> list[str]:
    """Chips that can be had and have a price, the newest first."""
    catalog, known = scenario.catalog, {chip.name for chip in chips}
    found = [
        chip
        for chip in sorted(catalog.chips(), key=lambda one: (-one.year, one.name))
        if chip.name not in known
        and chip.status == "shipping"
        and chip.family != "cpu"
        and is_listed(chip.name, catalog)
        and not why_left_out(scenario, chip)
        and not _is_doubtful(scenario, chip)
    ]
    return [chip.name for chip in found[:MOST_NAMED]]
