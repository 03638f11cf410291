"""How chips are bought: which ways are weighed, from whom, for what price, as of which day."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Choice, Flag, Listed, Name, Quantity
from datahall.scenario.sections.views import Day
from datahall.scenario.words import BUYINGS, Buying

USUAL_BUYINGS: tuple[Buying, ...] = ("rent", "own")
MOST_USD = 1e15
MOST_USD_PER_HOUR = 1e6
PRICES = "prices"  # group of inputs


class Purchase(Section, frozen=True, kw_only=True):
    """What may be bought, and at which prices; where nobody says a price, those of the catalogue."""

    priced: Annotated[str, Name("A model that is trained, or a chip.", of="priced", metavar="MODEL|CHIP")] = (
        ""
    )
    buy: Annotated[
        tuple[Buying, ...],
        Listed(
            f"Ways to buy that are weighed: {', '.join(BUYINGS)}.",
            of=Choice("", options=BUYINGS),
            metavar="WAYS",
        ),
    ] = USUAL_BUYINGS
    own: Annotated[bool, Flag("Lead with owning, by its parts.")] = False
    providers: Annotated[
        tuple[str, ...],
        Listed(
            "Whose prices count (default: all).", of=Name("", of="provider"), name="provider", group=PRICES
        ),
    ] = ()
    regions: Annotated[
        tuple[str, ...],
        Listed(
            "Regions of clouds that chips stand in, whose prices count (default: anywhere).",
            of=Name("", of="region", example="aws-us-east-1"), group=PRICES,
        ),
    ] = ()  # fmt: skip
    residency: Annotated[
        tuple[str, ...],
        Listed(
            "Countries whose regions alone count: germany,france.",
            of=Name("", of="country", example="germany"), metavar="COUNTRIES", group=PRICES,
        ),
    ] = ()  # fmt: skip
    price_usd_per_hour: Annotated[
        float | None,
        Quantity(
            "Rent of a chip for an hour (default: the median of fresh offers on demand).",
            name="price", above=True, most=MOST_USD_PER_HOUR, example="2.50USD/h", group=PRICES,
        ),
    ] = None  # fmt: skip
    spot_usd_per_hour: Annotated[
        float | None,
        Quantity(
            "Rent of a chip for an hour on spot (default: the median of fresh spot offers).",
            name="spot_price", above=True, most=MOST_USD_PER_HOUR, example="1.20USD/h", group=PRICES,
        ),
    ] = None  # fmt: skip
    as_of: Annotated[
        str,
        Day(
            "Day that ages of prices are counted from (default: that of the newest price).",
            metavar="YYYY-MM-DD", rare=True, group=PRICES,
        ),
    ] = ""  # fmt: skip
    predict: Annotated[
        bool,
        Flag(
            "Lay a run out whose chip-hours were published, and count those it would take.",
            against=("chip_hours",),
        ),
    ] = False
    chip_hours: Annotated[
        float | None,
        Quantity(
            "Chip-hours of the run (default: as published, else of its fastest layout, with failures).",
            unit="count", above=True, most=1e15, example="30.84M",
        ),
    ] = None  # fmt: skip
