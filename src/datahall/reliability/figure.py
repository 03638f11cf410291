"""Figures of a run: time between failures, a restart, a plan of checkpoints and what it keeps, each with its parts."""

from __future__ import annotations

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
from datahall.reliability.recovery import Recovery, interrupted
from datahall.units import DAY_S, fmt

if TYPE_CHECKING:
    from datahall.reliability.checkpoint.tier import Cadence
    from datahall.reliability.nodes.spares import Spares
    from datahall.reliability.process import FailureProcess
    from datahall.reliability.run import Run
    from datahall.reliability.simulation.outcome import Runs, Spread

COMPOUND = "the fewest that suffice, of a number away that is compound Poisson (reliability/nodes/spares.py)"
BINOMIAL = "the fewest that suffice, where each replica restarts by itself, those that are added too"


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
    counted = sum(cause.rate_per_node_day for cause in process.causes if not cause.is_shock)
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
    """A restart of the whole run in the mean of its failures, without what is waited for a spare."""
    recovery, used = run.recovery, run.plan.cadences
    if recovery.is_whole:
        return given("restart", recovery.warmup_s, "s", field="restart")
    parts = [given("detect", recovery.detect_s, "s", field="detect")]
    if not recovery.hot_spares:
        parts.append(given("reschedule", recovery.reschedule_s, "s", field="reschedule"))
    elif recovery.moved_s:
        parts.append(
            derived("reschedule", recovery.moved_s, "s", "in the mean: nothing while a hot spare is free")
        )
    read = f"from {used[0].tier.title}"
    if len(used) > 1:
        each = (f"{fmt(one.share_fraction, 'fraction', 3)} from {one.tier.title}" for one in used)
        read = f"in the mean of failures: {', '.join(each)}"
    parts += [
        derived("load", sum(one.share_fraction * one.tier.load_s for one in used), "s", read),
        given("warm-up", recovery.warmup_s, "s", field="warm_up"),
    ]
    return total("restart", parts)


def back_figure(run: Run, *held: Breakdown) -> Breakdown:
    """A restart and the drain of the copy that is read, `held` being what it holds.

    Work waits a drain longer for its copy, as one that is not yet written out is none.
    """
    drain_s = sum(one.share_fraction * one.tier.drain_s for one in run.plan.cadences)
    late = "work since a copy was begun is lost too, until it is written out"
    drain = modelled("drain", drain_s, "s", late, *held) if held else derived("drain", drain_s, "s", late)
    return total("restart and drain", [restart_figure(run), drain])


def tier_figures(cadence: Cadence) -> tuple[Breakdown, Breakdown]:
    """How often a tier is written, and how long each copy stops the run."""
    blocking = derived("blocking", cadence.tier.blocking_s, "s", "until the copy has left the chips")
    how = "the best against the failures that fall back to it, never below its drain"
    interval = derived("interval", cadence.interval_s, "s", how)
    return interval.unless_said("interval"), blocking.unless_said("blocking")


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
    if not spread.low <= spread.mean <= spread.high or not spread.mean:
        return figure  # where few of the runs lose the most, the mean is in no range of eight of ten
    return figure.with_band(
        spread.low / spread.mean, spread.high / spread.mean, f"P10 and P90 of {num:,} runs"
    )
