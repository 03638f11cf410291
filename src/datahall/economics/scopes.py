"""One cost, four scopes: what share of it "hardware" or "compute" is depends on what is counted beside it.

    chips ⊂ all hardware ⊂ compute with energy and space ⊂ all with staff

Two documents that say 30 % and 60 to 70 % are both right: of developing a frontier model, chips alone take 23 to 32 %,
compute 49 to 73 %.  Reference: Cottier et al. (2024), figure 3.
"""

from __future__ import annotations

from typing import NamedTuple

from datahall.breakdown import Breakdown, derived, difference, fact, product, quotient, total
from datahall.catalog import Catalog
from datahall.economics.own import CAPITAL, STAFF, Owned

CHIPS, HARDWARE, COMPUTE, ALL = "chips", "all hardware", "compute", "with staff"
SHARES = {CHIPS: "chips", HARDWARE: "hardware", COMPUTE: "compute"}


class Scope(NamedTuple):
    """A cost up to some scope."""

    name: str
    figure: Breakdown
    share_fraction: float  # of everything
    published_low: float | None  # shares of developing frontier models
    published_high: float | None

    def over(self, hours: float) -> float:
        """The same for so many chip-hours."""
        return self.figure.value * hours


def scopes(owned: Owned, catalog: Catalog) -> tuple[Scope, ...]:
    """An hour of a chip that is owned, up to each of four scopes; staff that nobody says is the published share."""
    figures = _figures(owned, catalog)
    whole = figures[ALL].value
    return tuple(
        Scope(name, figure, figure.value / whole, *_published(name, catalog))
        for name, figure in figures.items()
    )


def _figures(owned: Owned, catalog: Catalog) -> dict[str, Breakdown]:
    capital = next(part for part in owned.parts.parts if part.name == CAPITAL)
    others = [part for part in owned.parts.parts if part.name not in (CAPITAL, STAFF)]
    share = quotient("chips of the price", owned.capex.chip, owned.capex.price, "fraction")
    compute = total(COMPUTE, (capital.named(HARDWARE), *others))
    return {
        CHIPS: product(CHIPS, (share, capital), "usd_per_hour"),
        HARDWARE: capital.named(HARDWARE),
        COMPUTE: compute,
        ALL: _with_staff(owned, compute, catalog),
    }


def _with_staff(owned: Owned, compute: Breakdown, catalog: Catalog) -> Breakdown:
    said = next((part for part in owned.parts.parts if part.name == STAFF), None)
    if said is not None:
        return total(ALL, (compute, said))
    known = catalog.share("staff").fact
    staff = fact("staff of all", known.value, "fraction", known.source, note=known.note)
    left = difference("all but staff", derived("the whole", 1.0, "fraction"), staff)
    return quotient(ALL, compute, left, "usd_per_hour")


def _published(name: str, catalog: Catalog) -> tuple[float | None, float | None]:
    if name not in SHARES:
        return None, None
    known = catalog.share(SHARES[name]).fact
    return known.low, known.high
