"""Owning hardware: its price, its life, what capital costs, where it stands; and what running anything adds to a bill."""

from collections.abc import Iterator
from typing import Annotated

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
from datahall.scenario.idle import does_nothing
from datahall.scenario.kinds import Choice, Name, Quantity, Share
from datahall.scenario.kinds.numbers import LONGEST_YEARS
from datahall.scenario.sections.money.purchase import MOST_USD
from datahall.scenario.words import DEPRECIATIONS, Depreciation
from datahall.units import YEAR_S

USUAL_OWNER = "neocloud"
LONGEST_LIFE_S = LONGEST_YEARS * YEAR_S
CAPITAL, SPACE, RUNNING = "capital", "space", "running"  # groups of inputs


class Ownership(Section, frozen=True, kw_only=True):
    """Who owns hardware, and what of their usual terms is different."""

    owner: Annotated[
        str,
        Name(
            "Who owns: interest, life and space are theirs where nobody says them.", of="owner", group=CAPITAL
        ),
    ] = USUAL_OWNER
    capex_usd: Annotated[
        float | None,
        Quantity(
            "Price of a chip with its share of server and network (default: of the catalogue's prices).",
            name="capex", above=True, most=MOST_USD, example="31250USD", group=CAPITAL,
        ),
    ] = None  # fmt: skip
    interest_fraction: Annotated[
        float | None,
        Share("Interest on capital a year (default: the owner's).", example="8 %", group=CAPITAL),
    ] = None
    life_s: Annotated[
        float | None,
        Quantity(
            "Life over which hardware is written off (default: the owner's).",
            above=True, most=LONGEST_LIFE_S, example="5y", group=CAPITAL,
        ),
    ] = None  # fmt: skip
    residual_fraction: Annotated[
        float | None,
        Share("Share of the price that is left at the end (default: the owner's).", group=CAPITAL),
    ] = None
    depreciation: Annotated[
        Depreciation | None,
        Choice(
            "How it loses value: annuity (even payments over its life), or market (as newer chips do more for the "
            "money; default for runs that were published).",
            options=DEPRECIATIONS, metavar="HOW", group=CAPITAL,
        ),
    ] = None  # fmt: skip
    age_s: Annotated[
        float | None,
        Quantity(
            "Age of the hardware at the start (default: new, or as of a run that was published).",
            most=LONGEST_LIFE_S, example="1y", name="hardware_age", group=CAPITAL,
        ),
    ] = None  # fmt: skip
    colo_usd_per_w_month: Annotated[
        float | None,
        Quantity(
            "Rent of space by the power of IT, in place of the owner's.", most=1e3, name="colo",
            example="150USD/kW-month", group=SPACE,
        ),
    ] = None  # fmt: skip
    energy_usd_per_j: Annotated[
        float | None,
        Quantity(
            "Price of energy (default: the grid's).",
            name="energy_price",
            most=1.0,
            example="0.08USD/kWh",
            group=SPACE,
        ),
    ] = None
    repair_fraction: Annotated[
        float, Share("Repair a year, of what hardware cost.", name="repair_cost", group=RUNNING)
    ] = 0.0
    staff_usd_per_month: Annotated[
        float,
        Quantity(
            "Staff that runs it, a month.",
            name="staff",
            most=MOST_USD,
            example="50000USD/month",
            group=RUNNING,
        ),
    ] = 0.0
    used_fraction: Annotated[
        float,
        Share("Share of the hours that somebody uses or rents it.", name="used", above=True, group=RUNNING),
    ] = 1.0

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if self.depreciation is not None:
            yield from self.ageless(self.depreciation)
        if self.depreciation == "market":
            for name, value in (("residual", self.residual_fraction), ("interest", self.interest_fraction)):
                if value is not None:
                    yield ScenarioError(
                        does_nothing(
                            name, f"with {option('depreciation', 'market')} the market says what is left"
                        ),
                        field=name,
                        hint=option("depreciation", "annuity"),
                    )

    def ageless(self, usual: Depreciation) -> Iterator[ScenarioError]:
        """An age that changes nothing, where hardware that nobody says more of loses its value so."""
        if self.age_s is not None and (self.depreciation or usual) == "annuity":
            yield ScenarioError(
                does_nothing("hardware_age", "an annuity costs the same every year"),
                field="hardware_age",
                hint=option("depreciation", "market"),
            )


class Overheads(Section, frozen=True, kw_only=True):
    """What running anything adds to the bill of compute, as shares of it."""

    orchestration_fraction: Annotated[
        float | None,
        Share("Orchestration, over the bill (default: as published).", name="orchestration", group=RUNNING),
    ] = None
    network_fraction: Annotated[
        float | None,
        Share(
            "Network, over a bill of rent (default: as published).", name="network_overhead", group=RUNNING
        ),
    ] = None
    storage_fraction: Annotated[
        float | None,
        Share("Storage, over the bill (default: as published).", name="storage_overhead", group=RUNNING),
    ] = None
    monitoring_fraction: Annotated[
        float | None,
        Share("Monitoring, over the bill (default: as published).", name="monitoring", group=RUNNING),
    ] = None
