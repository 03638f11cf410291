"""Which catalogue parts a fabric is made of: the machine of a chip, its ports, the switch and the cables."""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.network.cable import Cable
from datahall.catalog.entries.network.link import Link
from datahall.catalog.entries.network.switch import Switch
from datahall.catalog.entries.server import Server
from datahall.errors import ScenarioError, UnsupportedError, option
from datahall.fabric.design.topologies import topology_of_parts
from datahall.scenario.sections.fabric import FabricDesign
from datahall.units import fmt

FIBRE_S_PER_M = 5e-9  # light in glass: 3e8 m/s over an index of 1.47
TRUNK_M = 30.0  # an ordinary run between two tiers of one hall
USUAL_AXES = 3  # of a torus, where nobody says how many a chip's links are for
PCIE_SERVER = 8  # cards in a server where the catalogue has none for them


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What stands behind the wires of a fabric; None where the fabric has no such part."""

    chip: Chip
    server: Server
    port: Link | None = None  # of a chip into the network
    port_bytes_per_s: float = 0.0  # a chip's share of its server's ports, one way
    scale_up: Link | None = None
    switch: Switch | None = None
    radix: int = 0
    domain: int = 0  # chips of a scale-up domain; 0: the server's

    @property
    def num_domain(self) -> int:
        """Chips that reach each other without the network."""
        return self.domain or self.server.num_scale_up_domain

    @property
    def num_axes(self) -> int:
        """Axes of a torus that the chip's links are for."""
        return (self.scale_up.num_torus_axes if self.scale_up is not None else 0) or USUAL_AXES

    @property
    def access_latency_s(self) -> float:
        """A chip's link into the network; two of them and one switch take the port's whole latency [s]."""
        return _known(self.port.latency_s) / 2 if self.port else 0.0

    @property
    def trunk_bytes_per_s(self) -> float:
        """A port of the switch, split as those of the chips are, one way: a slower NIC leaves it as fast as it is.

        A switch of other ports than the catalogue's has those of the NIC.
        """
        box, speed = self.switch, self.port_bytes_per_s
        if box is None or self.radix != box.radix(speed):
            return speed
        return box.port_bytes_per_s * box.num_ports / self.radix

    @property
    def trunk_latency_s(self) -> float:
        """A link between switches: the switch it leaves and the fibre [s]."""
        return (_known(self.switch.latency_s) if self.switch else 0.0) + FIBRE_S_PER_M * TRUNK_M

    @property
    def domain_latency_s(self) -> float:
        """A chip's link into its scale-up domain [s]."""
        return _known(self.scale_up.latency_s) / 2 if self.scale_up else 0.0


def _known(value: float) -> float:
    return value if isfinite(value) else 0.0


def machine(catalog: Catalog, chip: str = "", server: str = "") -> tuple[Chip, Server]:
    """A chip and the machine it is sold in; a server of it may be named, else the first with that chip is taken."""
    if server:
        found = catalog.server(server)
        if chip and catalog.chip(chip).name != found.chip:
            raise ScenarioError(
                f"{found.title} has {found.chip}, not {catalog.chip(chip).name}",
                field="server",
                hint=f"{option('chip', found.chip)}, or leave {option('server')} out",
            )
        return catalog.chip(found.chip), found
    wanted = catalog.chip(chip)
    return wanted, usual_server(catalog, wanted)


def usual_server(catalog: Catalog, chip: Chip) -> Server:
    """The first machine that a chip is sold in, or a bare scale-up domain of which only the chip is known."""
    homes = [
        one for one in catalog.servers() if one.chip == chip.name and one.form in {"server", "rack", "pod"}
    ]
    if homes:
        return max(homes, key=lambda one: (one.num_nics > 0, one.form != "pod"))
    domain = max(1, chip.num_scale_up_domain)
    return Server(
        name="",
        title=f"a scale-up domain of {chip.title}",
        form="server",
        chip=chip.name,
        num_chips=domain,
        num_scale_up_domain=domain,
        scale_up_link=chip.scale_up_link,
    )


def usual_domain(catalog: Catalog, chip: Chip, server: Server, *, named: bool = False) -> int:
    """Chips that reach each other without the network: a scale-up domain, or the cards that share a server's PCIe."""
    size = max(1, server.num_scale_up_domain if named else chip.num_scale_up_domain)
    wire = catalog.scale_up_of(chip)
    if size > 1 or wire is None or wire.wiring != "host":
        return size
    return server.num_chips if server.name else PCIE_SERVER


def usual_nic_bytes_per_s(chip: Chip, server: Server) -> float:
    """A chip's share of the network as it is sold, one way: its own fact, or that of its server; 0 where unknown."""
    rates = (chip.nic_bytes_per_s, server.network_bytes_per_s_per_chip)
    return next((rate for rate in rates if isfinite(rate) and rate > 0), 0.0)


