"""A run as somebody asks for it: the job, its failures, its checkpoints and how it comes back, put together."""

from __future__ import annotations

from functools import cached_property
from math import ceil, inf

import msgspec

from datahall.catalog.entries.failures import COPY_TIERS
from datahall.errors import ScenarioError, option
from datahall.reliability.asked import process_asked
from datahall.reliability.checkpoint.curve import Curve, interval_curve
from datahall.reliability.checkpoint.plan import (
    WORTH,
    CheckpointPlan,
    Shares,
    best_plan,
    check_drain,
    plan_of,
    shares_of,
)
from datahall.reliability.checkpoint.tier import CheckpointTier
from datahall.reliability.checkpoint.tiers import tiers_of
from datahall.reliability.corruption import BISECT_S, Detection, detection
from datahall.reliability.elastic import num_away, shrunk
from datahall.reliability.ettr import daly_interval_s
from datahall.reliability.job import RunningJob
from datahall.reliability.nodes.spares import free_fraction
from datahall.reliability.process import Cause, FailureProcess, mttf_s, over
from datahall.reliability.recovery import Recovery, interrupted, said_recovery
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.checkpoint import USUAL_TIERS, Checkpointing
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.scenario.sections.operations.run import Recovering, RunLength
from datahall.scenario.sections.training import Stragglers, TrainingJob
from datahall.scenario.words import BatchRule
from datahall.training.pipeline.straggler import expected_maximum, slow_class_loss
from datahall.units import DAY_S, fmt

CLEARLY = 0.005  # of the time that other tiers must save to be spoken of
LEAST = 0.05  # of the time: a run that keeps less is given up
ROUNDS = 3  # after which the length of a run and how often its nodes fail over it agree


