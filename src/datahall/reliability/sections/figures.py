"""The chains behind what plans say of failures: of a training run, and of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.breakdown import Breakdown, again, derived, product, quotient, total
from datahall.reliability.figure import BINOMIAL, nodes_mttf_figure, spares_figure
from datahall.reliability.kept import closed_figure

if TYPE_CHECKING:
    from datahall.reliability.sections.goodput import Goodput
    from datahall.reliability.sections.upkeep import Upkeep


def goodput_figures(found: Goodput) -> tuple[Breakdown, ...]:
    """What of the time moves a run forward, how long it is then, spares, a checkpoint, and storage for it."""
    run, need = found.run, found.storage
    ettr = closed_figure(run, found.expected).named("effective training time")
    size = run.job.size.figure
    best = derived("interval", need.interval_s, "s", "the best against the failures that fall back to it")
    spares = spares_figure(
        found.spares, found.rates.enough_fraction, "spare nodes", "nodes in repair, in the mean"
    )
    storage = quotient("storage for checkpoints", again(size), best.unless_said("interval"), "bytes_per_s")
    if not ettr.value:
        return ettr, spares, size, storage
    work = derived("time of the steps", found.work_s, "s", "as above")
    whole = quotient("time of the run, with interruptions", work, again(ettr), "s")
    return ettr, whole, spares, size, storage


def upkeep_figures(found: Upkeep) -> tuple[Breakdown, ...]:
    """What failures leave of a service, and the replicas and nodes that make up for them."""
    mttf = nodes_mttf_figure(found.process)
    back = derived("until they serve again", found.back_s, "s", "noticed, rescheduled, loaded and warm")
    groups = derived("groups of replicas", found.num_groups, "count", "each is what a failed node takes down")
    shared = derived(
        "groups that a failure takes", found.shared_ratio, "count", "more than one where a rack goes"
    )
    serves = quotient("a replica serves", product("all groups", (mttf, groups), "s"), shared, "s")
    back = back.unless_said("restart")
    enough = found.rates.enough_fraction
    more = found.more_replicas
    return (
        mttf,
        quotient(
            "capacity lost to restarts",
            back,
            total("from failure to failure", (serves, back)),
            "fraction",
        ),
        *(
            (spares_figure(more, enough, "replicas to add", "replicas that restart, in the mean", BINOMIAL),)
            if more is not None
            else ()
        ),
        spares_figure(found.spares, enough, "spare nodes", "nodes in repair, in the mean"),
    )
