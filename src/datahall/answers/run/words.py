"""Words that answers about runs share."""

from __future__ import annotations

from datahall.cluster.cluster import Cluster
from datahall.reliability.checkpoint.plan import CheckpointPlan
from datahall.reliability.checkpoint.storage import StorageNeed
from datahall.reliability.recovery import ANY_SIZE, ANY_SPARES, PREEMPTED
from datahall.reliability.run import Run
from datahall.reliability.simulation.story import Story
from datahall.units import fmt

# causes that are no node's own, as a sentence has them; the others are of what nodes share
BESIDE = {PREEMPTED: "preemptions", ANY_SIZE: "failures of the job whatever its size"}
SAME = 0.01  # of the time that closed form and simulation may differ by without a word


def host_link_notes(cluster: Cluster) -> tuple[str, ...]:
    """What is taken for the link of a chip to its host, where nobody says it."""
    if cluster.host.says_link:
        return ()
    link, chip = fmt(cluster.host.copied_bytes_per_s, "bytes_per_s"), cluster.chip.title
    return (f"nobody says how fast {chip} writes to the memory of its host: {link} are taken",)


def how_often(run: Run, rates: str) -> str:
    """How often nodes fail by the rates that are taken, and what else interrupts the run."""
    each, beside = fmt(run.failures_mttf_s, "s", 3), run.beside_failures
    new = ", more of them while nodes are new" if run.process.age_s is not None else ""
    said = f"{rates}{new}: one every {each}"
    if not beside:
        return said
    more = " and ".join(BESIDE.get(one.name, f"failures of a {one.name}") for one in beside)
    return f"{said}; with {more} an interruption every {fmt(run.mttf_s, 's', 3)}"


def tiers_in_words(plan: CheckpointPlan) -> str:
    """Tiers and their intervals as a sentence has them."""
    said = [f"a copy to {one.tier.title} every {fmt(one.interval_s, 's', 3)}" for one in plan.cadences]
    *others, last = said
    return f"{', '.join(others)} and {last}" if others else last


def tier_notes(run: Run) -> tuple[str, ...]:
    """Tiers that were named and are left out, and a last one that no failure asks for."""
    notes = [
        f"a copy to {tier.title} is left out: it would stop the run for longer than it saves"
        for tier in run.left_out
    ]
    if run.plan.is_unasked:
        last = run.plan.last
        notes.append(
            f"no failure falls back to {last.tier.title}: a copy every {fmt(last.interval_s, 's', 3)}, as BLOOM did"
        )
    return tuple(notes)


def only_planned_notes(run: Run) -> tuple[str, ...]:
    """That no copy comes but those of planned stops, where they come more often."""
    every_s, asked_s = run.recovery.planned_every_s, run.plan.last.interval_s
    if asked_s <= every_s:
        return ()
    return (
        f"planned stops come every {fmt(every_s, 's', 3)}, and each writes a copy: the one after "
        f"{fmt(asked_s, 's', 3)} never comes, nor any other between them",
    )


def slow_storage_notes(need: StorageNeed) -> tuple[str, ...]:
    """That storage binds, where copies take longer to be written than is best between them."""
    if need.enough:
        return ()
    return (
        f"storage binds: a copy takes {fmt(need.drain_s, 's', 3)} to be written, and {interval_in_words(need)}; "
        f"{fmt(need.needs_bytes_per_s, 'bytes_per_s', 3)} would do",
    )


def interval_in_words(need: StorageNeed) -> str:
    """The interval that storage is to keep up with."""
    return f"one every {fmt(need.interval_s, 's', 3)} {'would be best' if need.is_best else 'is asked for'}"


def idle_chip_notes(run: Run) -> tuple[str, ...]:
    """Chips that a faster layout leaves without work."""
    if not run.job.num_idle:
        return ()
    whole = run.job.num_chips + run.job.num_idle
    return (
        f"{run.job.num_idle:,} of {whole:,} chips stay idle: no layout with work for all of them is as fast",
    )


def unlike_closed_form(story: Story) -> tuple[str, ...]:
    """What the simulation has and the closed form does not, where that is seen."""
    notes = []
    recovery = story.run.recovery
    if recovery.elastic and recovery.num_spares < ANY_SPARES:
        notes.append("the closed form leaves out that replicas wait for nodes: it has spares enough for them")
    if abs(story.difference) <= SAME:
        return tuple(notes)
    if any(loss.name == "wait_s" for loss in story.losses) and not recovery.elastic:
        notes.append(
            "the closed form has waits for nodes as the mean of a long time: here a few of them, and long ones, decide"
        )
    if story.is_short:
        notes.append(
            "the closed form is of a run that goes on: this one has few checkpoints, and what is done when it ends is "
            "kept"
        )
    if story.has_few_restarts:
        restart, elapsed = fmt(story.run.plan.restart_s, "s", 3), fmt(story.elapsed_s.mean, "s", 3)
        notes.append(
            f"the closed form is of a run that goes on, and does not apply: a restart takes {restart}, and this run "
            f"is over after {elapsed}"
        )
    return tuple(notes) or (
        f"the closed form is {fmt(abs(story.difference), 'fraction', 2)} of the time off here, where losses are large "
        "and meet each other: the simulation has them event by event",
    )
