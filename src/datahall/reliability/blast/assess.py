"""What failures take of a whole fabric: parts added up, spares it needs, and how long a job of all chips runs."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log
from typing import NamedTuple

from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.catalog.entries.failures import Component
from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.fabric.design.bill import has_circuit_switches
from datahall.fabric.design.design import Design
from datahall.fabric.topology.grids.tpu_pod import CUBE_CHIPS
from datahall.reliability.blast.part import Part, costliest, each_once, lost_by, lost_fraction, no_more_than
from datahall.reliability.blast.radius import blast_parts, is_beyond_host, rates_of, stops_all, without_row
from datahall.reliability.blast.rates import Rates
from datahall.reliability.nodes.availability import Slice, slice_of
from datahall.reliability.nodes.spares import Spares, node_availability, nodes_away, spares_for
from datahall.reliability.process import Cause, FailureProcess, lemon_share, mttf_s
from datahall.reliability.survival import FEWER
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.units import DAY_S, HOUR_S, short

HALF = log(2.0)  # outages of a chip at once, in the mean, that leave it there half of the time
SIZES = (64, 256, 1024, 4096, 16_384, 65_536, 131_072)  # chips of a job, for a curve


class Assessed(NamedTuple):
    """A fabric and what failures take of it."""

    made: Design
    rates: Rates
    parts: tuple[Part, ...]
    lost: Breakdown  # chip-hours in a month
    lost_fraction: float  # of all chip-hours
    mttf_s: float  # of a job on every chip
    spares: Spares
    slices: tuple[Slice, ...]  # of a pod whose cubes optical switches join
    without_row: tuple[Cause, ...]  # that blame a part which is no row

    @property
    def process(self) -> FailureProcess:
        """All the ways in which its nodes fail."""
        return self.rates.process

    @property
    def is_stated(self) -> bool:
        """Whether somebody stated the rate of nodes."""
        return self.rates.stated

    @property
    def costliest(self) -> Part:
        """The part that costs the most chip-hours."""
        return costliest(self.parts)

    @property
    def widest(self) -> Part:
        """The part that takes the most chips at once; of those that take as many, the one that fails most often."""
        return max(self.parts, key=lambda part: (part.num_lost, part.failures_per_day))

    @property
    def overlap_fraction(self) -> float:
        """Of the chip-hours that outages take, each by itself, what several of them take at once."""
        return 1.0 - self.costliest.alone_fraction

    @property
    def stops_all(self) -> bool:
        """Whether any failure of a node stops every chip, those of other nodes too."""
        return stops_all(self.made) and self.process.num_nodes > 1

    @property
    def leaves_out_domain_links(self) -> bool:
        """Whether chips of several hosts are wired to each other, by links whose failures nobody published."""
        inside, made = self.made.parts.scale_up, self.made
        wired = inside is not None and inside.wiring != "switched"
        return wired and is_beyond_host(made) and not stops_all(made) and not has_circuit_switches(made)

    @property
    def has_counted_parts(self) -> bool:
        """Whether there are parts whose failures somebody counted by themselves, such as cables and switches."""
        return any(part.rate.origin == "fact" for part in self.parts)

    @property
    def is_minutes(self) -> bool:
        """Whether a job on every chip does not run an hour without a failure."""
        return self.mttf_s < HOUR_S

    @property
    def spare_fraction(self) -> float:
        """Spares over nodes."""
        return self.spares.num / self.process.num_nodes

    @property
    def lemon_failures_fraction(self) -> float:
        """Share of failures that the few nodes have which always fail."""
        return lemon_share(self.process)

    @property
    def without_part_fraction(self) -> float:
        """Share of interruptions that no part is to blame for: software, and what nobody explained."""
        return self._share(cause for one in self.blameless for cause in self.rates.blamed(one.name))

    @property
    def blameless(self) -> tuple[Component, ...]:
        """What causes blame that takes no part."""
        those = self.rates.catalog.components()
        return tuple(one for one in those if one.takes == "nothing" and self.rates.blamed(one.name))

    @property
    def without_row_fraction(self) -> float:
        """Share of interruptions by parts of a network that stand in no row."""
        return self._share(self.without_row)

    def _share(self, causes: Iterable[Cause]) -> float:
        return sum(one.rate_per_node_day for one in causes) / self.process.rate_per_node_day


def assess(made: Design, asked: FailureRates, catalog: Catalog) -> Assessed:
    """Add up what failures take of a fabric."""
    alone, rates = blast_parts(made, asked, catalog), rates_of(made, asked, catalog)
    _check_keeps_up(alone, rates.process, made.counts.num_hosts)
    parts = each_once(alone, made.counts.num_hosts)
    lost = no_more_than(lost_by(parts), made.counts.num_hosts)
    return Assessed(
        made=made,
        rates=rates,
        parts=parts,
        lost=lost,
        lost_fraction=lost_fraction(lost.value, made.counts.num_hosts),
        mttf_s=mttf_s(rates.process),
        spares=spares_for(rates.process, asked.enough_fraction),
        slices=_slices(made, rates.process, catalog),
        without_row=without_row(made, rates),
    )


def check_hosts(asked: FabricDesign, made: Design) -> None:
    """Refuse a domain that no whole servers make and no server is made of: what a server takes down is unclear."""
    domain, host = made.parts.num_domain, made.parts.server.num_host_chips
    if asked.domain is None or domain % host == 0 or host % domain == 0:
        return
    near = " or ".join(
        option("domain", size) for size in (domain // host * host, ceil(domain / host) * host) if size
    )
    raise ScenarioError(
        f"a domain of {domain} chips is no whole number of servers of {host}, nor is a server one of domains",
        field="domain",
        hint=f"{near}, or what divides {host}",
    )


def _check_keeps_up(parts: tuple[Part, ...], process: FailureProcess, num_chips: int) -> None:
    """Refuse a cluster that would have more nodes in repair than it has."""
    if nodes_away(process) < process.num_nodes:
        return
    worst, times = costliest(parts), lost_fraction(lost_by(parts).value, num_chips)
    shared = any(one.is_shock and one.name == worst.name for one in process.causes)
    rate = worst.rate.value if shared else process.rate_per_node_day
    said, who = ("shock_rate", f"a {worst.name}") if shared else ("failure_rate", "a node")
    raise InfeasibleError(
        f"{who} fails {short(rate)} times a day and is not repaired as fast: "
        f"{short(times)} times as many chips as there are would be out",
        field=said,
        hint=f"{option(said, short(rate * HALF / times, 2))} leaves half of them; of a node 2e-3 to 7e-3 are published",
    )


def _slices(made: Design, process: FailureProcess, catalog: Catalog) -> tuple[Slice, ...]:
    """Jobs on all cubes of a pod, on a few less and on half of them."""
    num_cubes = made.counts.num_hosts // CUBE_CHIPS
    if not made.kind.cubes or num_cubes < 2:
        return ()
    up, around = node_availability(process), catalog.reroute("optical-circuit").reroute_s
    repair_s = catalog.component("host").repair_mean_s
    sizes = sorted({num_cubes, max(1, int(num_cubes * FEWER)), num_cubes // 2}, reverse=True)
    return tuple(slice_of(n, num_cubes, up, reconfigure_s=around, repair_s=repair_s) for n in sizes)


class Curve(NamedTuple):
    """Mean time to failure over the size of a job."""

    num_chips: tuple[int, ...]
    mttf_s: tuple[float, ...]


def by_size(found: Assessed) -> Curve:
    """How long jobs of fewer and of more chips of the same nodes run: M = 1/(n·r + r_job)."""
    rate, job = found.process.rate_per_node_day / found.process.num_node_chips, found.process.job_rate_per_day
    sizes = sorted({*SIZES, found.made.counts.num_hosts})
    return Curve(tuple(sizes), tuple(DAY_S / (size * rate + job) for size in sizes))
