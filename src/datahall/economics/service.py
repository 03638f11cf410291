"""What a service costs a month by each way to have its chips, with what running them adds and with staff.

    month = replicas · chips · hour · hours of a month · (1 + Σ overheads) + staff

Staff is paid however many chips there are.  Overheads are orchestration, network, storage and monitoring; who owns has
bought network and storage with the hardware, so of theirs only two count.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec

from datahall.breakdown import Breakdown, derived, fact, given, product, total
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.economics.break_even import Dedicated
from datahall.economics.own import MONTH_HOURS
from datahall.economics.ways import Way
from datahall.fabric.design.parts import usual_server
from datahall.scenario.buying import BUYING_ROWS, OVERHEADS
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Overheads, Ownership


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas as a bill sees them."""

    chip: Chip
    num_replicas: int
    num_replica_chips: int
    replica_tokens: float  # of a month, that one serves with room for the peak

    @property
    def num_chips(self) -> int:
        return self.num_replicas * self.num_replica_chips


class Bought(msgspec.Struct, frozen=True, kw_only=True):
    """A service on chips that are had one way."""

    way: Way
    hour: Breakdown  # of a replica, before overheads
    own: Dedicated
    month: Breakdown  # of all replicas


def bought(scenario: Scenario, fleet: Fleet, way: Way) -> Bought:
    """What a service costs a month, on chips that are had a way which is priced."""
    assert way.hour is not None
    num = derived("chips of a replica", fleet.num_replica_chips, "count")
    hour = product("a replica for an hour", (num, way.hour), "usd_per_hour")
    month = _month(scenario, hour, BUYING_ROWS[way.buying].overheads)
    at_once = _of_a_server(scenario, fleet) if way.buying == "own" else 1
    paid = ceil(fleet.num_replicas / at_once) * at_once
    if paid > fleet.num_replicas:
        used = derived("share of the servers that is used", fleet.num_replicas / paid, "fraction")
        month = product("a replica of a full server for a month", (month, used), "usd")
    own = Dedicated(
        replica=month, replica_tokens=fleet.replica_tokens, fixed=_fixed(scenario), at_once=at_once
    )
    replicas = product(
        "all replicas for a month", (derived("replicas that are paid", paid, "count"), month), "usd"
    )
    name = f"a month, {way.name}"
    month = replicas.named(name) if own.fixed is None else total(name, (replicas, own.fixed))
    return Bought(way=way, hour=hour, own=own, month=month)


def _of_a_server(scenario: Scenario, fleet: Fleet) -> int:
    """Replicas that share a server, which is owned whole."""
    return max(1, usual_server(scenario.catalog, fleet.chip).num_chips // fleet.num_replica_chips)


def _month(scenario: Scenario, hour: Breakdown, overheads: Sequence[str]) -> Breakdown:
    """A month of a replica, with what running it adds."""
    over = with_overheads(scenario.one(Overheads), scenario.catalog, overheads)
    hours = derived("hours of a month", MONTH_HOURS, "count")
    return product("a replica for a month", (hour, hours, over), "usd")


def _fixed(scenario: Scenario) -> Breakdown | None:
    """Staff, which is paid however many chips there are."""
    staff = scenario.one(Ownership).staff_usd_per_month
    if not staff:
        return None
    return given("staff", staff, "usd", field="staff")


def with_overheads(asked: Overheads, catalog: Catalog, names: Sequence[str]) -> Breakdown:
    """What a bill is multiplied by where these overheads are of it."""
    said = {
        "orchestration": asked.orchestration_fraction,
        "network": asked.network_fraction,
        "storage": asked.storage_fraction,
        "monitoring": asked.monitoring_fraction,
    }
    leaves = [_leaf(name, said[name], catalog) for name in names]
    return total("with overheads", (derived("the bill", 1.0, "fraction"), *leaves))


def _leaf(name: str, said: float | None, catalog: Catalog) -> Breakdown:
    """A share as somebody says it, or as published with its range."""
    field = OVERHEADS[name]
    if said is not None:
        return given(name, said, "fraction", field=field)
    known = catalog.share(name).fact
    leaf = fact(name, known.value, "fraction", known.source, note=known.note).unless_said(field)
    assert known.low is not None
    assert known.high is not None
    return leaf.with_band(known.low / known.value, known.high / known.value, "range of the source")