def usual_port(catalog: Catalog, chip: Chip, server: Server) -> Link:
    """The port of a chip: of its server, else an InfiniBand port that carries its share of the network."""
    if server.nic_link:
        return catalog.link(server.nic_link)
    ports = sorted(
        (link for link in catalog.links() if link.technology == "infiniband"),
        key=lambda link: link.bytes_per_s,
    )
    rate = usual_nic_bytes_per_s(chip, server)
    return next((link for link in ports if link.bytes_per_s >= rate), ports[-1])


def parts_of(asked: FabricDesign, catalog: Catalog) -> Parts:
    """The parts of a topology, refused where they cannot make it, before anything is laid."""
    kind = topology_of_parts(asked.topology)
    chip, home = machine(catalog, asked.chip or ("" if asked.server else kind.chip), asked.server)
    if kind.kind == "direct":
        return Parts(chip=chip, server=home, scale_up=catalog.scale_up_of(home))
    parts = network_parts(asked, catalog, chip, home)
    size = kind.domain or parts.num_domain
    if parts.num_domain != size:
        said = "server" if asked.server else "chip"
        raise ScenarioError(
            f"{parts.server.title} has scale-up domains of {parts.num_domain}, not {size}",
            field=said,
            hint=f"leave {option(said)} out, or a chip of such a machine: {option('chip', kind.chip)}",
        )
    return parts


def network_parts(asked: FabricDesign, catalog: Catalog, chip: Chip, server: Server) -> Parts:
    """The port of each chip, and the switch for it: as asked for, else one of its speed and network.

    Where no server was named, domain and port are what the chip is said to have wherever it stands.
    """
    named = bool(asked.server)
    usual = server.network_bytes_per_s_per_chip if named else usual_nic_bytes_per_s(chip, server)
    speed = asked.nic_bytes_per_s or usual
    if not speed > 0:
        raise UnsupportedError(
            f"nobody published what network {server.title if named else chip.title} has",
            field="nic",
            hint=f"say it, e.g. {option('nic', '400 Gb/s')}",
        )
    size = asked.domain or usual_domain(catalog, chip, server, named=named)
    if size > 1 and not chip.scale_up_bytes_per_s > 0:
        raise UnsupportedError(
            f"nobody published a scale-up bandwidth for {chip.name}", field="chip", hint="pick another chip"
        )
    port = usual_port(catalog, chip, server)
    box = catalog.switch(asked.switch) if asked.switch else _switch_for(catalog, port, speed)
    ports = asked.radix if asked.radix is not None else box.radix(speed)
    if min(ports, box.radix(speed)) < 2:
        raise ScenarioError(
            f"{box.title} has no ports of {speed * 8 / 1e9:g} Gb/s",
            field="switch",
            hint=_port_speeds(catalog),
        )
    return Parts(
        chip=chip,
        server=server,
        port=port,
        port_bytes_per_s=speed,
        scale_up=catalog.scale_up_of(server),
        switch=box,
        radix=ports,
        domain=size,
    )


def port_note(parts: Parts) -> tuple[str, ...]:
    """Where a chip's port is not that of a server of the catalogue: what is assumed instead."""
    port, server = parts.port_bytes_per_s, parts.server.network_bytes_per_s_per_chip
    if isfinite(server) and abs(server / port - 1.0) < 1e-9:
        return ()
    other = f"; {parts.server.title} has {fmt(server, 'bytes_per_s', 3)}" if isfinite(server) else ""
    return (
        f"the network of a {parts.chip.title} is taken to be {fmt(port, 'bytes_per_s', 3)} one way{other}",
    )


def _switch_for(catalog: Catalog, port: Link, speed: float) -> Switch:
    network = "infiniband" if port.technology == "infiniband" else "ethernet"
    able = [box for box in catalog.switches() if box.network == network and box.radix(speed) >= 2]
    if not able:
        raise UnsupportedError(
            f"the catalogue has no {network} switch with ports of {speed * 8 / 1e9:g} Gb/s",
            field="nic",
            hint=_port_speeds(catalog),
        )
    return min(able, key=lambda box: box.port_bytes_per_s != speed)


def _port_speeds(catalog: Catalog) -> str:
    """How fast the ports of the switches are that packets go through."""
    boxes = [box for box in catalog.switches() if box.network in {"infiniband", "ethernet"}]
    fastest = sorted(boxes, key=lambda box: box.port_bytes_per_s)
    known = ", ".join(f"{box.name} {box.port_bytes_per_s * 8 / 1e9:g} Gb/s" for box in fastest)
    return f"ports of the catalogue's switches carry at most: {known}"


def cable_for(catalog: Catalog, medium: str, speed: float) -> Cable:
    """The slowest cable of a medium that carries `speed`, one way."""
    able = [
        one
        for one in catalog.cables()
        if one.medium == medium and one.bytes_per_s >= speed * 0.999 and one.joins == "switches"
    ]
    if not able:
        raise UnsupportedError(
            f"the catalogue has no {medium} cable for {speed * 8 / 1e9:g} Gb/s",
            hint="add [cable.NAME] to your catalogue",
        )
    return min(able, key=lambda one: one.bytes_per_s)
