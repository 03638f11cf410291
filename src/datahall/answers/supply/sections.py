"""Words of what a plan says of supply, and of the regions that its chips stand in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.answer import Cell, Quantity
from datahall.answers.section import Row, Words
from datahall.counted import counted
from datahall.units import fmt

if TYPE_CHECKING:
    from datahall.breakdown import Breakdown
    from datahall.catalog.entries.supply.lead_time import LeadTime
    from datahall.economics.sections.stands import Stands
    from datahall.economics.sections.supply import Supplied
    from datahall.economics.supply.stand import Stand, Trip

UNKNOWN = "not known"


def _supply(supply: Supplied) -> tuple[Row, ...]:
    return (
        ("supply: made by", None, _makers(supply)),
        ("supply: sold by", None, _sellers(supply)),
        (
            "supply: time to wait",
            None,
            "; ".join(map(_wait, supply.waits)) or f"{UNKNOWN}: ask before deciding",
        ),
        *((("supply: export", None, _export(supply)),) if supply.country else ()),
    )


def _makers(supply: Supplied) -> str:
    found = [f"{one.title} ({one.step}, {one.source.date})" for one in supply.makers]
    return ", ".join(found) or UNKNOWN


def _sellers(supply: Supplied) -> str:
    if supply.held is not None:
        more = f"; {supply.held.note}" if supply.held.note else ""
        return f"{', '.join(supply.held.clouds)} alone, for rent: a lock-in ({supply.held.source.date}{more})"
    if not supply.sellers:
        return "nobody is known to rent it out at a price that counts"
    return f"{', '.join(supply.sellers)} for rent at a price that counts"


def _wait(one: LeadTime) -> str:
    short, long = (fmt(time, "s", 3) for time in (one.shortest_s, one.longest_s))
    span = short if short == long else f"{short} to {long}"
    return f"{one.title} {span} ({one.said}, {one.source.date})"


def _export(supply: Supplied) -> str:
    if supply.licence is not None:
        return f"to {supply.country} it {supply.licence.review} ({supply.licence.title}, {supply.licence.source.date})"
    if supply.hangs_on_die:
        return f"to {supply.country}: {UNKNOWN}, it hangs on the area of its die"
    return f"to {supply.country}: no licence that the catalogue knows of"


def _supply_results(supply: Supplied) -> dict[str, Cell]:
    found: dict[str, Cell] = {
        "made_by": ", ".join(dict.fromkeys(one.company for one in supply.makers)) or UNKNOWN,
        "sold_by": ", ".join(supply.held.clouds) if supply.held is not None else ", ".join(supply.sellers),
        "cloud_only": supply.held is not None,
    }
    if supply.country:
        found["needs_licence"] = supply.licence is not None
    return found


SUPPLY = Words(_supply, _supply_results)


def _stands(stands: Stands) -> tuple[Row, ...]:
    return (
        *map(_price, stands.stands),
        *(
            (part.name, Quantity(part.value, "usd"), _leaves(stands, usd_per_gb))
            for one in stands.stands
            for part, usd_per_gb in (
                (one.egress, one.region.egress_usd_per_gb),
                (one.moved, one.region.between_usd_per_gb),
            )
            if part is not None
        ),
        *map(_trip, stands.trips),
    )


def _price(one: Stand) -> Row:
    hour = one.hour
    known = [one.region.title, f"grid {one.region.grid or UNKNOWN}"]
    if one.region.carbon_kg_per_j > 0.0:
        known.append(fmt(one.region.carbon_kg_per_j, "kg_per_j"))
    name = f"chip-hour in {one.region.name}"
    if hour is None:
        return name, None, f"not priced: {one.market.why_not}; {', '.join(known)}"
    return name, Quantity(hour.value, "usd_per_hour"), f"on demand, {one.market.date}; {', '.join(known)}"


def _leaves(stands: Stands, usd_per_gb: float) -> str:
    volume, price = fmt(stands.leaving.value, "bytes", 3), fmt(usd_per_gb, "usd_per_gb")
    return f"{stands.leaving.name}, {volume}, at {price}"


def _trip(one: Trip) -> Row:
    name = f"round trip {one.one.name} to {one.other.name}"
    if one.there_and_back is None:
        return name, None, f"{UNKNOWN}: nobody says where both are"
    return (
        name,
        Quantity(one.there_and_back.value, "s"),
        f"{fmt(one.distance_m, 'm', 3)}{_span(one.there_and_back)}",
    )


def _span(figure: Breakdown) -> str:
    if figure.band is None:
        return ""
    return (
        f", {fmt(figure.band.low, 's', 3)} to {fmt(figure.band.high, 's', 3)} of eight in ten pairs of cities"
    )


def _stands_results(stands: Stands) -> dict[str, Cell]:
    found: dict[str, Cell] = {"num_regions": stands.num_regions}
    hours = [one.hour.value for one in stands.stands if one.hour is not None]
    if hours:
        found |= {"lowest_region_usd_per_hour": min(hours), "highest_region_usd_per_hour": max(hours)}
    dearest = max((one.egress.value for one in stands.stands if one.egress is not None), default=None)
    if dearest is not None:
        found["egress_usd"] = dearest
    if stands.farthest is not None:
        found["round_trip_s"] = stands.farthest.value
    return found


def _stands_note(stands: Stands) -> str:
    shown, num = len(stands.stands), stands.num_regions
    left = "" if shown == num else f"; {shown} of {counted(num, 'region')} are listed"
    return f"round trips: light in fibre on 1.6 times the great circle, before any queue{left}"


STANDS = Words(_stands, _stands_results, _stands_note)
