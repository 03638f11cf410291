"""The cluster as a scheduler sees it: nodes of so many chips, under leaves and in pods, and how narrow those are."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog import Catalog
from datahall.errors import ScenarioError, option
from datahall.fabric.design.asked import design_for
from datahall.fabric.design.chips import num_chips as chips_of
from datahall.fabric.design.chips import usual_chip
from datahall.fabric.design.design import Design
from datahall.fabric.design.parts import usual_server
from datahall.fabric.topology.cuts import width
from datahall.fabric.topology.graph import Fabric
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scheduling.loop.state import Floats, Ints


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Columns over nodes, or over scale-up domains of several nodes: a job of no more chips lies on one."""

    name: str
    chips: Ints  # of each node
    leaf: Ints
    pod: Ints
    ratios: Floats  # how much narrower than a port the network is: inside a leaf, across leaves, across pods
    num_hosts: int = 1  # in each of them: 18 trays in an NVL72
    fabric: Fabric | None = None  # None: as the chip is sold, with full bisection

    @property
    def unit(self) -> str:
        """What its nodes are called: domains, where several hosts are one."""
        return "node" if self.num_hosts == 1 else "domain"

    @property
    def num_nodes(self) -> int:
        return int(self.chips.size)

    @property
    def num_chips(self) -> int:
        return int(self.chips.sum())

    @property
    def node_chips(self) -> int:
        """Chips of the largest node."""
        return int(self.chips.max())

    @property
    def num_leaves(self) -> int:
        return int(np.unique(self.leaf).size)


def plain_machine(num_nodes: int, node_chips: int, *, name: str = "", leaf_nodes: int = 0) -> Machine:
    """Nodes that are all alike under leaves of so many nodes, or all under one, with full bisection.

    >>> plain_machine(6, 8, leaf_nodes=4).leaf.tolist()
    [0, 0, 0, 0, 1, 1]
    """
    numbers = np.arange(num_nodes)
    return Machine(
        name=name,
        chips=np.full(num_nodes, node_chips),
        leaf=numbers // (leaf_nodes or num_nodes),
        pod=np.zeros(num_nodes, np.int64),
        ratios=np.ones(3),
    )


def machine_from(asked: FabricDesign, catalog: Catalog, *, num_chips: int) -> Machine:
    """The cluster that somebody asks for; so many chips, or none, stand where the section names none."""
    if asked.topology:
        return _on_fabric(design_for(asked, catalog, num_chips=num_chips, least_domains=1))
    chip = usual_chip(asked, catalog)
    size, host = node_chips(asked, catalog), usual_server(catalog, chip).num_host_chips
    count = chips_of(asked, catalog, num_chips)
    if count < size:
        size = count
    if count % size:
        near = " or ".join(option("chips", one) for one in (count // size * size, (count // size + 1) * size))
        raise ScenarioError(
            f"{count:,} chips are no whole number of {'nodes' if size <= host else 'domains'} of {size}",
            field="chips",
            hint=f"{near}, or another {option('domain')}",
        )
    plain = plain_machine(count // size, size, name=f"{chip.title}, full bisection")
    return msgspec.structs.replace(plain, num_hosts=max(1, size // host))


def node_chips(asked: FabricDesign, catalog: Catalog) -> int:
    """Chips that a job has together, where no network is named: of a scale-up domain, or of a host of several."""
    chip = usual_chip(asked, catalog)
    return asked.domain or max(chip.num_scale_up_domain, usual_server(catalog, chip).num_host_chips)


def _on_fabric(made: Design) -> Machine:
    fabric = made.fabric
    if fabric.traits.grid:
        raise ScenarioError(
            f"{fabric.name}: jobs on slices of a torus are not modelled",
            field="on",
            hint=f"a switched network, e.g. {option('on', 'fat-tree')}, or none",
        )
    first = np.unique(fabric.domain, return_index=True)[1]  # the first chip of each scale-up domain
    tiers = sorted(
        (
            part
            for _, part in fabric.traits.parts_of(fabric)
            if part[: fabric.num_hosts].min() >= 0
            and 1 < np.unique(part[: fabric.num_hosts]).size < fabric.num_hosts
        ),
        key=lambda part: -int(np.unique(part[: fabric.num_hosts]).size),
    )
    numbers = [np.unique(part[first], return_inverse=True)[1].astype(np.int64) for part in tiers[:2]]
    one = np.zeros(first.size, np.int64)
    ratios = [_narrowed(made, part) for part in tiers[:2]]
    return Machine(
        name=fabric.name,
        chips=np.bincount(fabric.domain).astype(np.int64),
        leaf=numbers[0] if numbers else one,
        pod=numbers[1] if len(numbers) > 1 else one,
        ratios=np.maximum.accumulate(np.array([1.0, *ratios, 1.0, 1.0])[:3]),
        num_hosts=max(1, made.parts.num_domain // made.parts.server.num_host_chips),
        fabric=fabric,
    )


def _narrowed(made: Design, part: NDArray[np.int32]) -> float:
    """What the ports of the chips of a leaf or a pod carry over what leaves it, where it is narrowest; at least 1."""
    out, into = width(made.fabric, part)
    members = np.bincount(part[: made.fabric.num_hosts], minlength=out.size)
    leaves = np.minimum(out, into)
    filled = (members > 0) & (leaves > 0)
    return float(np.max(members[filled] * made.parts.port_bytes_per_s / leaves[filled], initial=1.0))
