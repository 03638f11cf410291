"""What owning a chip costs by the hour, from its parts.

    hour = (capital + space + energy + repair + staff) / share of hours used

Capital is an annuity, or what the market takes off meanwhile; space is rented by the power of IT, or an annuity of a
hall; energy is the nameplate of the site times what is drawn of it in the mean times the grid's price.  Servers are
bought whole, and more of them for those in repair.

Reference: Barroso, Hölzle and Ranganathan, The datacenter as a computer, chapter 6.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, isnan

import msgspec

from datahall.breakdown import Breakdown, derived, fact, given, product, quotient, total
from datahall.catalog import Catalog
from datahall.catalog.entries.bought.owner import Owner
from datahall.catalog.entries.chip import Chip
from datahall.catalog.fact import Fact
from datahall.economics.annuity import YEAR_HOURS, even_usd_per_hour, market_usd_per_hour
from datahall.economics.capex import HALL_CHIPS, Capex, network_bill
from datahall.errors import UnsupportedError
from datahall.fabric.design.parts import usual_server
from datahall.power.chip import power_limit_w
from datahall.power.site import building_of, lone_machines, provisioned
from datahall.reliability.asked import process_asked
from datahall.reliability.nodes.spares import node_availability
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.scenario.sections.operations.site import Site
from datahall.units import HOUR_S, YEAR_S

MONTH_HOURS = YEAR_HOURS / 12.0
CAPITAL, SPACE, ENERGY, REPAIR, STAFF = "capital", "space", "energy", "repair", "staff"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner pays, as leaves: those of their kind unless somebody says otherwise."""

    owner: Owner
    asked: Ownership
    interest: Breakdown
    life_s: float
    residual: Breakdown
    lost: Breakdown  # value that the market takes off in a year
    age_s: float
    by_market: bool

    @property
    def life_years(self) -> float:
        return self.life_s / YEAR_S

    @property
    def age_years(self) -> float:
        return self.age_s / YEAR_S

    def capital(self, name: str, capex: Breakdown, span_years: float | None = None) -> Breakdown:
        """What capital costs by the hour; by the market over some years, or over a life."""
        if self.by_market:
            return market_usd_per_hour(name, capex, self.lost, self.age_years, span_years or self.life_years)
        return even_usd_per_hour(name, capex, self.interest, self.life_years, self.residual)


def terms_of(
    asked: Ownership, catalog: Catalog, *, age_s: float = 0.0, by_market: bool = False, owner: str = ""
) -> Terms:
    """The terms that somebody asks for; age and market stand where nobody says, and no terms of an annuity."""
    home = catalog.owner(owner or asked.owner)
    lost = catalog.share("value-lost").fact
    said = asked.depreciation
    even = any(one is not None for one in (asked.interest_fraction, asked.residual_fraction, asked.life_s))
    residual = asked.residual_fraction if asked.residual_fraction is not None else home.residual_fraction
    return Terms(
        owner=home,
        asked=asked,
        interest=_said("interest", asked.interest_fraction, home.facts["interest_fraction"]),
        life_s=asked.life_s or home.life_s,
        residual=given("residual", residual, "fraction", field="residual"),
        lost=fact("value lost in a year", lost.value, "fraction", lost.source, note=lost.note),
        age_s=age_s if asked.age_s is None else asked.age_s,
        by_market=(by_market and not even) if said is None else said == "market",
    )


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The power of a chip's share of a site, as chains."""

    it: Breakdown  # nameplate of servers, network and storage
    site: Breakdown  # with what the building adds
    energy: Breakdown  # price of a joule


def place_of(chip: Chip, num_chips: int, asked: Ownership, site: Site, catalog: Catalog) -> Place | None:
    """Where a chip stands; None where nobody published what it draws or what its grid charges.

    Its network is that of `network_bill`, of one hall.
    """
    num_chips = min(num_chips, HALL_CHIPS)
    price = energy_price(asked, site, catalog)
    try:
        power_limit_w(chip)
    except UnsupportedError:
        return None
    if price is None:
        return None
    machines = lone_machines(chip, catalog, num_chips)
    wires = network_bill(chip, num_chips, catalog)
    if wires is not None:
        machines = msgspec.structs.replace(machines, network=wires.power)
    whole, chips = provisioned(machines, building_of(site, catalog)), derived("chips", num_chips, "count")
    return Place(
        it=quotient("IT power of a chip", whole.at("IT"), chips, "w"),
        site=quotient("site power of a chip", whole, chips, "w"),
        energy=price,
    )


def energy_price(asked: Ownership, site: Site, catalog: Catalog) -> Breakdown | None:
    """What a joule costs: as said, or the grid's; None where nobody published it."""
    if asked.energy_usd_per_j is not None:
        return given("price of energy", asked.energy_usd_per_j, "usd_per_j", field="energy_price")
    grid = catalog.grid(site.grid)
    if isnan(grid.price_usd_per_j):
        return None
    known = grid.facts["price_usd_per_j"]
    return fact(f"price of energy, {grid.title}", known.value, "usd_per_j", known.source, note=known.note)


