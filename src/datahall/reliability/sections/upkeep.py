"""What failures leave of a service of many replicas: in closed form, with spare nodes enough.

A node that fails takes down the replicas on it, and they are back on a spare node after a restart R; one serves for M
in the mean until the next failure of a node of its own, so that

    lost capacity = R / (M + R),    P(Bin(nodes, M / (M + R)) ≥ nodes that are needed) ≥ the share that is asked

What takes a rack counts for each of its nodes, as if each failed by itself.
"""

from __future__ import annotations

from functools import cached_property
from math import ceil

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip
from datahall.fabric.design.parts import usual_server
from datahall.reliability.asked import process_asked
from datahall.reliability.nodes.availability import at_least
from datahall.reliability.nodes.spares import Spares, spares_for
from datahall.reliability.process import FailureProcess, mttf_s, scaled
from datahall.reliability.recovery import said_recovery
from datahall.reliability.sections.figures import upkeep_figures
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.scenario.sections.operations.run import Recovering

MOST_TIMES = 100_000  # replicas for each that is needed: where so many are not enough, none are


class Upkeep(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A service with its failures and restarts."""

    process: FailureProcess
    num_replicas: int  # all that there are
    num_spare: int = 0  # of these, beside those that are needed
    num_lost: int  # replicas that a failed node takes down
    back_s: float  # from a failure until they serve again
    rates: FailureRates  # as they were asked for
    num_server_chips: int = 0  # of a node as it is sold; 0: as many as each has that is there

    @property
    def mttf_s(self) -> float:
        """Between failures of any node."""
        return mttf_s(self.process)

    @property
    def num_spare_chips(self) -> int:
        """Chips of a spare node, which is whole also where few chips are needed."""
        return self.num_server_chips or self.process.num_node_chips

    @property
    def lost_fraction(self) -> float:
        """Share of the replicas that are being restarted, in the mean: R / (M + R)."""
        return self.back_s / (self.own_mttf_s + self.back_s)

    @property
    def own_mttf_s(self) -> float:
        """How long one replica serves until a node of its own fails, or a rack with that node [s]."""
        return self.mttf_s * self.num_groups / self.shared_ratio

    @property
    def num_groups(self) -> float:
        """Groups of replicas that a failed node takes down together."""
        return self.num_replicas / self.num_lost

    @property
    def shared_ratio(self) -> float:
        """How many of these a failure takes in the mean: more than one where a whole rack goes."""
        nodes = max(1.0, self.process.num_nodes / self.num_groups)
        rates = [(one.rate_per_node_day, one.num_nodes_lost) for one in self.process.causes]
        return sum(rate * max(1.0, lost / nodes) for rate, lost in rates) / sum(rate for rate, _ in rates)

    @cached_property
    def more_replicas(self) -> Spares | None:
        """Replicas beside those that there are, so that as many as are needed serve; None where no number is enough."""
        needed = ceil((self.num_replicas - self.num_spare) / self.num_lost)
        there, up = max(needed, self.num_replicas // self.num_lost), 1.0 - self.lost_fraction
        low, high, most = there - 1, there, MOST_TIMES * there
        while at_least(needed, high, up) < self.rates.enough_fraction:
            if high >= most:
                return None
            low, high = high, min(most, there + 2 * (high - there) + 1)
        while high - low > 1:
            middle = (low + high) // 2
            keeps = at_least(needed, middle, up) >= self.rates.enough_fraction
            low, high = (low, middle) if keeps else (middle, high)
        down = high * self.num_lost * self.lost_fraction
        return Spares((high - there) * self.num_lost, down, at_least(needed, high, up))

    @cached_property
    def spares(self) -> Spares:
        """Nodes to hold ready for those in repair: what is being restarted does not fail."""
        rate = self.process.rate_per_node_day * (1.0 - self.lost_fraction)
        causes = tuple(scaled(self.process.causes, rate))
        return spares_for(msgspec.structs.replace(self.process, causes=causes), self.rates.enough_fraction)

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return upkeep_figures(self)


def upkeep_of(
    scenario: Scenario,
    chip: Chip,
    num_replicas: int,
    replica_chips: int,
    load_s: float,
    *,
    num_spare: int,
) -> Upkeep:
    """A service whose replicas, some of them spare, take so long to load their weights."""
    rates, recovery = scenario.one(FailureRates), said_recovery(scenario.one(Recovering))
    process = process_asked(rates, chip, scenario.catalog, num_replicas * replica_chips)
    return Upkeep(
        process=process,
        num_replicas=num_replicas,
        num_spare=num_spare,
        num_lost=min(num_replicas, max(1, process.num_node_chips // replica_chips)),
        back_s=recovery.fixed_s + (0.0 if recovery.is_whole else load_s),
        rates=rates,
        num_server_chips=usual_server(scenario.catalog, chip).num_host_chips,
    )
