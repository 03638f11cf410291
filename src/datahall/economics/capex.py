"""What a chip costs with its share of everything around it: server, network, and what racks and storage add.

    all in = server + network + racks, storage, installation

The network is the bill of a fat tree of so many chips, counted part by part.  Where a price of everything is published,
what it leaves over server and network is the rest; where none is, the rest is left out and said to be.  So is the
server around a chip of which only the price alone is published: the sum is then a least price.  As of a day, what was
not published by then is no price.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import lru_cache

import msgspec

from datahall.breakdown import Breakdown, Source, derived, difference, fact, given, product, quotient, total
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.offer import Offer, age_days
from datahall.errors import UnsupportedError
from datahall.fabric.design.bill import Bill, fat_tree_bill
from datahall.fabric.design.parts import usual_server

ALL_IN, BARE, USED = "all-in", "capex", "used"
HALL_CHIPS = (
    131_072  # that one network is counted for; a larger one of as many tiers takes as much for each chip
)
SERVER_PART, NETWORK_PART, REST_PART = "server", "network", "racks, storage, installation"
CHIP_PART, AROUND_PART = "accelerator", "the server around the chip (chassis, CPUs, memory, NICs)"
PRICE, PRICE_OF_SOME = "price of a chip, all in", "price of a chip, as far as it is known"


class Capex(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a chip with its share of everything, and its accelerator alone."""

    price: Breakdown  # the sum of its parts
    server: Breakdown  # or the accelerator alone, where nobody published what is around it
    chip: Breakdown  # of the server, the accelerator
    date: str  # of the newest price in it
    missing: tuple[str, ...] = ()  # what it leaves out

    @property
    def is_least(self) -> bool:
        """Whether some of it is not priced, so that it costs more."""
        return bool(self.missing)

    @property
    def parts(self) -> tuple[Breakdown, ...]:
        """What the price is the sum of; nothing where it is one price."""
        return self.price.parts if self.price.operation == "sum" else ()

    def share_of(self, part: Breakdown) -> float:
        """What a part is of the price."""
        return part.value / self.price.value


def capex_of(
    chip: Chip,
    num_chips: int,
    catalog: Catalog,
    said_usd: float | None = None,
    day: datetime.date | None = None,
) -> Capex | None:
    """What so many chips cost each, as of a day or of now; None where nobody sells them."""
    share = _share(catalog)
    if said_usd is not None:
        price = given(PRICE, said_usd, "usd", field="capex")
        return Capex(price=price, server=price, chip=product(CHIP_PART, (share, price), "usd"), date="")
    wires = network_bill(chip, num_chips, catalog)
    found = _all_in(chip, wires, catalog, day) or _by_parts(chip, wires, num_chips, catalog, day)
    if found is None:
        return None
    price, server, dated, missing = found
    return Capex(
        price=price,
        server=server,
        chip=server if AROUND_PART in missing else product(CHIP_PART, (share, server), "usd"),
        date=dated,
        missing=missing,
    )


def bought_then(server: Breakdown, chip: Chip, num_chips: int, catalog: Catalog) -> Capex:
    """The same of servers whose price was published when they were bought."""
    wires = network_bill(chip, num_chips, catalog)
    parts = (server, *((_network(wires),) if wires is not None else ()))
    sources = server.citations()
    return Capex(
        price=total(PRICE_OF_SOME, parts),
        server=server,
        chip=product(CHIP_PART, (_share(catalog), server), "usd"),
        date=sources[0].date if sources else "",
        missing=(REST_PART,),
    )


def network_bill(chip: Chip, num_chips: int, catalog: Catalog) -> Bill | None:
    """The switches and cables of a fat tree of so many chips; None of one server, or where nobody sells the parts.

    More than `HALL_CHIPS` stand in halls of so many, and this is the bill of one of them.
    """
    return _network_bill(chip.name, min(num_chips, HALL_CHIPS), catalog)


@lru_cache(maxsize=256)  # asked for its price and for its watts, by every candidate of a plan
def _network_bill(name: str, num_chips: int, catalog: Catalog) -> Bill | None:
    chip = catalog.chip(name)
    server = usual_server(catalog, chip)
    if num_chips <= server.num_chips:
        return None
    try:
        return fat_tree_bill(chip, num_chips, catalog)
    except UnsupportedError:
        return None


