"""What a training plan trades: chips against time, in closed form."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.planner.training.candidate import NUM_SIMULATED, Candidate, closed_form, simplest
from datahall.training.layout.search import Search, pareto, search
from datahall.training.setup import Machine, built
from datahall.units import HOUR_S

DOUBLINGS = (-2, -1, 1)  # of the chips: a quarter, a half, twice as many


class OnChips(msgspec.Struct, frozen=True, kw_only=True):
    """The run on another number of chips."""

    candidate: Candidate
    duration_s: float
    chip_hours: float
    beaten: bool  # fewer chips are as fast
    chosen: bool = False


def chip_hours(duration_s: float, num_chips: int) -> float:
    """Hours of all chips together."""
    return duration_s / HOUR_S * num_chips


def chips_against_time(
    found: Search,
    machine: Machine,
    chosen: Candidate,
    num_steps: int,
) -> tuple[OnChips, ...]:
    """The same run on fewer and on more chips of the same machine, those left out on which nothing fits or divides.

    Fewest chips first, the chosen candidate among them.
    """
    rows = [chosen]
    for power in DOUBLINGS:
        count = chosen.num_chips * 2**power
        cluster = built(machine, int(count)) if count == int(count) else None
        if cluster is not None:
            there = search(found.job, cluster, found.framework, options=found.options, books=found.books)
            if there.num_fitting:
                steps_s = {
                    place: float(there.step_s[there.order[place]]) for place in there.best(NUM_SIMULATED)
                }
                rows.append(closed_form(there, simplest(there, steps_s)))
    rows.sort(key=lambda one: one.num_chips)
    times_s = [num_steps * one.closed_step_s for one in rows]
    kept = set(pareto(np.array([float(one.num_chips) for one in rows]), np.array(times_s)).tolist())
    return tuple(
        OnChips(
            candidate=one,
            duration_s=time_s,
            chip_hours=chip_hours(time_s, one.num_chips),
            beaten=place not in kept,
            chosen=one is chosen,
        )
        for place, (one, time_s) in enumerate(zip(rows, times_s, strict=True))
    )
