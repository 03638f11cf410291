"""What failures leave of a run that is laid out, as a plan has it: in closed form, with spares and storage enough.

elapsed = work / ETTR,    interruptions = elapsed / M
"""

from __future__ import annotations

from functools import cached_property
from math import inf

import msgspec

from datahall.breakdown import Breakdown
from datahall.reliability.checkpoint.plan import NOTHING_LEFT
from datahall.reliability.checkpoint.storage import StorageNeed, storage_need
from datahall.reliability.closed_form import Expected, expected
from datahall.reliability.nodes.spares import Spares, spares_for
from datahall.reliability.process import FailureProcess
from datahall.reliability.run import Run
from datahall.reliability.sections.figures import goodput_figures
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.failures import FailureRates


class Goodput(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The time of a run with its failures, restarts and checkpoints."""

    run: Run
    work_s: float  # of all steps
    storage: StorageNeed
    rates: FailureRates  # as they were asked for

    @property
    def process(self) -> FailureProcess:
        """Its failures."""
        return self.run.process

    @cached_property
    def expected(self) -> Expected:
        """What each thing leaves of the time, in closed form."""
        return expected(self.run)

    @property
    def ettr(self) -> float:
        """Share of the time that moves the run forward; 0 where it is next to none."""
        return self.expected.ettr if self.expected.ettr > NOTHING_LEFT else 0.0

    @property
    def elapsed_s(self) -> float:
        """From the first step to the last; inf where a run comes to nothing."""
        return self.work_s / self.ettr if self.ettr > 0.0 else inf

    @property
    def num_interruptions(self) -> float:
        return self.elapsed_s / self.run.mttf_s

    @cached_property
    def spares(self) -> Spares:
        """Nodes to hold ready."""
        return spares_for(self.run.process, self.rates.enough_fraction, self.elapsed_s)

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return goodput_figures(self)


def goodput_of(scenario: Scenario, run: Run, work_s: float) -> Goodput:
    """What failures leave of so much work."""
    return Goodput(
        run=run,
        work_s=work_s,
        storage=storage_need(run, scenario),
        rates=scenario.one(FailureRates),
    )
