"""The chains behind what plans say of failures: of a training run, and of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.breakdown import Breakdown, again, derived, minimum, product, quotient
from datahall.reliability.closed_form import expected
from datahall.reliability.figure import closed_figure, nodes_mttf_figure, spares_figure

if TYPE_CHECKING:
    from datahall.reliability.sections.goodput import Goodput
    from datahall.reliability.sections.upkeep import Upkeep


def goodput_figures(found: Goodput) -> tuple[Breakdown, ...]:
    """What of the time moves a run forward, how long it is then, spares, a checkpoint, and storage for it."""
    run, need = found.run, found.storage
    ettr = closed_figure(run, expected(run), found.preset).named("time that moves it forward")
    size = run.job.size.figure
    best = derived("interval", need.best_s, "s", "the best against the failures that fall back to it")
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
    mttf = nodes_mttf_figure(found.process, found.preset)
    back = derived("until they serve again", found.back_s, "s", "noticed, rescheduled, loaded and warm")
    down = quotient("nodes whose replicas restart", back.unless_said("restart"), again(mttf), "count")
    each = derived("replicas of a node", found.num_lost, "count", "that a failure of it takes")
    replicas = derived("replicas", found.num_replicas, "count", "as above")
    lost = quotient("of them that restart", product("replicas that restart", (each, down), "count"), replicas,
                    "fraction")  # fmt: skip
    whole = derived("all of them", 1.0, "fraction")
    enough = found.rates.enough_fraction
    return (
        mttf,
        minimum("capacity lost to restarts", (lost, whole)),
        spares_figure(found.more_replicas, enough, "replicas to add", "replicas that restart, in the mean"),
        spares_figure(found.spares, enough, "spare nodes", "nodes in repair, in the mean"),
    )
