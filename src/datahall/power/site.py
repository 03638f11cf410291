"""From chips to a site: servers, network and storage, and what the building adds to them.

    IT   = servers + network + storage share · servers
    site = IT · PUE = IT + electrical losses + cooling

Provisioned is what the nameplates say, or the parts of servers at their limits where those take more: it is what has
to be built and connected; drawn is what a job takes of it.
"""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.breakdown import (
    Breakdown,
    again,
    assumed,
    derived,
    difference,
    fact,
    given,
    minimum,
    product,
    total,
)
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.server import Server
from datahall.catalog.fact import Fact
from datahall.cluster.cluster import Cluster, stands_on_torus
from datahall.fabric.design.asked import design_for
from datahall.fabric.design.bill import bill
from datahall.fabric.design.parts import usual_server
from datahall.power.activity import IDLE
from datahall.power.chip import chip_power, power_limit_w
from datahall.power.server import server_power, server_power_w
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.operations.site import Site
from datahall.scenario.usual import USUAL_NETWORK

BOUGHT = ("server", "rack")  # forms of what a site is made of; a cluster is made of them


class Building(msgspec.Struct, frozen=True, kw_only=True):
    """What a site adds to its servers, as leaves of figures."""

    pue: Breakdown
    electrical: Breakdown  # losses over IT power
    cooling: Breakdown  # over IT power
    storage: Breakdown  # over the power of the servers


