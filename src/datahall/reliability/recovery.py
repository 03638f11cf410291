"""How a run comes back: what a restart is made of, who stands by, what is planned, and what goes on meanwhile."""

from __future__ import annotations

from math import inf

import msgspec

from datahall.catalog.entries.failures import COPY_TIERS, Tier
from datahall.reliability.process import Cause, FailureProcess
from datahall.scenario.sections.operations.run import Recovering
from datahall.units import DAY_S

SILENT = "corruption"  # the component whose failures nobody sees
PREEMPTED = "preempted by the provider"
ANY_SIZE = "job, whatever its size"
ANY_SPARES = 1 << 40  # as many as are needed
REPLICA_LEFT: Tier = (
    "peer"  # what a failure must leave at most for other replicas to be whole: one node's is gone
)


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """Times of a restart beside reading the checkpoint [s], spares, planned stops and what tolerance there is."""

    detect_s: float
    reschedule_s: float
    warmup_s: float
    num_spares: int = ANY_SPARES  # nodes
    hot_spares: bool = False  # they run already: nothing is rescheduled while one is free
    free_fraction: float = 1.0  # of the failures that find a spare free
    is_whole: bool = False  # a restart was said whole, and stands for all of its parts
    planned_every_s: float = inf
    planned_s: float = 0.0
    speeds: tuple[float, ...] = (
        1.0,
    )  # of the work by groups of replicas that are out; one alone: the whole run stops
    stall_s: float = 0.0  # until they do
    silent_s: float = 0.0  # until corrupted results are noticed; 0: at once
    bisect_s: float = 0.0  # to find the device then
    preempted_every_s: float = inf  # of one node
    back_s: float = 0.0  # mean wait for capacity that was taken away
    notice_s: float = 0.0

    @property
    def moved_s(self) -> float:
        """Until the job stands on other nodes, in the mean: hot spares that are free have it at once [s]."""
        return self.reschedule_s * (1.0 - self.free_fraction) if self.hot_spares else self.reschedule_s

    @property
    def back_again_s(self) -> float:
        """From a failure that was noticed, or a stop that was planned, without reading the checkpoint [s]."""
        return self.moved_s + self.warmup_s

    @property
    def fixed_s(self) -> float:
        """A restart without reading the checkpoint [s]."""
        return self.detect_s + self.back_again_s

    @property
    def elastic(self) -> bool:
        """Whether replicas go on without one of them."""
        return len(self.speeds) > 1

    @property
    def elastic_rank(self) -> int:
        """The farthest checkpoint that a failure may leave and take one replica only; −1: none."""
        return COPY_TIERS.index(REPLICA_LEFT) if self.elastic else -1


def said_recovery(asked: Recovering) -> Recovery:
    """A restart as it was said, whole or by its parts, and the spares; neither needs a job."""
    whole_s = asked.restart_s
    return Recovery(
        detect_s=asked.detect_s if whole_s is None else 0.0,
        reschedule_s=asked.reschedule_s if whole_s is None else 0.0,
        warmup_s=asked.warmup_s if whole_s is None else whole_s,
        num_spares=ANY_SPARES if asked.spares is None else asked.spares,
        hot_spares=asked.hot_spares,
        is_whole=whole_s is not None,
    )


def interrupted(process: FailureProcess, recovery: Recovery) -> FailureProcess:
    """All that interrupts a job as causes of its nodes: theirs, what comes whatever their number, who takes them back.

    Causes that new nodes have more often stand first.
    """
    causes = sorted(process.causes, key=lambda cause: not cause.ages)
    if process.job_rate_per_day:
        rate = process.job_rate_per_day / process.num_nodes
        causes.append(_restarted(ANY_SIZE, rate, "host"))
    if recovery.preempted_every_s < inf:
        causes.append(_restarted(PREEMPTED, DAY_S / recovery.preempted_every_s, "remote"))
    return msgspec.structs.replace(process, causes=tuple(causes), job_rate_per_day=0.0)


def _restarted(name: str, rate_per_node_day: float, survives: str) -> Cause:
    return msgspec.convert(
        {
            "name": name, "component": "", "rate_per_node_day": rate_per_node_day, "survives": survives,
            "repair_fraction": 0.0, "repair_median_s": 0.0, "repair_sigma": 0.0,
        },
        Cause,
    )  # fmt: skip
