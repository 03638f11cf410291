"""What failures leave of a service of many replicas: in closed form, with spare nodes enough.

A node that fails takes down the replicas on it, and they are back on a spare node after a restart; those that are down
at some moment are then compound Poisson (M/G/∞), as nodes in repair are:

    λ = failures per second · restart,    lost capacity = replicas of a node · λ / replicas
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.failures import FailurePreset
from datahall.reliability.asked import preset_of, process_asked
from datahall.reliability.process import FailureProcess, mttf_s
from datahall.reliability.sections.figures import upkeep_figures
from datahall.reliability.spares import Spares, enough, spares_for
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.scenario.sections.operations.run import Recovering


class Upkeep(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A service with its failures and restarts."""

    process: FailureProcess
    preset: FailurePreset  # whose failure rates
    num_replicas: int
    num_lost: int  # replicas that a failed node takes down
    back_s: float  # from a failure until they serve again
    rates: FailureRates  # as they were asked for

    @property
    def mttf_s(self) -> float:
        """Between failures of any node."""
        return mttf_s(self.process)

    @property
    def num_node_chips(self) -> int:
        return self.process.num_node_chips

    @property
    def lost_fraction(self) -> float:
        """Share of the replicas that are being restarted, in the mean."""
        return min(1.0, self.num_lost * self._restarts / self.num_replicas)

    @property
    def _restarts(self) -> float:
        """Nodes whose replicas are being restarted, in the mean."""
        return self.back_s / self.mttf_s

    @cached_property
    def more_replicas(self) -> Spares:
        """Replicas beside those that are needed, so that as many as those serve."""
        return enough({self.num_lost: self._restarts}, self.rates.enough_fraction)

    @cached_property
    def spares(self) -> Spares:
        """Nodes to hold ready for those in repair."""
        return spares_for(self.process, self.rates.enough_fraction)

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return upkeep_figures(self)


def upkeep_of(scenario: Scenario, chip: Chip, num_replicas: int, replica_chips: int, load_s: float) -> Upkeep:
    """A service whose replicas take so long to load their weights."""
    rates, back = scenario.one(FailureRates), scenario.one(Recovering)
    process = process_asked(rates, chip, scenario.catalog, num_replicas * replica_chips)
    parts_s = back.detect_s + back.reschedule_s + load_s + back.warmup_s
    return Upkeep(
        process=process,
        preset=preset_of(rates, chip, scenario.catalog),
        num_replicas=num_replicas,
        num_lost=min(num_replicas, max(1, process.num_node_chips // replica_chips)),
        back_s=parts_s if back.restart_s is None else back.restart_s,
        rates=rates,
    )
