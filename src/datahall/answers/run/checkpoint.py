"""`show checkpoint`: what a checkpoint holds, what each tier takes to write and read it, and how often to write."""

from __future__ import annotations

from math import isfinite

from datahall.answer import Answer, Axis, Cell, Column, LineChart, Point, Series, Table
from datahall.answers.follow import follow
from datahall.answers.run.idle import idle_in_plan
from datahall.answers.run.words import (
    host_link_notes,
    idle_chip_notes,
    interval_in_words,
    tier_notes,
    tiers_in_words,
)
from datahall.cluster.used import used_by_machine
from datahall.planner.training.laid.job import laid_job
from datahall.reliability.checkpoint.account import (
    plan_account,
    restarting_fraction,
    restarts_cost_most,
    tiers_account,
)
from datahall.reliability.checkpoint.storage import StorageNeed, storage_need
from datahall.reliability.ettr import HARDLY_ANY
from datahall.reliability.kept import plan_figure
from datahall.reliability.run import Run, run_of
from datahall.scenario.kinds import Plain, exact
from datahall.scenario.scenario import Scenario
from datahall.units import fmt

DAYS = 54  # of the run that is offered to be simulated


def show_checkpoint(scenario: Scenario) -> Answer:
    """Sizes, times by tier, the best intervals, and what a failure costs."""
    run = run_of(scenario, laid_job(scenario), choose=True)
    need = storage_need(run, scenario)
    return Answer(
        kind="checkpoint",
        inputs={
            **run.job.used,
            **used_by_machine(scenario, run.job.cluster),
            "storage_bytes_per_s": need.has_bytes_per_s,
            **({} if scenario.given("tier") else {"tiers": ", ".join(run.plan.names)}),
        },
        verdict="yes" if need.enough and run.plan.ettr >= HARDLY_ANY else "no",
        headline=_headline(scenario, run, need),
        binding=_binding(run, need),
        results=_results(run, need),
        tables=(_tier_table(run), _plan_table(run)),
        figure=plan_figure(run),
        charts=(_chart(run),),
        notes=(*_notes(scenario, run), *idle_in_plan(scenario, run), *host_link_notes(run.job.cluster)),
        next_commands=_next(scenario, run, need),
    )


def _headline(scenario: Scenario, run: Run, need: StorageNeed) -> str:
    model = run.job.setup.job.model
    what = (
        f"A checkpoint of {model.title or model.name} is {fmt(run.job.size.total_bytes, 'bytes', 3)}, "
        f"{fmt(run.job.size.chip_bytes, 'bytes', 3)} a chip"
    )
    kept = fmt(run.plan.ettr, "fraction", 3)
    if not need.enough:
        return (
            f"{what}, and the storage is too slow for it: at {fmt(need.has_bytes_per_s, 'bytes_per_s', 3)} one takes "
            f"{fmt(need.drain_s, 's', 3)}, and {interval_in_words(need)}; {kept} of the time is kept."
        )
    if run.plan.ettr < HARDLY_ANY:
        return f"{what}; the run comes to nothing with any: {kept} of the time is kept."
    best = run.best
    if not scenario.given("interval") or best.ettr <= run.plan.ettr:
        return f"{what}; best is {tiers_in_words(run.plan)}, which keeps {kept} of the time."
    return (
        f"{what}; {tiers_in_words(run.plan)} keeps {kept} of the time, and {fmt(best.ettr, 'fraction', 3)} is kept by "
        f"the best: {tiers_in_words(best)}."
    )


def _binding(run: Run, need: StorageNeed) -> str:
    if not need.enough:
        return (
            f"Storage binds: {fmt(need.needs_bytes_per_s, 'bytes_per_s', 3)} would write a copy in that time, "
            f"{fmt(need.short_ratio, 'ratio', 2)} what there is."
        )
    what = "an interruption" if run.beside_failures else "a failure"
    every = f"{what} comes every {fmt(run.mttf_s, 's', 3)}"
    if restarts_cost_most(run.plan):
        return f"Restarts cost more than checkpoints and lost work: {every}, each takes {_restart(run)}."
    return f"Checkpoints and lost work cost more than restarts of {_restart(run)}: {every}."


def _restart(run: Run) -> str:
    """How long a restart takes, in the mean where tiers differ."""
    plan = run.plan
    mean = fmt(plan.restarting_s, "s", 3)
    each = [
        (fmt(plan.restart_from_s(one), "s", 3), fmt(one.share_fraction, "fraction", 3))
        for one in plan.cadences
    ]
    if len({took for took, _ in each}) == 1:
        return mean
    said = ", ".join(f"{took} after {share}" for took, share in each)
    return f"{mean} in the mean ({said} of the failures)"


