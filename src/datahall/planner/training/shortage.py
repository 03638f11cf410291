"""A model that fits nowhere on some chips: what comes nearest, what it lacks, and the changes that are enough."""

from __future__ import annotations

from math import floor

import msgspec
import numpy as np

from datahall.errors import InfeasibleError, option
from datahall.scenario.words import OFFLOADS
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Search, search
from datahall.training.layout.space import Options
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.memory.peak import least_state_bytes
from datahall.training.memory.remedy import least_bytes, why_not
from datahall.training.setup import Machine, built
from datahall.training.step.step import Job
from datahall.units import fmt
from datahall.workload.memory.recipe import StateRecipe

MOST_DOUBLINGS = 8  # of the chips asked for, to find where a model fits at all
LEANEST = "pure-bf16"  # recipe of a state
# what may go to the host, least traffic first
OUT = (
    ("optimizer",),
    ("optimizer", "activations"),
    ("optimizer", "parameters"),
    OFFLOADS,
)


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """The fastest layout that fits once something lies on the host."""

    layout: Layout
    step_s: float
    headroom_bytes: float


def fits_nowhere(found: Search, machine: Machine) -> InfeasibleError:
    """Nothing fits: the layout that comes nearest, what it lacks, and the smallest changes that are enough."""
    job, cluster, memory = found.job, found.cluster, found.memory
    if found.margin_bytes and (free := _most_free(found)) > 0:
        return InfeasibleError(
            f"no layout of {job.model.name} on {cluster.num_chips:,} × {cluster.chip.name} leaves "
            f"{fmt(found.margin_bytes, 'bytes', 3)} of each chip free: at most {fmt(free, 'bytes', 3)}",
            field="memory_margin",
            hint=f"{option('memory_margin', floor(100 * free / memory.limit_bytes) / 100)}, or more "
            f"{option('chips')}",
        )
    layout = found.space.row(least_bytes(memory))
    shortage = why_not(job, cluster, layout, found.framework, found.books)
    assert shortage is not None
    state = least_state_bytes(job, cluster.num_chips, found.books)
    return InfeasibleError(
        f"{job.model.name} fits {cluster.num_chips:,} × {cluster.chip.name} in none of {len(found.space):,} layouts: "
        f"the leanest ({layout.words}) lacks {fmt(shortage.over_bytes, 'bytes', 3)} per chip",
        where=f"memory: {shortage.sentence}; state alone is {fmt(state, 'bytes', 3)} per chip if spread evenly",
        field="chips",
        hint=f"{_changes(found, machine)}; or {_leaner(job, found.books)}a shorter {option('seq')}, "
        "a chip with more memory",
    )


def _leaner(job: Job, books: Bookkeeping) -> str:
    """What keeps fewer bytes of a parameter, if anything does: values of 32 bits have no other state."""
    if job.value_bytes > 2:
        ways = [option("precision", "bf16"), *([option("state", LEANEST)] if job.state else [])]
    elif books.recipe.total > StateRecipe.named(LEANEST).total:
        ways = [option("state", LEANEST)]
    else:
        return ""
    return f"a leaner state ({' '.join(ways)}), "


def _most_free(found: Search) -> float:
    """Bytes that the leanest layout leaves free; less than 0 where it does not fit at all."""
    bare = msgspec.structs.replace(found.options, margin_fraction=0.0)
    there = search(found.job, found.cluster, found.framework, options=bare, books=found.books)
    return float(there.memory.headroom_bytes[there.order].max()) if there.num_fitting else -1.0


def _changes(found: Search, machine: Machine) -> str:
    """The cheapest change on these chips, and on more."""
    said = []
    outside = on_the_host(found)
    if outside is not None:
        said.append(
            f"{option('offload', ','.join(outside.layout.offload))} ({outside.layout.words}; step "
            f"{fmt(outside.step_s, 's', 3)}, {fmt(outside.headroom_bytes, 'bytes', 3)} free)"
        )
    if enough := chips_that_hold(found, machine):
        said.append(option("chips", enough))
    return (
        f"cheapest change: {' or '.join(said)}"
        if said
        else "no number of these chips holds one sequence of it"
    )


def on_the_host(found: Search) -> Outside | None:
    """The fastest layout on the same chips with something on the host; None where nothing fits or no link is known."""
    if not np.isfinite(found.cluster.host.link_bytes_per_s):
        return None
    moved = Options(offload=OUT, margin_fraction=found.options.margin_fraction)
    there = search(found.job, found.cluster, found.framework, options=moved, books=found.books)
    if not there.num_fitting:
        return None
    row = int(there.order[0])
    return Outside(
        layout=there.space.row(row),
        step_s=float(there.step_s[row]),
        headroom_bytes=float(there.memory.headroom_bytes[row]),
    )


def chips_that_hold(found: Search, machine: Machine) -> int:
    """The fewest chips of the same machine, doubling, on which some layout fits; 0 where none does.

    What may be offloaded on those asked for may be on more.
    """
    usual = Options(offload=found.options.offload, margin_fraction=found.options.margin_fraction)
    for doubling in range(1, MOST_DOUBLINGS + 1):
        num_chips = found.cluster.num_chips << doubling
        cluster = built(machine, num_chips)
        if cluster is None:
            continue
        if search(found.job, cluster, found.framework, options=usual, books=found.books).num_fitting:
            return num_chips
    return 0
