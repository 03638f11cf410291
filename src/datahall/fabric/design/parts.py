"""Which catalogue parts a fabric is made of: the machine of a chip, its ports, the switch and the cables."""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.cable import Cable
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.link import Link
from datahall.catalog.entries.server import Server
from datahall.catalog.entries.switch import Switch
from datahall.errors import ScenarioError, UnsupportedError, option
from datahall.fabric.topology.graph import Wire

FIBRE_S_PER_M = 5e-9  # light in glass: 3e8 m/s over an index of 1.47
TRUNK_M = 30.0  # an ordinary run between two tiers of one hall


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
    def access(self) -> Wire:
        """A chip's link into the network; two of them and one switch take the port's whole latency."""
        assert self.port is not None
        return Wire(self.port_bytes_per_s, _known(self.port.latency_s) / 2)

    @property
    def trunk_latency_s(self) -> float:
        """A link between switches: the switch it leaves and the fibre [s]."""
        return (_known(self.switch.latency_s) if self.switch else 0.0) + FIBRE_S_PER_M * TRUNK_M

    @property
    def domain_wire(self) -> Wire:
        """A chip's links into its scale-up domain, all lanes together, one way."""
        latency = _known(self.scale_up.latency_s) / 2 if self.scale_up else 0.0
        return Wire(self.chip.scale_up_bytes_per_s, latency)


def _known(value: float) -> float:
    return value if isfinite(value) else 0.0


def machine(catalog: Catalog, chip: str = "", server: str = "") -> tuple[Chip, Server]:
    """A chip and the machine it is sold in; a server may be named, else the first with that chip is taken."""
    if server:
        found = catalog.server(server)
        return catalog.chip(found.chip), found
    wanted = catalog.chip(chip)
    homes = [
        one for one in catalog.servers() if one.chip == wanted.name and one.form in {"server", "rack", "pod"}
    ]
    if not homes:
        raise UnsupportedError(
            f"the catalogue has no server of {wanted.name}, so its ports are unknown",
            field="chip",
            hint=f"name one with {option('server')}, or add [server.NAME] to your catalogue",
        )
    return wanted, max(homes, key=lambda one: (one.num_nics > 0, one.form != "pod"))


def network_parts(
    catalog: Catalog,
    chip: Chip,
    server: Server,
    *,
    switch: str = "",
    radix: int | None = None,
    nic_bytes_per_s: float | None = None,
    domain: int | None = None,
) -> Parts:
    """The port of each chip, and the switch for it: as named, else one of its speed and network."""
    if not server.nic_link or not server.num_nics or not isfinite(server.nic_bytes_per_s):
        raise UnsupportedError(
            f"{server.title} has no network ports in the catalogue",
            field="chip",
            hint="it can be a torus or a TPU pod; a switched network needs a server with NICs",
        )
    port = catalog.link(server.nic_link)
    speed = nic_bytes_per_s or server.network_bytes_per_s_per_chip
    box = catalog.switch(switch) if switch else _switch_for(catalog, port, speed)
    ports = radix if radix is not None else box.radix(speed)
    if ports < 2:
        raise ScenarioError(
            f"{box.title} has no ports of {speed * 8 / 1e9:g} Gb/s",
            field="switch",
            hint=f"known: {_fast_enough(catalog, speed)}",
        )
    return Parts(
        chip=chip,
        server=server,
        port=port,
        port_bytes_per_s=speed,
        scale_up=catalog.link(server.scale_up_link) if server.scale_up_link else None,
        switch=box,
        radix=ports,
        domain=domain or 0,
    )


def _switch_for(catalog: Catalog, port: Link, speed: float) -> Switch:
    network = "infiniband" if port.name.startswith("infiniband") else "ethernet"
    able = [box for box in catalog.switches() if box.network == network and box.radix(speed) >= 2]
    if not able:
        raise UnsupportedError(
            f"the catalogue has no {network} switch with ports of {speed * 8 / 1e9:g} Gb/s",
            field="switch",
            hint=f"name one with {option('switch')}: {_fast_enough(catalog, speed) or 'none is fast enough'}",
        )
    return min(able, key=lambda box: box.port_bytes_per_s != speed)


def _fast_enough(catalog: Catalog, speed: float) -> str:
    return ", ".join(box.name for box in catalog.switches() if box.radix(speed) >= 2)


def cable_for(catalog: Catalog, medium: str, speed: float) -> Cable:
    """The slowest cable of a medium that carries `speed`, one way."""
    able = [
        one
        for one in catalog.cables()
        if one.medium == medium
        and one.bytes_per_s >= speed * 0.999
        and not one.name.startswith(("ici", "long"))
    ]
    if not able:
        raise UnsupportedError(
            f"the catalogue has no {medium} cable for {speed * 8 / 1e9:g} Gb/s",
            hint="add [cable.NAME] to your catalogue",
        )
    return min(able, key=lambda one: one.bytes_per_s)
