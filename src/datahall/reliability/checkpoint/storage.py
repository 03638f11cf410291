"""Whether the remote storage keeps up with the checkpoints that failures ask for."""

from __future__ import annotations

from math import ceil, floor, inf, log10

import msgspec

from datahall.reliability.checkpoint.plan import UNASKED_S, CheckpointPlan, plan_of
from datahall.reliability.checkpoint.tiers import storage_of
from datahall.reliability.ettr import best_interval_s
from datahall.reliability.run import CLEARLY, Run
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.checkpoint import Checkpointing


class StorageNeed(msgspec.Struct, frozen=True, kw_only=True):
    """What storage there is beside what is needed."""

    has_bytes_per_s: float
    needs_bytes_per_s: float  # to write a copy in the interval
    drain_s: float
    interval_s: float  # as it was said, or the best
    best_s: float  # whatever was said
    more_fraction: float  # of the time, that storage without end would keep

    @property
    def enough(self) -> bool:
        """Whether copies keep up, or nothing hangs on it."""
        return self.drain_s <= self.interval_s or self.more_fraction < CLEARLY

    @property
    def is_best(self) -> bool:
        """Whether the interval is the best one."""
        return self.interval_s == self.best_s

    @property
    def ample_bytes_per_s(self) -> float:
        """A little more than is needed, as a person would say it: rounded up to three digits."""
        step = 10.0 ** (floor(log10(1.01 * self.needs_bytes_per_s)) - 2)
        return ceil(1.01 * self.needs_bytes_per_s / step) * step

    @property
    def short_ratio(self) -> float:
        """How many times what there is it would take."""
        return self.needs_bytes_per_s / self.has_bytes_per_s


def storage_need(run: Run, scenario: Scenario) -> StorageNeed:
    """Copies of the last tier of a run's plan against its storage."""
    asked, last = scenario.one(Checkpointing), run.plan.last
    own_s = last.own_mttf_s(run.plan.mttf_s)
    written_s = last.tier.blocking_s if asked.synchronous else last.tier.drain_s
    best_s = max(run.job.step_s, best_interval_s(last.tier.blocking_s, own_s) if own_s < inf else UNASKED_S)
    interval_s = asked.interval_s or best_s
    return StorageNeed(
        has_bytes_per_s=storage_of(asked, run.job.num_chips),
        needs_bytes_per_s=run.job.size.total_bytes / interval_s,
        drain_s=written_s,
        interval_s=interval_s,
        best_s=best_s,
        more_fraction=_without_end(run, asked, written_s).ettr - run.plan.ettr,
    )


def _without_end(run: Run, asked: Checkpointing, written_s: float) -> CheckpointPlan:
    """The same tiers with storage that takes no time."""
    *nearer, last = (one.tier for one in run.plan.cadences)
    quick = msgspec.structs.replace(
        last,
        drain_s=0.0,
        load_s=max(0.0, last.load_s - last.drain_s),
        blocking_s=last.blocking_s - written_s if asked.synchronous else last.blocking_s,
    )
    return plan_of(
        (*nearer, quick),
        run.shares,
        run.plan.mttf_s,
        run.plan.fixed_s,
        step_s=run.job.step_s,
        interval_s=asked.interval_s,
    )