class Owned(msgspec.Struct, frozen=True, kw_only=True):
    """An hour of a chip that is owned, its capex, and who owns it."""

    hour: Breakdown  # of an hour that is used
    parts: Breakdown  # of an hour of the clock
    capex: Capex
    terms: Terms
    place: Place

    def share_of(self, part: Breakdown) -> float:
        """What a part is of an hour of the clock."""
        return part.value / self.parts.value

    @property
    def most(self) -> Breakdown:
        """The largest part."""
        return max(self.parts.parts, key=lambda part: part.value)


def owned_hour(
    chip: Chip,
    num_chips: int,
    capex: Capex,
    terms: Terms,
    place: Place,
    catalog: Catalog,
    *,
    span_years: float | None = None,
) -> Owned:
    """An hour of a chip of so many, over a life or over a span of years."""
    asked = terms.asked
    spares = spare_ratio(chip, num_chips, catalog)
    bought = product("price with spares", (capex.price, spares), "usd")
    parts = [
        terms.capital(CAPITAL, bought, span_years),
        _space(terms, place),
        _energy(terms, place),
    ]
    if asked.repair_fraction:
        repair = given("repair", asked.repair_fraction, "fraction", field="repair_cost")
        yearly = product("repair of a year", (repair, capex.price), "usd")
        parts.append(
            quotient(REPAIR, yearly, derived("hours of a year", YEAR_HOURS, "count"), "usd_per_hour")
        )
    if asked.staff_usd_per_month:
        staff = given("staff", asked.staff_usd_per_month, "usd_per_month", field="staff")
        hours = derived("chip-hours of a month", num_chips * MONTH_HOURS, "count")
        parts.append(quotient(STAFF, staff, hours, "usd_per_hour"))
    whole = total("an hour of the clock", parts)
    used = given("share of hours used", asked.used_fraction, "fraction", field="used")
    hour = quotient("owning a chip for an hour", whole, used, "usd_per_hour")
    return Owned(hour=hour, parts=whole, capex=capex, terms=terms, place=place)


def spare_ratio(chip: Chip, num_chips: int, catalog: Catalog) -> Breakdown:
    """Chips that are bought for each that works: whole servers, and more of them for those in repair."""
    bought = whole_servers(chip, num_chips, catalog)
    works = _working_fraction(chip.name, min(num_chips, usual_server(catalog, chip).num_chips), catalog)
    whole = quotient(
        "in whole servers",
        derived("chips of whole servers", bought, "count"),
        derived("chips", num_chips, "count"),
        "ratio",
    )
    up = derived("share not in repair", works, "fraction", "failures of nodes and times to repair them")
    return quotient("bought over working", whole, up, "ratio")


def whole_servers(chip: Chip, num_chips: int, catalog: Catalog) -> int:
    """Chips of the servers that so many stand in, which are sold whole."""
    server = usual_server(catalog, chip)
    return server.num_chips * ceil(num_chips / server.num_chips)


@lru_cache(maxsize=64)  # of a node, whatever number of them: asked by every candidate of a plan
def _working_fraction(name: str, num_chips: int, catalog: Catalog) -> float:
    """The share of its life that a node is not in repair."""
    return node_availability(process_asked(FailureRates(), catalog.chip(name), catalog, num_chips))


def _space(terms: Terms, place: Place) -> Breakdown:
    """Rent of space by the power of IT, or even payments for a hall."""
    owner, said = terms.owner, terms.asked.colo_usd_per_w_month
    if said is not None or owner.rents_space:
        rent = _said_of("rent of space", said, owner.facts.get("colo_usd_per_w_month"), "colo")
        monthly = product("space of a month", (place.it, rent), "usd")
        return quotient(SPACE, monthly, derived("hours of a month", MONTH_HOURS, "count"), "usd_per_hour")
    known = owner.facts["hall_usd_per_w"]
    hall = product("hall", (place.it, fact("price of a hall", known.value, "usd_per_w", known.source)), "usd")
    return even_usd_per_hour(SPACE, hall, terms.interest, owner.hall_life_s / YEAR_S)


def _energy(terms: Terms, place: Place) -> Breakdown:
    known = terms.owner.facts["drawn_fraction"]
    power = product(
        "drawn", (place.site, fact("drawn of the nameplate", known.value, "fraction", known.source)), "w"
    )
    return product(ENERGY, (power, derived("an hour", HOUR_S, "s"), place.energy), "usd_per_hour")


def _said(name: str, value: float | None, known: Fact) -> Breakdown:
    if value is not None:
        return given(name, value, known.unit, field=name)
    return fact(name, known.value, known.unit, known.source, note=known.note).unless_said(name)


def _said_of(name: str, value: float | None, known: Fact | None, field: str) -> Breakdown:
    if value is not None or known is None:
        return given(name, value or 0.0, "usd_per_w_month", field=field)
    return fact(name, known.value, known.unit, known.source, note=known.note).unless_said(field)