def _results(run: Run, need: StorageNeed) -> dict[str, Cell]:
    found: dict[str, Cell] = {
        "checkpoint_bytes": run.job.size.total_bytes,
        "chip_bytes": run.job.size.chip_bytes,
        "bytes_per_parameter": run.job.size.bytes_per_parameter,
        "mttf_s": run.mttf_s,
        "checkpoint_ettr_fraction": run.plan.ettr,
        "remote_alone_fraction": run.alone(run.tiers[-1]).ettr,
        "restart_s": run.restart_s,
        "restarting_fraction": restarting_fraction(run.plan),
        "best_fraction": run.best.ettr,
        "checkpoint_bytes_per_s": need.needs_bytes_per_s,
        "daly_interval_s": run.daly_s if isfinite(run.daly_s) else None,
        "drain_s": need.drain_s,
        "best_s": need.best_s,
        "num_chips": run.job.num_chips,
        "layout": run.job.layout.words,
        "step_s": run.job.step_s,
        "plan": ", ".join(run.plan.names),
    }
    for one in run.plan.cadences:
        found[f"{one.tier.name}_interval_s"] = one.interval_s
    for one in run.best.cadences:
        found[f"best_{one.tier.name}_interval_s"] = one.interval_s
    for tier in run.tiers:
        found |= {
            f"{tier.name}_blocking_s": tier.blocking_s if isfinite(tier.blocking_s) else None,
            f"{tier.name}_drain_s": tier.drain_s if isfinite(tier.drain_s) else None,
        }
    return found


def _tier_table(run: Run) -> Table:
    rows = tuple(
        (one.tier.title, None, None, None, one.survived_fraction, None, None)
        if one.tier.lacks
        else (
            one.tier.title, one.tier.blocking_s, one.tier.drain_s, one.tier.load_s, one.survived_fraction,
            one.interval_s, one.failure_s,
        )
        for one in tiers_account(run)
    )  # fmt: skip
    lacking = "; ".join(f"{tier.title}: {tier.lacks}" for tier in run.tiers if tier.lacks)
    cost = "A failure costs the restart, the drain and half an interval of work."
    return Table(
        title="tiers, each alone against the failures that it survives",
        columns=(
            Column("tier"),
            Column("blocks", "s", "blocking_s"),
            Column("drains", "s", "drain_s"),
            Column("loads", "s", "load_s"),
            Column("survives", "fraction", "survived_fraction"),
            Column("best interval", "s"),
            Column("a failure costs", "s", "failure_s"),
        ),
        rows=rows,
        note=f"{cost} No copy in {lacking}." if lacking else cost,
    )


def _plan_table(run: Run) -> Table:
    rows = tuple(
        (
            one.cadence.tier.title, one.cadence.interval_s, one.num_steps, one.cadence.share_fraction,
            one.blocking_fraction, one.lost_fraction,
        )
        for one in plan_account(run)
    )  # fmt: skip
    return Table(
        title="the plan",
        columns=(
            Column("tier"),
            Column("every", "s", "interval_s"),
            Column("in steps", "count", "interval_steps"),
            Column("failures that use it", "fraction", "share_fraction"),
            Column("time it stops", "fraction", "blocking_fraction"),
            Column("work lost", "fraction", "lost_fraction"),
        ),
        rows=rows,
        note=f"Shares of the time; restarts take {fmt(restarting_fraction(run.plan), 'fraction', 3)} more, the rest "
        "is kept.",
    )


def _chart(run: Run) -> LineChart:
    """What is kept, over the interval of the last tier where there is no other."""
    last = run.plan.last.tier
    best = run.alone(last)
    intervals_s, kept = run.curve
    return LineChart(
        title=f"effective training time over the interval of {last.title}, alone",
        x=Axis("interval", "s", log=True),
        y=Axis("effective time", "fraction"),
        series=(Series(last.title, intervals_s, kept),),
        points=(Point("best", best.cadences[0].interval_s, best.ettr, note=fmt(best.ettr, "fraction", 3)),),
    )


def _notes(scenario: Scenario, run: Run) -> tuple[str, ...]:
    size = run.job.size
    lines = [
        f"weights and optimizer states, {size.bytes_per_parameter:g} bytes of a parameter of {size.of}, each "
        "distinct value once; replicas share the writing",
        "ETTR counts failures at any time, in restarts too (renewal); planned stops and waits for repair are left out",
        "copies leave beside the traffic of the steps, whose slowing is not counted",
    ]
    if run.job.searched:
        lines.append(
            f"laid out as {run.job.layout.words}, the fastest, with a step of {fmt(run.job.step_s, 's', 3)}"
        )
    if scenario.given("interval") and not scenario.given("tier"):
        lines.append(f"the interval is that of one tier, {run.plan.last.tier.title}: no other is written")
    return (*lines, *tier_notes(run), *idle_chip_notes(run))


def _next(scenario: Scenario, run: Run, need: StorageNeed) -> tuple[str, ...]:
    commands = []
    if not need.enough:
        commands.append(follow(scenario, changes={"storage": exact(need.ample_bytes_per_s, "bytes_per_s")}))
    changes: dict[str, Plain | None] = {"tier": list(run.plan.names), "days": DAYS}
    return (
        *commands,
        follow(scenario, "simulate run", changes),
        follow(scenario, tail="-o checkpoint.html"),
    )