class Run(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a run over weeks is made of."""

    job: RunningJob
    process: FailureProcess
    recovery: Recovery
    causes: tuple[
        Cause, ...
    ]  # with those that are no node's fault, as often as they come in the mean of the run
    tiers: tuple[CheckpointTier, ...]  # all that the machine has
    plan: CheckpointPlan  # of those that are used, against the failures that stop the whole run
    mttf_s: float  # of all failures
    left_out: tuple[CheckpointTier, ...] = ()  # tiers that were named and would cost more than they save
    slow_fraction: float = 0.0  # of a step, for those who are slow
    checks_fraction: float = 0.0  # of a step, for looking for silent corruption

    @property
    def shares(self) -> Shares:
        """Of the failures that stop the whole run, by the nearest copy that each leaves."""
        return stopping(shares_of(self.causes), self.recovery)[0]

    @property
    def failures_mttf_s(self) -> float:
        """Between failures of its nodes alone, in the mean of the run [s]: of those that a preset counts."""
        own = [one for one in self.causes if one.ages]
        return mttf_s(msgspec.structs.replace(self.process, causes=tuple(own), job_rate_per_day=0.0))

    @property
    def failure_rate_per_node_day(self) -> float:
        """The same as a rate of one node, as somebody could say it."""
        return sum(one.rate_per_node_day for one in self.causes if one.ages)

    @property
    def beside_failures(self) -> tuple[Cause, ...]:
        """What else interrupts it: what nodes share, the job itself, the provider."""
        return tuple(one for one in self.causes if not one.ages)

    @property
    def restart_s(self) -> float:
        """From a failure to the first new step, with the last tier."""
        return self.recovery.fixed_s + self.plan.last.tier.load_s

    @property
    def daly_s(self) -> float:
        """The textbook's interval of the last tier alone, beside the best one."""
        return daly_interval_s(self.plan.last.tier.blocking_s, self.plan.mttf_s)

    @cached_property
    def better(self) -> CheckpointPlan | None:
        """Other tiers that would keep clearly more."""
        best = self.best
        return best if best.ettr > self.plan.ettr + CLEARLY else None

    @property
    def step_s(self) -> float:
        """A step, with those who are slow and with looking for corruption."""
        return self.job.step_s * (1.0 + self.slow_fraction + self.checks_fraction)

    @property
    def speed_fraction(self) -> float:
        """Of a step's time, what it would take without those who are slow and without looking for corruption."""
        return self.job.step_s / self.step_s

    @property
    def tokens_per_s(self) -> float:
        """While it works."""
        return self.job.batch_tokens / self.step_s

    @cached_property
    def best(self) -> CheckpointPlan:
        """The best that could be done with all tiers that the machine has."""
        return best_plan(self.tiers, self.shares, self.plan.mttf_s, self.plan.fixed_s, step_s=self.job.step_s)

    def alone(self, tier: CheckpointTier) -> CheckpointPlan:
        """One tier and no other."""
        return plan_of((tier,), self.shares, self.plan.mttf_s, self.plan.fixed_s, step_s=self.job.step_s)

    @property
    def curve(self) -> Curve:
        """What the last tier alone keeps, over its interval, of the failures that stop the run."""
        return interval_curve(self.plan.last.tier, self.plan.mttf_s, self.plan.fixed_s)


def run_of(scenario: Scenario, job: RunningJob, *, choose: bool = False) -> Run:
    """The run of a job, with what a scenario says of failures and copies, or the usual where it says nothing.

    `choose`: the best tiers, where nobody names some.
    Nodes age over its days, or until its tokens are trained on, which takes the longer the more often they fail.
    """
    days, tokens = scenario.one(RunLength).num_days, scenario.one(TrainingJob).num_tokens
    run = _run_over(scenario, job, (days or 1.0) * DAY_S, choose=choose)
    if run.process.age_s is None or tokens is None:
        return run
    for _ in range(ROUNDS):
        kept = max(LEAST, run.plan.ettr)
        run = _run_over(scenario, job, length_of(scenario, run)[1] / kept, choose=choose)
    return run


def _run_over(scenario: Scenario, job: RunningJob, span_s: float, *, choose: bool) -> Run:
    """The run of a job whose nodes age over such a time."""
    asked = scenario.one(Checkpointing)
    process = process_asked(scenario.one(FailureRates), job.cluster.chip, scenario.catalog, job.num_chips)
    tiers = tiers_of(job, asked)
    if scenario.one(Recovering).restart_s is not None:
        tiers = tuple(msgspec.structs.replace(tier, load_s=0.0) for tier in tiers)
    failures = over(process, span_s)
    recovery = recovery_of(scenario, job, failures, tiers[-1])
    meets = interrupted(failures, recovery)
    causes, mean_s = meets.causes, mttf_s(meets)
    shares, stop = stopping(shares_of(causes), recovery)
    stop_s = mean_s / stop if stop else inf
    checks = detection_of(scenario.one(Recovering), job)
    named = () if choose and not asked.tiers and asked.interval_s is None else named_tiers(asked, tiers)
    if asked.interval_s is not None:
        plan = plan_of(
            named, shares, stop_s, recovery.fixed_s, step_s=job.step_s, interval_s=asked.interval_s
        )
        check_drain(plan.last)
    else:
        plan = best_plan(
            named or tiers, shares, stop_s, recovery.fixed_s, step_s=job.step_s,
            worth_fraction=0.0 if named else WORTH,
        )  # fmt: skip
    return Run(
        job=job,
        process=process,
        recovery=recovery,
        causes=causes,
        tiers=tiers,
        plan=plan,
        mttf_s=mean_s,
        left_out=tuple(tier for tier in named if tier.name not in plan.names),
        slow_fraction=slower(scenario.one(Stragglers), job),
        checks_fraction=checks.overhead_fraction if checks is not None else 0.0,
    )


def stopping(shares: Shares, recovery: Recovery) -> tuple[Shares, float]:
    """Of the failures that stop the whole run, by what they leave; and their share of all."""
    stop = {name: shares[name] * (place > recovery.elastic_rank) for place, name in enumerate(COPY_TIERS)}
    whole = sum(stop.values())
    return {name: share / whole if whole else 0.0 for name, share in stop.items()}, whole


def named_tiers(asked: Checkpointing, tiers: tuple[CheckpointTier, ...]) -> tuple[CheckpointTier, ...]:
    """The tiers that somebody names, which the machine must have, and of which the last survives everything."""
    names = asked.tiers or USUAL_TIERS
    used = tuple(tier for tier in tiers if tier.name in names)
    for tier in used:
        if tier.lacks:
            raise ScenarioError(
                f"there is no copy in {tier.title}: {tier.lacks}", field="tier", hint="another tier"
            )
    if used[-1].name != COPY_TIERS[-1]:
        raise ScenarioError(
            f"some failures take {used[-1].title} with them, and the run would begin anew",
            field="tier",
            hint=option("tier", ",".join((*names, COPY_TIERS[-1]))),
        )
    return used


def recovery_of(
    scenario: Scenario, job: RunningJob, process: FailureProcess, last: CheckpointTier
) -> Recovery:
    """How the run comes back: what was said, and what follows from it."""
    asked = scenario.one(Recovering)
    noticed = detection_of(asked, job)
    every_s, preset = asked.planned_every_s, process.preset
    if every_s is None:
        every_s = preset.span_s / preset.num_planned if preset.num_planned else 0.0
    said = said_recovery(asked)
    recovery = msgspec.structs.replace(
        said,
        free_fraction=free_fraction(process, said.num_spares) if said.hot_spares else 1.0,
        planned_every_s=every_s or inf,
        speeds=elastic_speeds(asked.elastic, job),
        stall_s=asked.stall_s if asked.elastic else 0.0,
        silent_s=noticed.delay_s if noticed is not None else 0.0,
        bisect_s=BISECT_S if noticed is not None and not noticed.finds_device else 0.0,
        preempted_every_s=asked.preempted_every_s or inf,
        back_s=asked.back_s,
        notice_s=asked.notice_s,
    )
    planned_s = recovery.back_again_s + last.load_s if asked.planned_s is None else asked.planned_s
    return msgspec.structs.replace(recovery, planned_s=planned_s)


def detection_of(asked: Recovering, job: RunningJob) -> Detection | None:
    """How silent corruption is noticed; None where it stops the run at once, as other failures do."""
    if asked.sdc is None:
        return None
    return detection(asked.sdc, job.step_s, every_steps=asked.sdc_every)


def elastic_speeds(rule: BatchRule | None, job: RunningJob) -> tuple[float, ...]:
    """Of the work, by the number of groups that are out; without tolerance, or a second copy, a failure stops all."""
    if rule is None:
        return (1.0,)
    groups, micro = num_groups(job), job.setup.num_micro
    return tuple(shrunk(groups, lost, micro, rule).throughput_ratio for lost in range(groups))


def num_groups(job: RunningJob) -> int:
    """Groups of replicas that go out together, each with a copy of all that the others have."""
    return ceil(job.layout.dp / num_away(job.layout, job.num_node_chips))


def slower(who: Stragglers, job: RunningJob) -> float:
    """How much longer a step takes that waits for the slowest of all, where all their work is on its path."""
    slow = slow_class_loss(who.slow_hosts_fraction, who.slow_by_fraction, job.num_nodes)
    return slow + (who.jitter_fraction * expected_maximum(job.num_chips) if who.jitter_fraction else 0.0)


def length_of(scenario: Scenario, run: Run) -> tuple[float, float]:
    """When the run ends, and the work after which it does [s], of which one is without end."""
    days, tokens = scenario.one(RunLength).num_days, scenario.one(TrainingJob).num_tokens
    if tokens is None:
        assert days is not None
        check_steps(run.step_s, days * DAY_S)
        check_copied(scenario.one(Checkpointing).interval_s, run.recovery.planned_every_s, days * DAY_S)
        return days * DAY_S, inf
    return inf, run.job.setup.job.num_steps(tokens) * run.step_s


def check_steps(step_s: float, until_s: float) -> None:
    """Refuse a run that is over before its first step is."""
    if until_s < step_s:
        raise ScenarioError(
            f"the run is over after {fmt(until_s, 's')}, and its first step after {fmt(step_s, 's')}",
            field="days",
            hint=f"{option('days', 1)}, for example",
        )


def check_copied(interval_s: float | None, planned_every_s: float, until_s: float) -> None:
    """Refuse an interval that nothing comes of: the run ends before, and no planned stop writes a copy."""
    if interval_s is not None and min(interval_s, planned_every_s) > until_s:
        raise ScenarioError(
            f"no checkpoint is taken: the run ends after {fmt(until_s, 's')}, before the first at "
            f"{fmt(interval_s, 's')}",
            field="interval",
            hint=f"a shorter {option('interval')}",
        )
