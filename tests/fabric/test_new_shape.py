"""A made-up topology: two switches with half of the chips on each, and a trunk between them.

It has its word, its shape and its row, as docs/how-to-add.md says; nothing else knows of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.cluster.collective import time_collective
from datahall.errors import InfeasibleError, ScenarioError
from datahall.fabric.design import topologies
from datahall.fabric.design.bill import bill
from datahall.fabric.design.design import Design
from datahall.fabric.design.lay import LAYING, Spec
from datahall.fabric.design.outline import outline
from datahall.fabric.design.tiers import UnneededTier
from datahall.fabric.design.topologies import BY_NAME, NETWORK, Topology
from datahall.fabric.flows.asked import job_of
from datahall.fabric.flows.closed_form import closed_form_s
from datahall.fabric.flows.failures import failed
from datahall.fabric.flows.jobs import Net, Routing, traffic
from datahall.fabric.flows.symmetry import simulate_folded
from datahall.fabric.routing.paths import hops, num_paths, route
from datahall.fabric.routing.pooling import pooled
from datahall.fabric.topology.cuts import cuts
from datahall.fabric.topology.graph import (
    ACCESS,
    FABRIC,
    Fabric,
    Floats,
    Ints,
    Longs,
    Paths,
    Shape,
    Wire,
    paths_of,
)
from datahall.fabric.topology.scale_up import with_scale_up
from datahall.reliability.survival import survivals
from datahall.scenario.sections.fabric import FabricDesign, FabricJob
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import TAPERED

CATALOG = Catalog(user=False)
CHIPS, DOMAIN, RATIO = 64, 8, 4
TRUNK = CHIPS // 2 // RATIO


class Barbell(Shape, frozen=True):
    """Links up from the chips, down to them, and both ways over each cable of the trunk."""

    num_hosts: int
    trunk: int

    def half(self, host: Ints) -> Ints:
        return host // (self.num_hosts // 2)

    def _apart(self, source: Ints, target: Ints) -> Ints:
        return (self.half(source) != self.half(target)).astype(np.int32)

    def num_paths(self, source: Ints, target: Ints) -> Longs:
        return np.where(self._apart(source, target), self.trunk, 1).astype(np.int64)

    def hops(self, source: Ints, target: Ints) -> Ints:
        return np.where(source == target, 0, 2 + self._apart(source, target)).astype(np.int32)

    def paths(self, source: Ints, target: Ints, pick: Longs) -> Paths:
        moves, apart = source != target, self._apart(source, target) > 0
        cable = 2 * self.num_hosts + self.half(source) * self.trunk + pick % self.trunk
        columns = (
            np.where(moves, source, -1), np.where(apart, cable, -1), np.where(moves, self.num_hosts + target, -1)
        )  # fmt: skip
        return paths_of([column.astype(np.int32) for column in columns])

    def diameter(self) -> int:
        return 3

    def mean_hops(self) -> float:
        return 2 + self.num_hosts / 2 / (self.num_hosts - 1)

    def bisection_links(self) -> float:
        return float(self.trunk)

    def most_paths(self) -> int:
        return self.trunk

    def parts_of(self, fabric: Fabric) -> Iterator[tuple[str, Ints]]:
        half = np.full(fabric.num_nodes, -1, np.int32)
        hosts = np.arange(self.num_hosts, dtype=np.int32)
        half[hosts] = self.half(hosts)
        half[self.num_hosts : self.num_hosts + 2] = (0, 1)
        yield "half", half

    def ways_out(self, fabric: Fabric, port_bytes_per_s: Floats) -> Floats:
        speed = fabric.link_bytes_per_s[2 * self.num_hosts :][: 2 * self.trunk].reshape(2, -1).sum(axis=1)
        return np.minimum(port_bytes_per_s, speed.min() / (self.num_hosts / 2))


def barbell(num_chips: int, wire: Wire, ratio: float) -> Fabric:
    shape = Barbell(num_chips, int(num_chips / 2 / ratio))
    hosts = np.arange(num_chips, dtype=np.int32)
    switch, trunk = num_chips + shape.half(hosts), np.full(shape.trunk, num_chips, np.int32)
    source = np.concatenate((hosts, switch, trunk, trunk + 1)).astype(np.int32)
    return Fabric(
        name="built", topology="built", num_hosts=num_chips, num_nodes=num_chips + 2,
        node_tier=np.repeat(np.array([0, 1], np.uint8), (num_chips, 2)),
        link_source=source,
        link_target=np.concatenate((switch, hosts, trunk + 1, trunk)).astype(np.int32),
        link_bytes_per_s=np.full(source.size, wire.bytes_per_s),
        link_latency_s=np.full(source.size, wire.latency_s),
        link_kind=np.repeat(np.array([ACCESS, FABRIC], np.uint8), (2 * num_chips, 2 * shape.trunk)),
        domain=hosts, shape=shape,
    )  # fmt: skip


def _lay(spec: Spec) -> Fabric:
    assert spec.scale_up is not None
    return with_scale_up(barbell(spec.num_chips, spec.wire, spec.asked.ratios[0]), spec.domain, spec.scale_up)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trunk stands over both halves, so there is one ratio to choose: two tiers, whatever the chips."""
    row = Topology("barbell", "switched", NETWORK, tiering=lambda _: 2, title="{tiers}-tier barbell")  # type: ignore[arg-type]
    monkeypatch.setattr(topologies, "TAPERED", (*TAPERED, "barbell"))
    monkeypatch.setitem(BY_NAME, "barbell", row)
    monkeypatch.setitem(LAYING, "barbell", _lay)


