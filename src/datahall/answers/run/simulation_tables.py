"""Tables and charts of a simulated run: where the hours went, causes, checkpoints, progress."""

from __future__ import annotations

from datahall.answer import Axis, Cell, Column, LineChart, Series, StackChart, Table
from datahall.counted import counted
from datahall.reliability.recovery import ANY_SPARES
from datahall.reliability.simulation.story import Story
from datahall.units import fmt, short

LOSS_WORDS = {
    "blocking_s": "checkpoints",
    "lost_s": "work that was lost",
    "detect_s": "noticing failures",
    "wait_s": "waiting for nodes",
    "reschedule_s": "rescheduling",
    "load_s": "loading checkpoints",
    "warmup_s": "warming up",
    "restarts_s": "restarts",
    "stall_s": "waiting for the new membership",
    "degraded_s": "running on fewer replicas",
    "silent_s": "rolling back corrupted work",
    "planned_s": "planned stops",
    "slow_s": "waiting for the slowest",
    "checks_s": "looking for corruption",
}


def loss_table(story: Story) -> Table:
    """Where the time of a run goes."""
    rows: list[tuple[Cell, ...]] = [("work that is kept", *story.kept, story.ettr.mean)]
    rows += [(LOSS_WORDS[one.name], *one.time_s, one.share_fraction) for one in story.losses]
    return Table(
        title="where the time of a run goes",
        columns=(
            Column("what"),
            Column("mean", "s", "mean_s"),
            Column("P10", "s", "low_s"),
            Column("P90", "s", "high_s"),
            Column("share", "fraction"),
        ),
        rows=tuple(rows),
    )


def cause_table(story: Story) -> Table:
    """How often each cause interrupts a run."""
    rows = tuple(
        (one.name, one.times.mean, one.times.low, one.times.high, one.share_fraction, one.repaired_fraction)
        for one in story.causes
    )
    return Table(
        title="interruptions of a run by cause",
        columns=(
            Column("cause"),
            Column("mean", "count", "mean"),
            Column("P10", "count", "low"),
            Column("P90", "count", "high"),
            Column("share", "fraction"),
            Column("need a repair", "fraction", "repaired_fraction"),
        ),
        rows=rows,
        note=_spares(story),
    )


def _spares(story: Story) -> str:
    """How many spares suffice, and what too few of them cost."""
    steady = story.steady_spares
    suffice = f"{counted(steady.num, 'spare')} {'suffices' if steady.num == 1 else 'suffice'}"
    enough = f"{suffice} {fmt(steady.enough_fraction, 'fraction', 3)} of the time"
    there = story.run.recovery.num_spares
    if there == ANY_SPARES:
        return (
            f"Nine of ten runs have at most {counted(story.num_spares, 'node')} in repair at once; {enough}."
        )
    times = story.num_waits.mean
    waits = f"waits {short(times, 2)} times" if times else "never waits"
    return f"With {counted(there, 'spare')} a run {waits} for a repair; {enough}."


def plan_table(story: Story) -> Table:
    """The checkpoints that the run took."""
    rows = tuple(
        (
            one.tier.title,
            one.interval_s,
            one.tier.blocking_s,
            one.tier.drain_s,
            None if story.run.recovery.is_whole else one.tier.load_s,
            one.share_fraction,
        )
        for one in story.run.plan.cadences
    )
    return Table(
        title="checkpoints",
        columns=(
            Column("tier"),
            Column("every", "s", "interval_s"),
            Column("blocks", "s", "blocking_s"),
            Column("drains", "s", "drain_s"),
            Column("loads", "s", "load_s"),
            Column("failures that use it", "fraction", "share_fraction"),
        ),
        rows=rows,
    )


def waterfall(story: Story) -> StackChart:
    """What each loss takes of a run, most first, beside all of them."""
    names = tuple(LOSS_WORDS[one.name] for one in story.losses)
    means = tuple(one.time_s.mean for one in story.losses)
    rows = ("all that is lost", *names)
    parts = {
        name: (mean, *(mean if row == name else 0.0 for row in names))
        for name, mean in zip(names, means, strict=True)
    }
    return StackChart(title="what each loss takes of a run", unit="s", rows=rows, parts=parts)


def progress_chart(story: Story) -> LineChart:
    """Work of the run with the median effective time, beside one without failures."""
    days, work_days = story.progress()
    ends = (0.0, days[-1])
    return LineChart(
        title="progress of a typical run",
        x=Axis("time [days]"),
        y=Axis("work [days]"),
        series=(Series("kept so far", days, work_days), Series("without a failure", ends, ends, dashed=True)),
    )