def _network(wires: Bill) -> Breakdown:
    return quotient(
        NETWORK_PART, wires.price, derived("chips of the fabric", wires.num_chips, "count"), "usd"
    )


def _share(catalog: Catalog) -> Breakdown:
    known = catalog.share("accelerators-of-server").fact
    return fact("accelerator of a server", known.value, "fraction", known.source, note=known.note)


_Found = tuple[Breakdown, Breakdown, str, tuple[str, ...]]


def _all_in(chip: Chip, wires: Bill | None, catalog: Catalog, day: datetime.date | None) -> _Found | None:
    """From a price of everything, and one of the bare server where there is one."""
    whole = _newest(catalog, chip, day, lambda one: one.basis.endswith(ALL_IN))
    if whole is None:
        return None
    bare = _newest(
        catalog, chip, day, lambda one: one.basis.startswith(BARE) and not one.basis.endswith(ALL_IN)
    )
    if bare is None or wires is None:
        return _each(PRICE, whole), _each(SERVER_PART, whole), whole.date, ()
    server, network = _each(SERVER_PART, bare), _network(wires)
    rest = difference(REST_PART, _each("everything", whole), server, network)
    if rest.value < 0.0:
        return _each(PRICE, whole), server, whole.date, ()
    return total(PRICE, (server, network, rest)), server, whole.date, ()


def _by_parts(
    chip: Chip, wires: Bill | None, num_chips: int, catalog: Catalog, day: datetime.date | None
) -> _Found | None:
    """From the price of a server, or of the chip alone, with the network's."""
    server, dated, around = _server_price(chip, catalog, day)
    if server is None:
        return None
    parts = (server, *((_network(wires),) if wires is not None else ()))
    alone = wires is not None or num_chips <= usual_server(catalog, chip).num_chips
    missing = (*around, REST_PART) if alone else (*around, NETWORK_PART, REST_PART)
    return total(PRICE_OF_SOME, parts), server, dated, missing


def _server_price(
    chip: Chip, catalog: Catalog, day: datetime.date | None
) -> tuple[Breakdown | None, str, tuple[str, ...]]:
    """A chip's share of its server, or the chip alone; with its date, and what of the server it leaves out."""
    home = usual_server(catalog, chip)
    listed = home.facts.get("price_usd")
    if listed is not None and _is_known(listed.source.date, day):
        whole = fact(home.title, listed.value, "usd", listed.source, note=listed.note)
        each = quotient(SERVER_PART, whole, derived("chips of it", home.num_chips, "count"), "usd")
        return each, listed.source.date, ()
    sold = _newest(catalog, chip, day, lambda one: ALL_IN not in one.basis)
    if sold is None:
        return None, "", ()
    if sold.basis.startswith(BARE):
        return _each(SERVER_PART, sold), sold.date, ()
    return _each(CHIP_PART, sold), sold.date, (AROUND_PART,)


def _each(name: str, offer: Offer) -> Breakdown:
    source = Source(offer.source.title, offer.date, offer.source.kind)
    whole = fact(offer.gpu or offer.chip, offer.purchase_usd, "usd", source, note=offer.note)
    return quotient(name, whole, derived("chips in the price", offer.num_chips, "count"), "usd")


def _newest(
    catalog: Catalog, chip: Chip, day: datetime.date | None, wanted: Callable[[Offer], bool]
) -> Offer | None:
    """The newest price to buy that somebody wants and that was known on a day, unless it is of used ones."""
    sold = [
        offer
        for offer in catalog.offers(chip.name, "purchase")
        if offer.purchase_usd > 0.0
        and wanted(offer)
        and _is_known(offer.date, day)
        and USED not in offer.gpu
        and USED not in offer.note
    ]
    return max(sold, key=lambda one: (one.date, one.name), default=None)


def _is_known(date: str, day: datetime.date | None) -> bool:
    return day is None or not date or age_days(date, day) >= 0
