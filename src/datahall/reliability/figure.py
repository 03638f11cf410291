"""Figures of a run: time between failures, a restart, a plan of checkpoints and what it keeps, each with its parts."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from datahall.breakdown import (
    Breakdown,
    assumed,
    derived,
    fact,
    given,
    modelled,
    product,
    quotient,
    simulated,
    total,
)
from datahall.reliability.process import SHOCK
from datahall.reliability.recovery import Recovery, interrupted
from datahall.units import DAY_S

if TYPE_CHECKING:
    from datahall.reliability.checkpoint.tier import Cadence
    from datahall.reliability.closed_form import Expected
    from datahall.reliability.nodes.spares import Spares
    from datahall.reliability.process import FailureProcess
    from datahall.reliability.run import Run
    from datahall.reliability.simulation.outcome import Runs, Spread

COMPOUND = "the fewest that suffice, of a number away that is compound Poisson (reliability/nodes/spares.py)"
BINOMIAL = "the fewest that suffice, where each replica restarts by itself, those that are added too"
RENEWAL = "failures at any time, in restarts too: t / [M e^(R/M) (e^((t+d)/M) − 1)], tier by tier"


def mttf_figure(run: Run) -> Breakdown:
    """Mean time between interruptions of the job."""
    steady = interrupted(run.process, run.recovery).rate_per_node_day
    each = node_failures_figure(run.process)
    counted = each.value
    if steady > counted * (1.0 + 1e-12):
        how = "of what nodes share, of the job, of capacity that is taken away"
        more = derived("other interruptions per node and day", steady - counted, "count", how)
        each = total("interruptions per node and day", [each, more])
    parts = [derived("nodes", run.process.num_nodes, "count"), each]
    if run.process.age_s is not None:
        rate = sum(cause.rate_per_node_day for cause in run.causes)
        how = "while they are new, in the mean of the run"
        parts.append(derived("how much more often they fail", rate / steady, "ratio", how))
    per_day = product("failures per day", parts, "count")
    return _between(per_day)


def _between(per_day: Breakdown) -> Breakdown:
    return quotient("time between failures", assumed("a day", DAY_S, "s", "86,400 s"), per_day, "s")


def node_failures_figure(process: FailureProcess) -> Breakdown:
    """How often a node fails, by itself."""
    counted = sum(cause.rate_per_node_day for cause in process.causes if cause.component != SHOCK)
    preset = process.preset
    sources = tuple(dict.fromkeys(one.source for one in preset.facts.values()))
    found = fact("failures of a node per day", counted, "count", *sources, note=preset.title)
    return found.unless_said("failure_rate")


def nodes_mttf_figure(process: FailureProcess) -> Breakdown:
    """Mean time between failures of any of some nodes that fail by themselves alone."""
    nodes = derived("nodes", process.num_nodes, "count")
    return _between(product("failures per day", [nodes, node_failures_figure(process)], "count"))


def spares_figure(
    spares: Spares, enough_fraction: float, name: str, away: str, how: str = COMPOUND
) -> Breakdown:
    """As many as suffice so much of the time; those that are away are counted in the mean."""
    mean = derived(away, spares.away_mean, "count", "failures · time away")
    enough = given("share of the time", enough_fraction, "fraction", field="spares_enough")
    return modelled(name, spares.num, "count", how, mean, enough)


def restart_figure(run: Run) -> Breakdown:
    """A restart of the whole run from the last tier, without what is waited for a spare."""
    recovery, last = run.recovery, run.plan.last.tier
    if recovery.is_whole:
        return given("restart", recovery.warmup_s, "s", field="restart")
    parts = [given("detect", recovery.detect_s, "s", field="detect")]
    if not recovery.hot_spares:
        parts.append(given("reschedule", recovery.reschedule_s, "s", field="reschedule"))
    elif recovery.moved_s:
        parts.append(
            derived("reschedule", recovery.moved_s, "s", "in the mean: nothing while a hot spare is free")
        )
    parts += [
        derived("load", last.load_s, "s", f"from {last.title}"),
        given("warm-up", recovery.warmup_s, "s", field="warm_up"),
    ]
    return total("restart", parts)


def tier_figure(cadence: Cadence) -> Breakdown:
    """The time that checkpoints of a tier take, over the work between them."""
    tier = cadence.tier
    blocking = derived("blocking", tier.blocking_s, "s", "until the copy has left the chips").unless_said(
        "blocking"
    )
    how = "the best against the failures that fall back to it, never below its drain"
    interval = derived("interval", cadence.interval_s, "s", how).unless_said("interval")
    return quotient(f"checkpoints to {tier.title}", blocking, interval, "fraction")


def closed_figure(run: Run, found: Expected) -> Breakdown:
    """What the closed form says."""
    planned = []
    if isfinite(run.recovery.planned_every_s):
        planned.append(planned_figure(run.recovery))
    slower = []
    if run.speed_fraction < 1.0:
        slower.append(speed_figure(run))
    if (enough := found.leaves["repairs"] * found.leaves["capacity"]) < 1.0:
        how = "nodes in repair beyond the spares, and capacity that was taken away, are waited for"
        slower.append(derived("time with nodes enough", enough, "fraction", how))
    return modelled(
        "closed form", found.ettr, "fraction", RENEWAL, mttf_figure(run), restart_figure(run),
        *(tier_figure(one) for one in run.plan.cadences), *planned, *slower,
    )  # fmt: skip


def speed_figure(run: Run) -> Breakdown:
    """A step over one with those who are slow and with looking for corruption."""
    step = derived("a step", run.job.step_s, "s", run.job.layout.words)
    longer = derived("a step that waits and checks", run.step_s, "s", "the slowest sets the pace")
    return quotient("speed of the steps", step, longer, "fraction")


def planned_figure(recovery: Recovery) -> Breakdown:
    """The share of the time that planned stops take."""
    stop = derived(
        "a planned stop", recovery.planned_s, "s", "a restart that nobody has to notice"
    ).unless_said("planned")
    every = derived(
        "between planned stops", recovery.planned_every_s, "s", "as those whose rates are used"
    ).unless_said("planned_every")
    return quotient("planned stops", stop, every, "fraction")


def ettr_figure(found: Runs, closed: Breakdown, spread: Spread) -> Breakdown:
    """What the simulation says, beside the closed form."""
    num = found.runs.size
    how = f"work that was kept over the time that went by, of {num:,} runs together"
    figure = simulated("effective training time", spread.mean, "fraction", how, closed)
    if not spread.mean:
        return figure
    return figure.with_band(
        min(1.0, spread.low / spread.mean),
        max(1.0, spread.high / spread.mean),
        f"P10 and P90 of {num:,} runs",
    )


def plan_figure(run: Run) -> Breakdown:
    """What its plan of checkpoints keeps, planned stops aside."""
    return modelled(
        "effective training time", run.plan.ettr, "fraction", RENEWAL, mttf_figure(run), restart_figure(run),
        *(tier_figure(one) for one in run.plan.cadences), run.job.size.figure,
    )  # fmt: skip
