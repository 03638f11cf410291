"""One machine: chips, what stands behind each, what joins them inside a domain and across, as collectives see it.

`cluster_from` makes it of what somebody asked for: a chip as it is sold, with as much network as its ports carry; or a
topology with its narrow places, and what failures leave of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import msgspec

from datahall.catalog import Catalog, load
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.server import Server
from datahall.cluster.host import Host, host_of
from datahall.cluster.network import Network, network_of_design, part_of, port_leaf, scale_up_leaf
from datahall.errors import ScenarioError, option
from datahall.fabric.collectives.figure import Wires
from datahall.fabric.collectives.system import DEFAULT_VERSION, System, system_of
from datahall.fabric.design.asked import design_for
from datahall.fabric.design.chips import num_chips as chips_of
from datahall.fabric.design.chips import usual_chip
from datahall.fabric.design.design import Design
from datahall.fabric.design.parts import usual_port, usual_server
from datahall.fabric.design.tiers import UnneededTier
from datahall.fabric.flows.failures import part_there
from datahall.fabric.topology.grids.tpu_pod import own_slice
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """So many chips of one kind in scale-up domains joined by a network."""

    chip: Chip
    num_chips: int
    system: System
    wires: Wires  # its links, with where their rates are from
    num_host_chips: int  # behind one operating system: nodes, as failures and stragglers count them
    host: Host = Host()  # what stands behind each chip
    design: Design | None = None  # None: as the chip is sold, with full bisection

    @property
    def num_domain(self) -> int:
        """Chips that reach each other without the network."""
        return self.system.num_domain

    @property
    def num_domains(self) -> int:
        """Scale-up domains that the chips take; of TPUs, slices."""
        return -(-self.num_chips // self.num_domain)

    def ratios_there(self, ratios: tuple[float, ...]) -> tuple[float, ...]:
        """Those of some ratios that are of a tier below another: a machine of few chips may have no such tier."""
        tiers = self.design.fabric.num_tiers if self.design is not None else 0
        return ratios[: max(0, tiers - 1)]

    @property
    def num_spare(self) -> int:
        """Chips of those domains that take no part."""
        return self.num_domains * self.num_domain - self.num_chips


def cluster_of(
    chip: Chip,
    num_chips: int,
    *,
    num_domain: int = 0,
    nic_bytes_per_s: float = 0.0,
    fabric: str = "",
    servers: Iterable[Server] = (),
    torus: tuple[int, ...] = (),
    catalog: Catalog | None = None,
    version: tuple[int, int] = DEFAULT_VERSION,
    level: str | None = None,
) -> Cluster:
    """A cluster as the chip is sold: its usual domain, NIC and network unless told otherwise, and full bisection.

    `torus` are the sides of one slice where chips are wired to their neighbours; more chips are more slices.

    Host memory and drives are those of the first of `servers` that holds the chip.
    """
    known = catalog or load()
    num_chips = chips_of(FabricDesign(), known, num_chips)
    home = usual_server(known, chip)
    system = system_of(
        chip,
        num_domain=num_domain,
        nic_bytes_per_s=nic_bytes_per_s or None,
        fabric=fabric or usual_port(known, chip, home).technology,
        version=version,
        level=level,
        catalog=known,
    )
    if torus:
        system = msgspec.structs.replace(system, torus=torus, num_domain=prod(torus))
    rate = system.nic_bytes_per_s
    nic = port_leaf(chip, home, rate) if rate else None
    return Cluster(
        chip=chip,
        num_chips=num_chips,
        system=system,
        num_host_chips=home.num_host_chips,
        host=host_of(chip, servers),
        wires=Wires(scale_up_leaf(chip), nic),
    )


def stands_on_torus(chip: Chip) -> bool:
    """Whether a chip's neighbours are wired to it as it is sold: what a switched network under it would replace."""
    return bool(own_slice(chip.name, 1, chip.num_scale_up_domain))


def cluster_from(
    design: FabricDesign,
    catalog: Catalog,
    *,
    chip: str = "",
    num_chips: int = 0,
    least_domains: int = 1,
    failures: Sequence[Failure] = (),
    in_order: bool = False,
    if_there: bool = False,
    switched: bool = False,
    version: tuple[int, int] = DEFAULT_VERSION,
    level: str | None = None,
) -> Cluster:
    """The machine that somebody asks for; `chip` and `num_chips` stand where the design names none.

    Chips need not fill their scale-up domains: the fabric has whole ones, the cluster the chips that are asked about.

    Without a topology it is the chip's usual domain and NIC with full bisection; of a TPU the domain is a slice, whose
    torus joins its chips, unless `switched`: for what knows no torus.  With a topology (or a fabric that was
    built) collectives are bounded by what they cross in it, and `failures` make that narrower; what they cut off
    altogether is an `InfeasibleError`.  `in_order`: the chips fill the domains in order, and what failed of others is
    nobody's; else they may be any.  `if_there`: a failed part that a machine of this size has not is none of it.
    """
    if design.topology:
        try:
            made = design_for(design, catalog, chip=chip, num_chips=num_chips, least_domains=least_domains)
        except ScenarioError as error:
            if (
                error.field == "chips" and num_chips and not design.chips
            ):  # their number follows from what runs
                error.field, error.hint = "on", f"another topology; of chips, {error.hint}"
            raise
        count = design.chips or num_chips or made.counts.num_hosts
        ranks = count if in_order else 0
        if if_there:
            failures = [one for each in failures if (one := part_there(made.fabric, each)) is not None]
        network = network_of_design(
            made, failures, num_ranks=ranks, catalog=catalog, version=version, level=level
        )
        return _on(made, network, count, catalog)
    if failures:
        raise ScenarioError(
            "what fails depends on how the chips are wired",
            field="failure",
            hint=f"name a topology, e.g. {option('on', 'fat-tree')}",
        )
    part = catalog.chip(design.chip or chip or usual_chip(design, catalog).name)
    count, most = design.chips or num_chips, design.domain or part.num_scale_up_domain
    return cluster_of(
        part,
        count,
        num_domain=design.domain or 0,
        torus=() if switched else own_slice(part.name, count, most),
        nic_bytes_per_s=design.nic_bytes_per_s or 0.0,
        servers=catalog.servers(),
        catalog=catalog,
        version=version,
        level=level,
    )


def cluster_as_small(
    design: FabricDesign,
    catalog: Catalog,
    *,
    chip: str = "",
    num_chips: int,
    least_domains: int = 1,
    failures: Sequence[Failure] = (),
    if_there: bool = False,
    switched: bool = False,
) -> Cluster:
    """The machine of a number of chips that nobody said: a ratio of a tier that they do not need is none of it."""
    ratios = design.oversubscription
    for kept in range(len(ratios), -1, -1):
        try:
            return cluster_from(
                msgspec.structs.replace(design, oversubscription=ratios[:kept]), catalog, chip=chip,
                num_chips=num_chips, least_domains=least_domains, failures=failures, if_there=if_there,
                switched=switched,
            )  # fmt: skip
        except UnneededTier:
            if not kept:
                raise
    raise AssertionError(ratios)


def _on(made: Design, network: Network, num_chips: int, catalog: Catalog) -> Cluster:
    return Cluster(
        chip=made.parts.chip,
        num_chips=num_chips,
        system=part_of(network.system, made, num_chips),
        num_host_chips=made.parts.server.num_host_chips,
        host=host_of(made.parts.chip, catalog.servers()),
        design=made,
        wires=network.wires,
    )