def asked(ratio: float = RATIO) -> FabricDesign:
    return FabricDesign(topology="barbell", chips=CHIPS, oversubscription=(ratio,))


@pytest.fixture
def made() -> Design:
    return cluster_from(asked(), CATALOG).design  # type: ignore[return-value]


def first_trunk(fabric: Fabric) -> int:
    return int(np.flatnonzero(fabric.link_kind == FABRIC)[0])


def test_it_is_laid_titled_and_drawn(made: Design) -> None:
    assert made.topology == made.fabric.topology == "barbell"
    assert made.fabric.name == f"1-tier barbell, {RATIO}:1"
    drawn = outline(made.fabric)
    assert [tier.num_nodes for tier in drawn.tiers] == [CHIPS // DOMAIN, CHIPS, 2]
    trunk = [bundle for bundle in drawn.bundles if bundle.low[0] == bundle.high[0]]
    assert [bundle.num_cables for bundle in trunk] == [TRUNK]


def test_it_is_cut_where_its_trunk_is(made: Design) -> None:
    (half,) = made.cuts
    assert (half.name, half.num_below) == ("half", CHIPS // 2)
    assert half.bytes_per_s == TRUNK * made.parts.port_bytes_per_s
    assert made.narrowest is not None
    assert made.narrowest.cut == half
    assert made.counts.full_bisection_fraction == pytest.approx(1 / RATIO)


def test_its_tiers_say_how_many_ratios_there_are() -> None:
    assert BY_NAME["barbell"].uses == (*NETWORK, "oversubscription", "tiers")
    with pytest.raises(UnneededTier, match="speaks of 3 tiers, and 64 chips make 2"):
        cluster_from(msgspec.structs.replace(asked(), oversubscription=(2.0, 2.0)), CATALOG)


def test_it_is_routed_as_a_search_would() -> None:
    flat = barbell(8, Wire(1e9), 2.0)
    bare = msgspec.structs.replace(flat, shape=None)
    here, there = (ends.ravel().astype(np.int32) for ends in np.indices((8, 8)))
    assert hops(flat, here, there).tolist() == hops(bare, here, there).tolist()
    assert num_paths(flat, here, there).tolist() == num_paths(bare, here, there).tolist()
    assert route(flat, here, there).hops.tolist() == route(bare, here, there).hops.tolist()


def test_it_is_billed_for_what_it_has(made: Design) -> None:
    found = bill(made, CATALOG)
    assert (found.num_switches, found.num_cables) == (2, CHIPS + TRUNK)
    assert found.price.value > bill(cluster_from(asked(8.0), CATALOG).design, CATALOG).price.value  # type: ignore[arg-type]


def test_what_fails_of_it_is_missed(made: Design) -> None:
    assert [one.part for one in survivals(made, CATALOG)] == ["NIC", "leaf switch", "server or rack of 8"]
    switch = next(one.blast for one in survivals(made, CATALOG) if one.part == "leaf switch")
    assert switch.num_cut_off == CHIPS  # one half has no switch, and the other nobody to send to
    out = Failure(links=(first_trunk(made.fabric),))
    (half,) = cuts(failed(made.fabric, out))
    assert half.bytes_per_s == (TRUNK - 1) * made.parts.port_bytes_per_s
    whole, after = (cluster_from(asked(), CATALOG, failures=some) for some in ((), (out,)))
    sent = [time_collective(one, "all-to-all", 1e9).choice.time_s for one in (whole, after)]
    assert sent[1] / sent[0] == pytest.approx(TRUNK / (TRUNK - 1))
    trunk = tuple(range(first_trunk(made.fabric), first_trunk(made.fabric) + TRUNK))
    with pytest.raises(InfeasibleError, match="cuts off 64 of 64 chips"):
        cluster_from(asked(), CATALOG, failures=(Failure(links=trunk),))
    with pytest.raises(ScenarioError, match="has no cubes"):
        failed(made.fabric, Failure(cubes=(0,)))


def test_what_is_simulated_on_it_agrees_with_its_closed_form(made: Design) -> None:
    net = Net(fabric=made.fabric, routing=Routing("spray"))
    job, _ = job_of(FabricJob(collective="all-to-all", size_bytes=1e9), 0, made.fabric)
    simulated = simulate_folded(traffic(net, (job,)).flows, pooled(net.pool, net.fabric.link_bytes_per_s))
    assert simulated.makespan_s == pytest.approx(closed_form_s(net, job), rel=0.1)
    crossing = CHIPS / 2 * 1e9 / 2  # half of what the chips of a half have is for the other
    assert simulated.makespan_s >= crossing / (TRUNK * made.parts.port_bytes_per_s)