class Machines(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of a site and the network between them."""

    chip: Chip
    server: Server
    num_servers: int
    num_chips: int
    network: Breakdown

    @property
    def has_nameplate(self) -> bool:
        """Whether it is published what a server may draw."""
        return "power_limit_w" in self.server.facts

    @property
    def num_host_chips(self) -> int:
        """Chips behind one host: four in the tray of an NVL72."""
        return self.server.num_host_chips

    @property
    def num_host_nics(self) -> int:
        """NICs of one host: four in such a tray; one for every chip where nobody published them."""
        return round(self.server.num_nics / max(1, self.server.num_hosts)) or self.num_host_chips

    @property
    def num_spare_chips(self) -> int:
        """Chips of its servers that nobody asked for: servers are bought whole, and so they idle."""
        return self.num_servers * self.server.num_chips - self.num_chips

    @property
    def num_nodes(self) -> int:
        """Hosts."""
        return -(-self.num_chips // self.num_host_chips)


def building_of(asked: Site, catalog: Catalog) -> Building:
    """The building that somebody asks for; a PUE that is said stands over the building's."""
    home = catalog.facility(asked.facility)
    if asked.pue_ratio is None:
        pue = _ranged(home.facts["pue_ratio"])
    else:
        pue = given("PUE", asked.pue_ratio, "ratio", field="pue")
    one = derived("the IT itself", 1.0, "ratio")
    known = home.facts["electrical_fraction"]
    most = fact(known.label, known.value, "ratio", known.source, note=known.note)
    over = difference("what the building adds", pue, one)
    electrical = minimum("electrical losses over IT", (most, over))
    return Building(
        pue=pue,
        electrical=electrical,
        cooling=difference("cooling over IT", pue, one, electrical),
        storage=given("storage over servers", asked.storage_share_fraction, "ratio", field="storage_share"),
    )


def machines_of(cluster: Cluster, catalog: Catalog, num_chips: int) -> Machines:
    """The servers that so many chips are sold in, and the network that joins them: the one asked for, or a fat tree."""
    server = usual_server(catalog, cluster.chip)
    if cluster.design is not None and cluster.design.parts.server.form in BOUGHT:
        server = cluster.design.parts.server
    return Machines(
        chip=cluster.chip,
        server=server,
        num_servers=-(-num_chips // server.num_chips),
        num_chips=num_chips,
        network=_network(cluster, catalog, num_chips),
    )


def lone_machines(chip: Chip, catalog: Catalog, num_chips: int) -> Machines:
    """The same of chips that no network joins, or none that is counted."""
    server = usual_server(catalog, chip)
    none = assumed("network power", 0.0, "w", "no work crosses it")
    num_servers = -(-num_chips // server.num_chips)
    return Machines(chip=chip, server=server, num_servers=num_servers, num_chips=num_chips, network=none)


def provisioned(machines: Machines, building: Building) -> Breakdown:
    """What a site is built for [W]: the nameplates of whole servers, or their parts at their limits.

    The parts stand where they take more than the nameplate, and where nobody published one.
    """
    known = machines.server.facts.get("power_limit_w")
    limit = derived("limit of a chip", power_limit_w(machines.chip), "w")
    hosts = derived("hosts of a server", machines.server.num_chips / machines.num_host_chips, "count")
    each = product("a server with its parts at their limits", (hosts, _host(machines, limit)), "w")
    if known is not None and known.value >= each.value:
        each = _ranged(known)
    num = derived(f"number of {machines.server.title}", machines.num_servers, "count")
    servers = product("servers", (num, each), "w")
    return _site("site power, provisioned", servers, machines.network, building)


def drawn(machines: Machines, building: Building, chip: Breakdown, num_idle: int = 0) -> Breakdown:
    """What a site draws whose chips take so much each in the mean, some of them nothing but their idle power [W].

    Chips of its servers that nobody asked for idle too: it is the same machines that are provisioned.
    """
    idle_chips = num_idle + machines.num_spare_chips
    busy = product(
        "servers at work",
        (
            derived("hosts", (machines.num_chips - num_idle) / machines.num_host_chips, "count"),
            _host(machines, chip),
        ),
        "w",
    )
    servers = busy.named("servers")
    if idle_chips:
        idle = product(
            "servers without work",
            (
                derived("idle hosts", idle_chips / machines.num_host_chips, "count"),
                _host(machines, chip_power(machines.chip, IDLE, "an idle chip")),
            ),
            "w",
        )
        servers = total("servers", (busy, idle))
    return _site("site power, drawn", servers, machines.network, building)


def wall_w(machines: Machines, chip_w: float) -> float:
    """A chip's share of what its host draws from the wall [W]."""
    num = machines.num_host_chips
    return server_power_w(machines.chip, chip_w, num, num_nics=machines.num_host_nics) / num


def _host(machines: Machines, chip: Breakdown) -> Breakdown:
    return server_power(machines.chip, chip, machines.num_host_chips, num_nics=machines.num_host_nics)


def it_of(site: Breakdown) -> Breakdown:
    """Of a site, what its building feeds and cools."""
    return site.parts[0]


def servers_of(site: Breakdown) -> Breakdown:
    """Of which its servers."""
    return it_of(site).parts[0]


def parts_of(site: Breakdown) -> tuple[Breakdown, ...]:
    """What adds up to a site: the parts of its IT, and what the building adds to them."""
    it, *around = site.parts
    return (*it.parts, *around)


def _site(name: str, servers: Breakdown, network: Breakdown, building: Building) -> Breakdown:
    storage = product("storage", (building.storage, servers), "w")
    it = total("IT", (servers, network.named("network"), storage))
    losses = product("electrical losses", (building.electrical, again(it)), "w")
    cooling = product("cooling", (building.cooling, again(it)), "w")
    return total(name, (it, losses, cooling))


def _network(cluster: Cluster, catalog: Catalog, num_chips: int) -> Breakdown:
    inside = assumed("network power", 0.0, "w", "its links belong to the machines they stand in")
    if num_chips <= cluster.num_domain:
        return inside
    if cluster.design is not None:
        return bill(cluster.design, catalog).power
    if stands_on_torus(cluster.chip) or not cluster.system.nic_bytes_per_s:
        return inside
    rate = cluster.system.nic_bytes_per_s
    asked = FabricDesign(
        topology=USUAL_NETWORK, chip=cluster.chip.name, chips=num_chips, nic_bytes_per_s=rate
    )
    made = design_for(asked, catalog, num_chips=num_chips, least_domains=1)
    return bill(made, catalog).power


def _ranged(known: Fact) -> Breakdown:
    leaf = fact(known.label, known.value, known.unit, known.source, note=known.note)
    if known.low is None or known.high is None or not isfinite(known.value):
        return leaf
    return leaf.with_band(known.low / known.value, known.high / known.value, "what sources that differ print")
