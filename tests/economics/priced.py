"""A chip that is owned at round terms, and questions as a person asks them, for cases worked by hand."""

from __future__ import annotations

from typing import Any

from datahall.answers.ask import form_of
from datahall.breakdown import Breakdown, derived, given
from datahall.catalog import Catalog
from datahall.economics.capex import capex_of
from datahall.economics.own import Owned, owned_hour, place_of, terms_of
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.operations.site import Site

CATALOG = Catalog(user=False)
CHIP = CATALOG.chip("h100-sxm")


def asked(verb: str, **said: Any) -> Scenario:
    return read_names(form_of(verb), said, CATALOG)


def owned(num_chips: int = 64, *, span_years: float | None = None, **said: Any) -> Owned:
    """An hour of an H100 of $40,000, all in."""
    terms = Ownership(capex_usd=40_000.0, **said)
    capex = capex_of(CHIP, num_chips, CATALOG, 40_000.0)
    place = place_of(CHIP, num_chips, terms, Site(), CATALOG)
    assert capex is not None
    assert place is not None
    return owned_hour(CHIP, num_chips, capex, terms_of(terms, CATALOG), place, CATALOG, span_years=span_years)


def part(found: Owned, name: str) -> float:
    return next(one.value for one in found.parts.parts if one.name == name)


def hourly(usd: float) -> Breakdown:
    return given("price", usd, "usd_per_hour")


def dollars(usd: float) -> Breakdown:
    return derived("dollars", usd, "usd")
